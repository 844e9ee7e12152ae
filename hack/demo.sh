#!/usr/bin/env bash
# The walk-through: two tenants on one cluster, each on nodes of its own, and
# three attacks that are refused. Run by `make demo`; leaves the sandbox up.
set -euo pipefail
cd "$(dirname "$0")/.."

export CROFT_SANDBOX_DIR=${SANDBOX_DIR:-$PWD/.sandbox}
sandbox=bin/croft-sandbox
key=croft.node-restriction.kubernetes.io/pool
started=$SECONDS
file=examples/two-tenants.yaml
with=()
edit=()
case ${ENGINE:-} in
  "" | native) ;;
  gatekeeper)
    # As on a cluster before Kubernetes 1.36: only Gatekeeper can place pods there.
    with=(--with gatekeeper --without MutatingAdmissionPolicy)
    edit+=(-e 's/^  clusterName: .*/&\n  placement: Gatekeeper/')
    ;;
  *) echo "ENGINE=$ENGINE: choose native or gatekeeper" >&2 && exit 2 ;;
esac
case ${CLOUD:-} in
  "" | kwok) ;;
  aws)
    # A simulated account, and Karpenter's own AWS provider on it. Instances are three
    # times as fast as real ones, which take some 25 s to become nodes.
    if [ ${#with[@]} -gt 0 ]; then echo "choose ENGINE=gatekeeper or CLOUD=aws, not both" >&2 && exit 2; fi
    with=(--with aws --aws-speed 3)
    edit+=(-e 's/nodeClass: {kwok: {}}/nodeClass: {aws: {role: KarpenterNodeRole-demo}}/')
    ;;
  *) echo "CLOUD=$CLOUD: choose kwok or aws" >&2 && exit 2 ;;
esac
case ${GITOPS:-} in
  "") ;;
  flux) with+=(--with flux) ;;
  *) echo "GITOPS=$GITOPS: choose flux" >&2 && exit 2 ;;
esac
case ${DASHBOARD:-} in
  "") ;;
  1) LOGIN=1 ;;
  *) echo "DASHBOARD=$DASHBOARD: choose 1, or omit it" >&2 && exit 2 ;;
esac
case ${LOGIN:-} in
  "") ;;
  1)
    hack/demo-login.sh check
    edit+=(-e 's/^  clusterName: .*/&\n  proxy: {}/')
    ;;
  *) echo "LOGIN=$LOGIN: choose 1, or omit it" >&2 && exit 2 ;;
esac
case ${HA:-} in
  "" | 1) ;;
  *) echo "HA=$HA: choose 1, or omit it" >&2 && exit 2 ;;
esac
case ${COST:-} in
  "") ;;
  1)
    # Its operator, which asks the ledger, has no access to a simulated account.
    if [ "${CLOUD:-}" = aws ] || [ "${HA:-}" = 1 ]; then echo "choose COST=1 without CLOUD=aws and HA=1: it replaces the operator" >&2 && exit 2; fi
    ;;
  *) echo "COST=$COST: choose 1, or omit it" >&2 && exit 2 ;;
esac
case ${NODES:-} in
  "" | kwok) ;;
  real)
    if [ "${CLOUD:-}" = aws ]; then echo "choose CLOUD=aws or NODES=real, not both" >&2 && exit 2; fi
    with+=(--nodes real --network enforced)
    ;;
  *) echo "NODES=$NODES: choose kwok or real" >&2 && exit 2 ;;
esac
case ${NETWORKS:-} in
  "") ;;
  1) if [ "${CLOUD:-}" != aws ]; then echo "NETWORKS=1 needs CLOUD=aws: the interfaces belong to an AWS account" >&2 && exit 2; fi ;;
  *) echo "NETWORKS=$NETWORKS: choose 1, or omit it" >&2 && exit 2 ;;
esac
if [ ${#edit[@]} -gt 0 ]; then
  file=$(mktemp -d)/two-tenants.yaml
  written=$(dirname "$file")
  sed "${edit[@]}" examples/two-tenants.yaml >"$file"
fi

# tidy removes the file that was written for this run, if one was.
tidy() { if [ -n "${written:-}" ]; then rm -r "$written"; fi; }
trap tidy EXIT

bold='' dim='' off=''
if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' off=$'\e[0m'; fi

step() { printf '\n%s%s%s\n' "$bold" "$*" "$off"; }
# chapter is a step with the next number.
chapters=0
chapter() { chapters=$((chapters + 1)) && step "$chapters. $*"; }
# show prints a command as a person would type it, and runs it.
show() { printf '%s$ %s%s\n' "$dim" "$*" "$off"; "$@"; }
kubectl() { "$sandbox" kubectl "$@"; }
croft() { KUBECONFIG=$kubeconfig bin/croft "$@"; }
# bounces runs a command that must be refused, and prints the refusal.
bounces() {
  printf '%s$ %s%s\n' "$dim" "$*" "$off"
  if refusal=$("$@" 2>&1 </dev/stdin); then
    printf 'this should have been refused:\n%s\n' "$refusal" >&2
    exit 1
  fi
  printf '%s\n' "$refusal" | sed 's/^/  ✗ /' | fold -s -w 116
}
# settled waits until a command prints nothing.
settled() {
  local deadline=$((SECONDS + 90))
  until [ -z "$("$@" 2>/dev/null)" ]; do
    [ $SECONDS -lt $deadline ] || { printf 'still there after 90 s: %s\n' "$("$@")" >&2; return 1; }
    sleep 1
  done
}

chapter "A cluster: etcd, API server, scheduler, controllers, Karpenter, nodes, and croft's operator"
show "$sandbox" up --croft bin/croft ${with[@]+"${with[@]}"}
kubeconfig=$("$sandbox" kubeconfig)

chapter "One file: two pools, two tenants"
grep -v '^#' "$file" | sed 's/^/  /'
show croft apply -f "$file"

chapter "Each team runs three nginx pods and a Service; no manifest names a node"
for t in a b; do
  team=(--as "$t-developer" --as-group "team-$t" -n "tenant-$t")
  if ! kubectl "${team[@]}" get deployment nginx >/dev/null 2>&1; then
    show kubectl "${team[@]}" create deployment nginx --image=nginx --replicas=3
    show kubectl "${team[@]}" expose deployment nginx --port=8080 --target-port=80
  fi
done
for t in a b; do
  show kubectl -n "tenant-$t" rollout status deployment/nginx --timeout=90s
done

chapter "Karpenter created nodes for each pool, and each pod runs on its tenant's pool"
show kubectl get nodes -L "$key" -L node.kubernetes.io/instance-type -L karpenter.sh/capacity-type
show kubectl get pods -A -l app=nginx -o wide
step "   The node selector and the tolerations that admission added to a pod"
show kubectl -n tenant-a get pods -l app=nginx -o \
  jsonpath='{range .items[:1]}{"  nodeSelector: "}{.spec.nodeSelector}{"\n"}{range .spec.tolerations[*]}{"  toleration:   "}{@}{"\n"}{end}{end}'

if [ "${NODES:-}" = real ]; then
  # shellcheck source=hack/demo-nodes.sh
  . hack/demo-nodes.sh
fi
if [ "${CLOUD:-}" = aws ]; then
  step "   The nodes are instances of the account, with tags for cost allocation"
  show "$sandbox" aws instances
  show "$sandbox" aws calls --action ec2:CreateFleet
fi

chapter "A pod that requests an m5.large by nodeAffinity gets one, in its tenant's pool"
# A Deployment: kube-controller-manager may see a node later than the scheduler does,
# still with the taint that Karpenter registers it with, and evict the pod for it.
kubectl -n tenant-a apply --as a-developer --as-group team-a -f - <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: choosy}
spec:
  selector: {matchLabels: {app: choosy}}
  template:
    metadata: {labels: {app: choosy}}
    spec:
      containers: [{name: nginx, image: "nginx:alpine"}]
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}]
YAML
show kubectl -n tenant-a rollout status deployment/choosy --timeout=90s
show kubectl get nodes -l node.kubernetes.io/instance-type=m5.large -L "$key" -L node.kubernetes.io/instance-type

chapter "After the deletion of the pod and the pool's emptyTTL (10s), the node is deleted"
show kubectl -n tenant-a delete deployment choosy --as a-developer --as-group team-a
settled kubectl get nodes -l node.kubernetes.io/instance-type=m5.large -o name
show kubectl get nodes -L "$key" -L node.kubernetes.io/instance-type

chapter "Three attacks by team-a's developer are refused"
bounces kubectl -n tenant-a run stowaway --image=nginx --as a-developer --as-group team-a \
  --overrides='{"spec": {"tolerations": [{"operator": "Exists"}]}}'
bounces kubectl -n tenant-a apply --as a-developer --as-group team-a -f - <<'YAML'
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: open-house}
spec: {podSelector: {}, ingress: [{}]}
YAML
bounces kubectl -n tenant-b get secrets --as a-developer --as-group team-a

chapter "Do the walls hold? croft tries to break every one of them"
if ! report=$(croft verify 2>/dev/null); then
  printf '%s\n' "$report"
  exit 1
fi
printf '%s$ croft verify%s\n  %s\n' "$dim" "$off" "$(printf '%s\n' "$report" | tail -1)"
show croft status

if [ "${COST:-}" = 1 ]; then
  # shellcheck source=hack/demo-cost.sh
  . hack/demo-cost.sh
fi
if [ "${GITOPS:-}" = flux ]; then
  # shellcheck source=hack/demo-gitops.sh
  . hack/demo-gitops.sh
fi
if [ "${NETWORKS:-}" = 1 ]; then
  # shellcheck source=hack/demo-networks.sh
  . hack/demo-networks.sh
fi
if [ "${HA:-}" = 1 ]; then
  # shellcheck source=hack/demo-ha.sh
  . hack/demo-ha.sh
fi
if [ "${LOGIN:-}" = 1 ]; then
  . hack/demo-login.sh
fi
if [ "${DASHBOARD:-}" = 1 ]; then
  # shellcheck source=hack/demo-dashboard.sh
  . hack/demo-dashboard.sh
fi

cat <<TEXT

${bold}Done in $((SECONDS - started)) s.${off} The sandbox stays up. To explore it:

  export KUBECONFIG=$kubeconfig
  bin/croft status
  bin/croft verify --list
  bin/croft-sandbox kubectl get tenants,pools,nodepools,nodeclaims,nodes
  bin/croft-sandbox stop croft        # the walls stay in force
  make down                           # delete the sandbox
TEXT
if [ "${GITOPS:-}" = flux ]; then
  cat <<'TEXT'

  git clone "$(bin/croft-sandbox git deploy)"   # push to it, and run:
  bin/croft why kustomization/croft-app -n tenant-a
TEXT
fi
if [ "${COST:-}" = 1 ]; then
  cat <<TEXT

  bin/croft cost --budgets            # croft's operator of this part replaces the sandbox's
  KUBECONFIG=$costs/auditor.kubeconfig bin/croft cost ${ledger[*]} --since 30d --by workload
TEXT
fi
if [ "${CLOUD:-}" = aws ]; then
  cat <<'TEXT'

  bin/croft-sandbox aws instances     # what runs in the account
  bin/croft-sandbox aws fault --help  # what can go wrong there
TEXT
fi
if [ "${LOGIN:-}" = 1 ]; then
  cat <<TEXT

  export XDG_CACHE_HOME=$login/cache  # Ann's tokens
  bin/croft-sandbox kubectl --kubeconfig $login/ann.kubeconfig get pods
TEXT
fi
