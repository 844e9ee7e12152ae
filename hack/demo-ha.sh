# The demo's part with high availability: three operators, of which one leads. The leader is
# killed three times while tenants come and go. demo.sh sources it, with HA=1.
# shellcheck shell=bash

replicas=$(mktemp -d)
operators=() # the processes; operator n logs to $replicas/n.log
crowd=''     # the process that declares and deletes tenants
end_replicas() { kill ${crowd:+"$crowd"} ${operators[@]+"${operators[@]}"} 2>/dev/null || true; }
trap 'end_replicas; tidy' EXIT

replica() {
  local n=${#operators[@]}
  bin/croft operator --kubeconfig "$replicas/kubeconfig" --health-addr 0 --metrics-addr 0 >"$replicas/$n.log" 2>&1 &
  operators+=($!)
  disown $! # the shell says nothing when it is killed
}
# leader prints which operator leads.
leader() {
  for n in "${!operators[@]}"; do
    if kill -0 "${operators[n]}" 2>/dev/null && grep -q 'Successfully acquired lease' "$replicas/$n.log"; then echo "$n"; fi
  done
}
# awaited waits until a command prints something, and prints it.
awaited() {
  local is='' deadline=$((SECONDS + 90))
  until is=$("$@" 2>/dev/null) && [ -n "$is" ]; do
    [ $SECONDS -lt $deadline ] || { echo "nothing after 90 s: $*" >&2; return 1; }
    sleep 0.2
  done
  printf '%s\n' "$is"
}
guests() { kubectl get tenants -l croft-demo=guest "$@"; }
# come_and_go declares a tenant each second, and deletes every third a few seconds later.
come_and_go() {
  for ((n = 1; ; n++)); do
    kubectl apply -f - >/dev/null <<YAML
apiVersion: croft.dev/v1alpha1
kind: Tenant
metadata: {name: guest-$n, labels: {croft-demo: guest}}
spec: {pool: pool-a, deletion: Delete, access: [{group: guest-$n, role: operator}]}
YAML
    if ((n > 9 && n % 3 == 0)); then kubectl delete tenant "guest-$((n - 9))" --wait=false >/dev/null; fi
    sleep 1
  done
}
# waits prints how long each guest waited until it was Ready, in seconds, the longest first.
waits() {
  guests -o jsonpath='{range .items[*]}{.metadata.creationTimestamp} {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].lastTransitionTime}{"\n"}{end}' |
    while read -r declared ready at; do
      if [ "$ready" = True ]; then echo $(($(date -d "$at" +%s) - $(date -d "$declared" +%s))); fi
    done | sort -rn
}
# ready prints how many guests are Ready, if they are at least as many as asked for.
ready() { local is; is=$(waits | wc -l) && [ "$is" -ge "$1" ] && echo "$is"; }
# unready prints the guests that are not Ready or are being deleted.
unready() {
  guests -o jsonpath='{range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{.metadata.deletionTimestamp}{"\n"}{end}' | grep -v ' True$'
}

chapter "Three operators replace the sandbox's operator, and one of them leads"
show "$sandbox" stop croft
account=system:serviceaccount:croft-system:croft
"$sandbox" kubeconfig --raw --user "$account" --group system:serviceaccounts --group system:serviceaccounts:croft-system >"$replicas/kubeconfig"
for _ in 1 2 3; do replica; done
printf '  operator %s leads\n' "$(awaited leader)"

chapter "Each second a tenant is created, and every third is deleted. The leader is killed (kill -9) three times"
come_and_go &
crowd=$!
disown $crowd
printf '  %-10s %-12s %-14s %s\n' killed 'next leader' 'leader after' 'guests Ready, longest wait so far'
for _ in 1 2 3; do
  awaited ready $(($(waits | wc -l) + 3)) >/dev/null
  killed=$(leader)
  kill -9 "${operators[killed]}"
  from=$SECONDS
  replica # as its Deployment does
  next=$(awaited leader)
  after=$((SECONDS - from))
  many=$(awaited ready $(($(waits | wc -l) + 5)))
  printf '  %-10s %-12s %-14s %s\n' "$killed" "$next" "$after s" "$many, $(waits | head -1) s"
done
kill "$crowd"
crowd=''
settled unready
printf '  all %s guests that stayed are Ready, and no wait was longer than %s s; the lease of a killed leader expires after 15 s\n' \
  "$(waits | wc -l)" "$(waits | head -1)"

chapter "Meanwhile the walls stayed in force: no pod and no request depends on croft's operator"
bounces kubectl -n tenant-b get secrets --as a-developer --as-group team-a
kubectl delete tenants -l croft-demo=guest --wait=false >/dev/null
settled guests -o name
end_replicas
operators=()
show "$sandbox" start croft
rm -r "$replicas"
