# The demo's part with secondary networks: the nodes of a pool get an interface in each of
# two networks, in two zones, and the team scales from 1 to 5, to 1 and to 10 pods in each.
# demo.sh sources it, with CLOUD=aws NETWORKS=1.
# shellcheck shell=bash

telco=$(mktemp)
core=(--as core-developer --as-group core-devs -n core)

# settles waits until a command prints a text.
settles() {
  local want=$1 is='' deadline=$((SECONDS + 240))
  shift
  until is=$("$@" 2>/dev/null) && [ "$is" = "$want" ]; do
    [ $SECONDS -lt $deadline ] || { printf 'after 240 s: %s, not %s\n' "$is" "$want" >&2; return 1; }
    sleep 1
  done
}
# nodes is how many nodes the pool has, and interfaces how many are attached to them.
nodes() { kubectl get nodes -l "$key=telco" -o name | wc -l; }
attached() { "$sandbox" aws interfaces | awk '$NF ~ /^n[46]$/ && $4 == "attached"' | wc -l; }
# made are the interfaces that croft made, attached or not.
made() { "$sandbox" aws interfaces | awk '$NF ~ /^n[46]$/' | wc -l; }
# complete prints "yes" when each node has an interface in both networks, and no other exists.
complete() { [ "$(attached)" -eq $((2 * $(nodes))) ] && [ "$(made)" -eq "$(attached)" ] && echo yes; }
# scale gives each zone this many pods, and waits until they run, no more nodes are there
# than wanted ("" for any number), and nodes have what they need.
scale() {
  local from=$SECONDS
  kubectl "${core[@]}" scale deployment/zone-a deployment/zone-b --replicas="$1" >/dev/null
  for zone in a b; do kubectl "${core[@]}" rollout status "deployment/zone-$zone" --timeout=240s >/dev/null; done
  settles "$((2 * $1))" running
  if [ -n "${2:-}" ]; then settles "$2" nodes; fi
  settles yes complete
  printf '  %-14s %-7s %-12s %s s\n' "$1" "$(nodes)" "$(attached)" $((SECONDS - from))
}
running() { kubectl -n core get pods -o name | wc -l; }

# phases prints the phases that croft latency knows of none of the pool's nodes.
phases() {
  croft latency --pool telco -o wide | awk -F '  +' '
    $1 == "BY" { split($0, title, FS) }
    $1 == "all" { found = 1; for (i = 4; i <= NF; i++) if ($i == "-") print title[i] }
    END { if (!found) print "all of them" }'
}

chapter "Two networks beside the cluster's own, in two zones: subnets, and what is reserved in them for pods"
# The kind comes with Multus, which no node of the sandbox needs: nothing runs in its pods.
kubectl apply -f - >/dev/null <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: network-attachment-definitions.k8s.cni.cncf.io}
spec:
  group: k8s.cni.cncf.io
  scope: Namespaced
  names: {plural: network-attachment-definitions, singular: network-attachment-definition, kind: NetworkAttachmentDefinition}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {config: {type: string}}}}}}
YAML
# croft's agent, which sets up the interfaces on the nodes and reads their journals. Of what
# is installed only its part is: the sandbox's operator runs outside of the cluster. Pods of
# the sandbox run nothing, but for these: an instance runs the agent's code, on hardware, a
# disk and a journal that are simulated.
printf '%s$ croft install --image croft:demo --agent --agent-journal%s\n' "$dim" "$off"
bin/croft install --export --image croft:demo --agent --agent-journal |
  awk 'BEGIN { RS = "---\n" } /\n  name: croft-(agent|nodes)\n/ { print "---"; print }' |
  kubectl apply -f - | sed 's/^/  /'
# The account's first subnets have the example's addresses already.
edit=(-e 's/10\.0\.\([4567]\)\./10.0.6\1./g' -e 's/securityGroups: \[[^]]*\], //' -e 's/^    secondaryNetworks: .*/&\n    emptyTTL: 10s\n    waitForNetworks: true/')
for subnet in a4:2a:10.0.64.0/24 b4:2b:10.0.65.0/24 a6:2a:10.0.66.0/24 b6:2b:10.0.67.0/24; do
  IFS=: read -r name zone cidr <<<"$subnet"
  edit+=(-e "s/subnet-0$name/$("$sandbox" aws subnet --zone "us-west-$zone" --cidr "$cidr" --tags "Name=$name")/")
done
{
  sed -n '/^platform:/,/^pools:/p' "$file" | sed '$d'
  sed -n '/^secondaryNetworks:/,$p' examples/networks.yaml | sed "${edit[@]}"
} >"$telco"
sed -n '/^secondaryNetworks:/,$p' "$telco" | grep -v '^#' | sed 's/^/  /'
show croft networks plan -f "$telco"
show croft apply -f "$telco"

chapter "The team requests both networks, without knowing zones, nodes or interfaces"
for zone in a b; do
  kubectl "${core[@]}" apply -f - <<YAML
apiVersion: apps/v1
kind: Deployment
metadata: {name: zone-$zone}
spec:
  selector: {matchLabels: {app: zone-$zone}}
  template:
    metadata:
      labels: {app: zone-$zone}
      annotations: {croft.dev/networks: "n4, n6"}
    spec:
      nodeSelector: {topology.kubernetes.io/zone: us-west-2$zone}
      containers: [{name: tool, image: praqma/network-multitool, resources: {requests: {cpu: "1"}}}]
YAML
  kubectl "${core[@]}" rollout status "deployment/zone-$zone" --timeout=240s >/dev/null
done
settles yes complete
show kubectl -n core get pods -o wide
step "    The annotation for Multus, which croft added"
show kubectl -n core get pods -o custom-columns='POD:.metadata.name,NETWORKS:.metadata.annotations.k8s\.v1\.cni\.cncf\.io/networks'
show "$sandbox" aws interfaces
show kubectl get events -A --field-selector reason=NetworksAttached -o custom-columns='NODECLAIM:.involvedObject.name,MESSAGE:.message'

chapter "From 1 to 5, to 1, to 10 pods in each zone: interfaces are created and deleted with the nodes"
printf '  %-14s %-7s %-12s %s\n' "pods per zone" nodes interfaces "until complete"
scale 5
scale 1 2
scale 10
step "    The phases of each node: interfaces are attached while it boots"
# An event may be written a moment after its subject.
settled phases || { echo "no node has all of these phases" >&2; exit 1; }
show croft latency --pool telco -o wide
cat <<'TEXT'

  Simulated: the times of boot, of its parts (vm start, system, user data, nodeadm, containerd, kubelet) and of ready. A
  machine of the account boots three times as fast as a real one, and writes its journal as Amazon Linux 2023 does.
  Interfaces take the account's time to attach, and pods start at once.
  Real: decision and launch by Karpenter, links by croft's agent, which also reads the journal and writes the parts of boot
  to its Node, networks by croft's operator, initialization by Karpenter, scheduling by the scheduler.
TEXT
step "    The events of one of them, from its journal and from the API"
newest=$(kubectl get nodes -l "$key=telco" --sort-by=.metadata.creationTimestamp -o name | tail -1)
printf '%s$ croft latency --pool telco -o markdown%s\n' "$dim" "$off"
croft latency --pool telco -o markdown | awk -v node="${newest#node/}" '/^### / { on = $2 == node } on { print "  " $0 }'

chapter "No pods, no nodes, no interfaces"
kubectl "${core[@]}" scale deployment/zone-a deployment/zone-b --replicas=0 >/dev/null
settles 0 nodes
settles 0 made
printf '  nodes %s, interfaces %s\n' "$(nodes)" "$(made)"
rm "$telco"
