package oncall

// Dashboards returns all dashboards.
func Dashboards() []Dashboard {
	return []Dashboard{operatorDashboard, tenantsDashboard, wallsDashboard, proxyDashboard, ledgerDashboard}
}

var operatorDashboard = Dashboard{Name: "croft-operator", Title: "croft / Operator", Panels: []Panel{
	{"Last heartbeat", Number, "s", "Time since the leading operator wrote its heartbeat; it writes one every 10 s", []Query{
		{`time() - max(croft_operator_heartbeat_timestamp_seconds)`, ""},
	}},
	{"Versions", Number, "", "Replicas by version", []Query{{`count by (version) (croft_build_info)`, "{{version}}"}}},
	{"Waiting", Number, "", "Objects that wait to be reconciled", []Query{{`sum(workqueue_depth` + ofCroft + `)`, ""}}},
	{"Errors", Number, "reqps", "Failed reconciles a second", []Query{{`sum(croft:reconcile_errors:rate5m)`, ""}}},
	{"Reconciles", Graph, "ops", "By controller and result", []Query{
		{`sum by (controller, result) (rate(controller_runtime_reconcile_total[5m])` + ofCroft + `)`, "{{controller}} {{result}}"},
	}},
	{"Duration of reconciles (p99)", Graph, "s", "", []Query{{`croft:reconcile_duration_seconds:p99`, "{{controller}}"}}},
	{"Waiting time (p99)", Graph, "s", "From an object's change to the start of its reconcile", []Query{
		{`histogram_quantile(0.99, sum by (controller, le) (rate(workqueue_queue_duration_seconds_bucket[10m])` + ofCroft + `))`, "{{controller}}"},
	}},
	{"Write conflicts", Graph, "ops", "Another writer was faster; the retry succeeds", []Query{
		{`sum by (controller, reason) (rate(croft_retries_total[5m]))`, "{{controller}} {{reason}}"},
	}},
	{"Requests to the API server", Graph, "reqps", "By status code. In a steady state the operator writes only Leases", []Query{
		{`sum by (method, code) (rate(rest_client_requests_total[5m])` + ofCroft + `)`, "{{method}} {{code}}"},
	}},
	{"Interfaces of secondary networks", Graph, "", "By network and state", []Query{
		{`sum by (network, state) (croft_interfaces)`, "{{network}} {{state}}"},
	}},
	{"Used addresses of secondary networks", Graph, "percentunit", "By network and zone. Pods wait at 100 %", []Query{
		{`croft_network_addresses_used / croft_network_addresses`, "{{network}} {{zone}}"},
	}},
	{"From launch to all interfaces (p99)", Graph, "s", "", []Query{
		{`histogram_quantile(0.99, sum by (pool, le) (rate(croft_interfaces_attach_seconds_bucket[30m])))`, "{{pool}}"},
	}},
	{"From registration to ready networks (p99)", Graph, "s", "Lifetime of the startup taint", []Query{
		{`histogram_quantile(0.99, sum by (pool, le) (rate(croft_node_networks_seconds_bucket[30m])))`, "{{pool}}"},
	}},
}}

var tenantsDashboard = Dashboard{
	Name: "croft-tenants", Title: "croft / Tenants", Variable: &Variable{"croft_tenant_status_condition", "tenant"},
	Panels: []Panel{
		{"Tenants", Number, "", "", []Query{{`sum(croft:tenants:count)`, ""}}},
		{"Not Ready", Number, "", "", []Query{{`sum(croft:tenants:count{status!="True"}) or vector(0)`, ""}}},
		{"Pools", Number, "", "", []Query{{`sum(croft:pools:count)`, ""}}},
		{"Pools refused", Number, "", "By croft, by the API server or by Karpenter", []Query{
			{`sum(croft:pools:count{status!="True"}) or vector(0)`, ""},
		}},
		{"Tenants by readiness and reason", Graph, "", "", []Query{{`croft:tenants:count`, "{{status}} {{reason}}"}}},
		{"Tenants that are not Ready", Table, "", "", []Query{
			{`max by (tenant, reason) (croft_tenant_status_condition{condition="Ready", status!="True", tenant=~"$tenant"})`, ""},
		}},
		{"Use of quotas", Graph, "percentunit", "The ten fullest", []Query{
			{`topk(10, max by (tenant, resource) (croft_tenant_quota_used_ratio{tenant=~"$tenant"}))`, "{{tenant}} {{resource}}"},
		}},
		{"Refused workloads", Graph, "", "Workloads whose pods the API server refuses", []Query{
			{`max by (tenant) (croft_tenant_refused_workloads{tenant=~"$tenant"})`, "{{tenant}}"},
		}},
		{"Shares moved", Graph, "", "Changes an hour of the division of a quota among a tenant's namespaces", []Query{
			{`sum by (tenant) (increase(croft_quota_shares_moved_total{tenant=~"$tenant"}[1h]))`, "{{tenant}}"},
		}},
		{"Reverted drift", Graph, "", "Changed or deleted objects an hour that the operator restored", []Query{
			{`sum by (tenant, kind) (increase(croft_repairs_total{tenant=~"$tenant"}[1h]))`, "{{tenant}} {{kind}}"},
		}},
		{"Pools that are not Ready", Table, "", "", []Query{
			{`max by (pool, reason) (croft_pool_status_condition{condition="Ready", status!="True"})`, ""},
		}},
	},
}

var wallsDashboard = Dashboard{Name: "croft-walls", Title: "croft / Walls", Panels: []Panel{
	{"Last verified", Number, "s", "Time since the last recorded run of croft verify", []Query{
		{`time() - max(croft_verify_timestamp_seconds)`, ""},
	}},
	{"Breaches", Number, "", "Of the last recorded run", []Query{{`max(croft_verify_results{result="breached"})`, ""}}},
	{"Failing policies", Number, "", "Policies that the API server cannot evaluate", []Query{
		{`count(sum by (policy) (croft:policy_errors:rate5m) > 0) or vector(0)`, ""},
	}},
	{"Drift of the platform", Number, "", "Objects for all tenants that the operator restored in a day", []Query{
		{`sum(increase(croft_repairs_total{tenant=""}[1d]))`, ""},
	}},
	{"Denials by wall", Graph, "reqps", "By the API server's own count", []Query{
		{`sum by (wall) (croft:policy_denials:rate5m)`, "{{wall}}"},
	}},
	{"Denials by rule", Graph, "reqps", "", []Query{
		{`topk(15, sum by (policy) (croft:policy_denials:rate5m))`, "{{policy}}"},
	}},
	{"All policies of a request (p99)", Graph, "s", "Including policies of other projects", []Query{
		{`histogram_quantile(0.99, sum by (name, le) (rate(
  apiserver_admission_controller_admission_duration_seconds_bucket{name=~"(Validating|Mutating)AdmissionPolicy"}[5m])))`, "{{name}}"},
	}},
	{"Policies that cannot be evaluated", Graph, "reqps", "", []Query{
		{`croft:policy_errors:rate5m`, "{{policy}} {{error_type}}"},
	}},
	{"Attacks of croft verify by result", Graph, "", "", []Query{
		{`max by (result) (croft_verify_results)`, "{{result}}"},
	}},
	{"Warnings of type checking", Table, "", "Expressions that do not compile against the cluster's kinds", []Query{
		{`max by (policy) (croft_policy_type_warnings) > 0`, ""},
	}},
}}

var proxyDashboard = Dashboard{Name: "croft-proxy", Title: "croft / Proxy", Panels: []Panel{
	{"Requests", Number, "reqps", "", []Query{{`sum(rate(croft_proxy_requests_total[5m]))`, ""}}},
	{"Open", Number, "", "Including watches, logs and streams", []Query{{`sum(croft_proxy_open_requests)`, ""}}},
	{"Errors", Number, "percentunit", "Responses with a status of 500 or more", []Query{{`croft:proxy_errors:ratio5m`, ""}}},
	{"Duration (p99)", Number, "s", "", []Query{{`croft:proxy_request_duration_seconds:p99`, ""}}},
	{"Requests by status", Graph, "reqps", "", []Query{
		{`sum by (method, code) (rate(croft_proxy_requests_total[5m]))`, "{{method}} {{code}}"},
	}},
	{"Duration of requests", Graph, "s", "", []Query{
		{`histogram_quantile(0.5, sum by (le) (rate(croft_proxy_request_duration_seconds_bucket[5m])))`, "p50"},
		{`histogram_quantile(0.99, sum by (le) (rate(croft_proxy_request_duration_seconds_bucket[5m])))`, "p99"},
	}},
	{"Open requests by replica", Graph, "", "", []Query{{`croft_proxy_open_requests`, "{{instance}}"}}},
	{"Requests without a valid login", Graph, "reqps", "", []Query{
		{`sum(rate(croft_proxy_unauthenticated_requests_total[5m]))`, ""},
	}},
}}

// The cost is served at the address for users only, and the other series at both: a maximum counts each once.
var ledgerDashboard = Dashboard{Name: "croft-ledger", Title: "croft / Ledger", Panels: []Panel{
	{"Last stored hour", Number, "s", "Time since its end; an hour is stored ten minutes after its end", []Query{
		{`time() - max(croft_ledger_last_hour_timestamp_seconds)`, ""},
	}},
	{"Cost per hour", Number, "", "Of the whole cluster, if nothing changes", []Query{
		{`sum by (currency) (max by (currency, kind) (croft_ledger_cost_per_hour))`, "{{currency}}"},
	}},
	{"Idle", Number, "percentunit", "Part of the cost for capacity that no pod requests", []Query{
		{`max(croft_ledger_cost_per_hour{kind="idle"}) / sum(max by (kind) (croft_ledger_cost_per_hour))`, ""},
	}},
	{"Errors", Number, "percentunit", "Responses with a status of 500 or more, of the resource with the most", []Query{
		{`max(croft:ledger_errors:ratio15m) or vector(0)`, ""},
	}},
	{"Cost per hour by kind", Graph, "", "Tenants, the platform, capacity without requests, and objects without a user", []Query{
		{`max by (currency, kind) (croft_ledger_cost_per_hour)`, "{{kind}} {{currency}}"},
	}},
	{"Hours that are not exact", Graph, "", "Stored hours of the last day, by reason", []Query{
		{`max by (reason) (increase(croft_ledger_hours_estimated_total[1d]))`, "{{reason}}"},
	}},
	{"Requests by status", Graph, "reqps", "", []Query{
		{`max by (resource, code) (rate(croft_ledger_queries_total[5m]))`, "{{resource}} {{code}}"},
	}},
	{"Duration of requests (p99)", Graph, "s", "", []Query{
		{`histogram_quantile(0.99, max by (resource, le) (rate(croft_ledger_query_duration_seconds_bucket[15m])))`, "{{resource}}"},
	}},
	{"Errors of the store", Graph, "", "In the last 15 minutes, by operation", []Query{
		{`max by (operation) (increase(croft_ledger_store_errors_total[15m]))`, "{{operation}}"},
	}},
	{"Copies of hours", Graph, "", "Of the last day, by result", []Query{
		{`max by (result) (increase(croft_ledger_hour_copies_total[1d]))`, "{{result}}"},
	}},
}}
