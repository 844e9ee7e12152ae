# The demo's part with costs: croft ledger with a simulated month, a forecast, a budget that is reached, and
# the dashboard. demo.sh sources it, with COST=1.
# shellcheck shell=bash disable=SC2154,SC2034 # variables of demo.sh, which uses file
. hack/demo-servers.sh
costs=$root-cost
servers=$costs

# as runs a command with the kubeconfig of a service account: the ledger accepts tokens only.
as() {
  local kubeconfig=$costs/$1.kubeconfig
  shift
  "$@"
}
# add_reader creates a service account that may read costs: with a ClusterRole in its namespace, or in the whole
# cluster.
add_reader() {
  local name=$1 namespace=$2 role=$3 binding=$4
  kubectl get serviceaccount "$name" -n "$namespace" >/dev/null 2>&1 || kubectl create serviceaccount "$name" -n "$namespace" >/dev/null
  kubectl get "$binding" "demo-$name" -n "$namespace" >/dev/null 2>&1 ||
    kubectl create "$binding" "demo-$name" -n "$namespace" --clusterrole="$role" --serviceaccount="$namespace:$name" >/dev/null
  write_kubeconfig "$costs/$name.kubeconfig" "$namespace" "$name"
}
# read_spent prints a tenant's cost in this calendar month, in whole units.
read_spent() { as auditor croft cost "${ledger[@]}" --forecast | awk -v tenant="$1" '$1 == tenant {print int($2)}'; }
# is_worth_a_budget succeeds if tenant-b has a cost from which the demo can make a budget, in whole units.
least_spent=${LEAST_SPENT:-2}
is_worth_a_budget() { (($(read_spent tenant-b) >= least_spent)); }
# is_at_stage succeeds if a stage of a budget is in force in a tenant's namespace, as the API server reads it.
is_at_stage() { [ "$(kubectl get namespace "$1" -o jsonpath='{.metadata.labels.croft\.dev/budget}')" = "$2" ]; }
pod=(kubectl -n tenant-b run more --image=nginx --as b-developer --as-group team-b)
is_refused() { ! "${pod[@]}" --dry-run=server; }

chapter "A ledger with a month of two teams. Nodes and pods of the month are SIMULATED; croft computes and stores each hour"
stop_servers
(umask 077 && mkdir "$costs")
go run ./hack/certificate "$costs/tls.crt" "$costs/tls.key"
cat >"$costs/prices.yaml" <<'YAML'
currency: USD
instances:
  t3a.medium:  {on-demand: 0.0376}
  t3a.large:   {on-demand: 0.0752, spot: 0.0301}
  m5.large:    {on-demand: 0.096}
  c6i.2xlarge: {on-demand: 0.34, spot: 0.136}
volumes: {gp3: 0.08}          # per GiB and month
loadBalancerHour: 0.0225
YAML
echo "  The platform's prices:"
sed 's/^/  │ /' "$costs/prices.yaml"
show go run ./hack/costmonth --data-dir "$costs/ledger" --prices "$costs/prices.yaml"

chapter "croft ledger continues the month with the nodes and pods of this cluster, and serves it"
background ledger bin/croft ledger --kubeconfig "$kubeconfig" --data-dir "$costs/ledger" --prices "$costs/prices.yaml" \
  --addr 127.0.0.1:0 --health-addr 0 --metrics-addr 0 --leader-elect=false --tls-cert-file "$costs/tls.crt" --tls-private-key-file "$costs/tls.key" </dev/null
eventually "croft ledger" find_address ledger
ledger=(--ledger "https://$(find_address ledger)" --certificate-authority "$costs/tls.crt")
add_reader auditor croft-system croft-auditor clusterrolebinding
for t in a b; do add_reader "team-$t" "tenant-$t" croft-viewer rolebinding; done
eventually "the first figures of croft ledger" as auditor croft cost "${ledger[@]}"
step "    An auditor sees the last 30 days of all tenants"
as auditor show croft cost "${ledger[@]}" --since 30d --by tenant
step "    Team-a sees its own workloads, and no cost of tenant-b"
as team-a show croft cost "${ledger[@]}" --since 30d --by workload
as team-a bounces croft cost "${ledger[@]}" --since 30d -n tenant-b

chapter "The arithmetic of the present minute: each team can repeat its bill"
show croft cost --explain --since 1m --prices "$costs/prices.yaml"

chapter "The forecast of the calendar month"
as auditor show croft cost "${ledger[@]}" --forecast

chapter "Budgets: tenant-a has spent half of its budget, tenant-b more than its budget"
spent_a=$(read_spent tenant-a)
spent_b=$(read_spent tenant-b)
if ((spent_b < least_spent)); then
  # From here on: stored hours keep their prices.
  echo "  The calendar month has just begun, and has no cost yet: from here on, the nodes of pool-b cost 10,000 times their prices."
  echo "pools: {pool-b: {on-demand: 10000, spot: 10000}}" >>"$costs/prices.yaml"
  patience=240 eventually "the cost of tenant-b in this month" is_worth_a_budget
  spent_a=$(read_spent tenant-a)
  spent_b=$(read_spent tenant-b)
fi
# tenant-b is at 105 %.
sed -e "s/^  tenant-a:/&\n    budget: {monthly: $((2 * spent_a + 1)), currency: USD}/" \
  -e "s/^  tenant-b:/&\n    contact: \"#finance\"\n    budget: {monthly: $((spent_b * 20 / 21)), currency: USD, at: {80: Warn, 100: DenyNewNodes}}/" "$file" >"$costs/croft.yaml"
diff "$file" "$costs/croft.yaml" | sed -n 's/^>/ /p' || true # diff fails, since they differ
file=$costs/croft.yaml # the parts after this one keep the budgets
show croft apply -f "$file"
echo "  An operator that asks the ledger replaces the sandbox's operator."
show "$sandbox" stop croft
operator=system:serviceaccount:croft-system:croft
(
  umask 077
  "$sandbox" kubeconfig --user "$operator" --group system:serviceaccounts --group system:serviceaccounts:croft-system >"$costs/operator.kubeconfig"
  # The API server does not accept this token: it is for the ledger only.
  kubectl create token croft -n croft-system --audience croft-ledger --duration=24h >"$costs/operator.token"
)
background operator bin/croft operator --kubeconfig "$costs/operator.kubeconfig" --leader-elect=false --health-addr 0 --metrics-addr 0 \
  --ledger "${ledger[1]}" --ledger-token-file "$costs/operator.token" --ledger-certificate-authority "$costs/tls.crt" </dev/null
eventually "the stage of tenant-b's budget" is_at_stage tenant-b DenyNewNodes
show croft cost --budgets
show kubectl get tenant tenant-b -o jsonpath='{.status.budget}{"\n"}'

chapter "The API server enforces the stage: it refuses pods of tenant-b for which Karpenter would launch nodes"
eventually "the refusal of tenant-b's pods" is_refused
bounces "${pod[@]}"
step "    Pods for existing nodes are allowed, existing pods keep running, and tenant-a is not affected"
show "${pod[@]}" --dry-run=server --overrides='{"spec": {"nodeSelector": {"karpenter.sh/initialized": "true"}}}'
show kubectl -n tenant-b get pods
show kubectl -n tenant-a run more --image=nginx --as a-developer --as-group team-a --dry-run=server

chapter "croft dashboard shows an auditor the budgets, and each team its months and the breakdown"
background dashboard bin/croft dashboard --kubeconfig "$kubeconfig" --listen 127.0.0.1:0 \
  --tls-cert-file "$costs/tls.crt" --tls-private-key-file "$costs/tls.key" \
  --ledger "${ledger[1]}" --ledger-ca-file "$costs/tls.crt" </dev/null
eventually "croft dashboard" find_address dashboard
cost_dashboard=$(find_address dashboard)
# open_page logs in at croft dashboard with the token of a service account, and prints the rows of a page's tables.
open_page() {
  local account=$1 namespace=$2 path=$3 form page
  local browser=(curl -sS --fail-with-body --cacert "$costs/tls.crt" --cookie "$costs/$account.cookies" --cookie-jar "$costs/$account.cookies")
  rm -f "$costs/$account.cookies" # the session of an earlier call would refuse the form
  form=$(umask 077 && "${browser[@]}" "$cost_dashboard/login" | sed -n 's/.*name="csrf" value="\([^"]*\)".*/\1/p' | head -1) || return 1
  page=$(kubectl create token "$account" -n "$namespace" | "${browser[@]}" --location --data-urlencode "csrf=$form" \
    --data-urlencode "next=$path" --data-urlencode token@- "$cost_dashboard/login") || return 1
  printf '%s\n' "$page" | grep '<tr>' | sed -E 's/<thead>//; s/<\/t[dh]>/  /g; s/<[^>]*>//g; s/^ */  │ /'
}
# shows succeeds if a page has a row with a text, and keeps the rows.
shows() {
  local text=$1
  shift
  rows=$(open_page "$@") && grep -q "$text" <<<"$rows"
}
step "    The auditor sees at $cost_dashboard/costs, among others"
budget_of_b="tenant-b .*USD.*%.*DenyNewNodes"
eventually "the budget of tenant-b on the page of costs" shows "$budget_of_b" auditor croft-system /costs
shows "$budget_of_b" auditor croft-system /costs
grep -B 1 -A 1 "$budget_of_b" <<<"$rows"
step "    Team-b sees at $cost_dashboard/namespaces/tenant-b/cost its months and workloads; its budget too, behind croft proxy"
shows "tenant-b .*training" team-b tenant-b /namespaces/tenant-b/cost || shows "tenant-b .*nginx" team-b tenant-b /namespaces/tenant-b/cost
printf '%s\n' "$rows"
cat <<TEXT

${bold}  The dashboard is $cost_dashboard.${off} Its certificate is self-signed. To log in, create a token:
    bin/croft-sandbox kubectl create token auditor -n croft-system    # then open $cost_dashboard/costs
    bin/croft-sandbox kubectl create token team-b -n tenant-b         # then open $cost_dashboard/namespaces/tenant-b/cost
TEXT
