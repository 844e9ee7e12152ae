package oncall_test

import "time"

// alertCase has series for which an alert fires, and others for which it does not. Values
// are in promtool's notation: a+bxN begins at a and grows by b, N times, once a minute.
type alertCase struct {
	fires, silent map[string]string
	// labels and summary belong to the firing alert.
	labels  map[string]string
	summary string
	// at is the time of the evaluation. The default is the alert's For plus a quarter of an
	// hour.
	at time.Duration
}

const (
	ours   = `{job="croft", instance="a", version="v1"}`
	theirs = `job="karpenter", instance="b"`
	us     = `job="croft", instance="a"`
)

// well is a cluster without problems, for four hours.
var well = map[string]string{
	`croft_build_info` + ours:                                                                           `1x240`,
	`croft_operator_heartbeat_timestamp_seconds{` + us + `}`:                                            `0+60x240`,
	`croft_repairs_total{tenant="",kind="ClusterRole",` + us + `}`:                                      `0x240`,
	`croft_repairs_total{tenant="shop",kind="RoleBinding",` + us + `}`:                                  `1x240`,
	`croft_retries_total{controller="tenant",reason="conflict",` + us + `}`:                             `0+1x240`,
	`controller_runtime_reconcile_total{controller="tenant",result="error",` + us + `}`:                 `0x240`,
	`controller_runtime_reconcile_time_seconds_bucket{controller="tenant",le="1",` + us + `}`:           `0+60x240`,
	`controller_runtime_reconcile_time_seconds_bucket{controller="tenant",le="60",` + us + `}`:          `0+60x240`,
	`controller_runtime_reconcile_time_seconds_bucket{controller="tenant",le="+Inf",` + us + `}`:        `0+60x240`,
	`workqueue_depth{name="tenant",controller="tenant",priority="0",` + us + `}`:                        `0 3 1x238`,
	`croft_platform_status_condition{condition="Ready",status="True",reason="Ready"}`:                   `1x240`,
	`croft_pool_status_condition{pool="apps",condition="Ready",status="True",reason="Ready"}`:           `1x240`,
	`croft_tenant_status_condition{tenant="shop",condition="Ready",status="True",reason="Ready"}`:       `1x240`,
	`croft_tenant_status_condition{tenant="shop",condition="Enforced",status="True",reason="Enforced"}`: `1x240`,
	`croft_tenant_quota_used_ratio{tenant="shop",resource="pods"}`:                                      `0.5x240`,
	`croft_quota_shares_moved_total{tenant="shop"}`:                                                     `0+1x240`,
	`croft_connection_end_timestamp_seconds{tenant="shop",caller="billing"}`:                            `14100x234 stale`,
	`croft_interfaces{network="n3",state="attached"}`:                                                   `9x240`,
	`croft_network_addresses_used{network="n3",zone="us-west-2a"}`:                                      `9x240`,
	`croft_network_addresses{network="n3",zone="us-west-2a"}`:                                           `32x240`,
	`croft_ec2_calls_total{action="CreateNetworkInterface",result="ok"}`:                                `0+9x240`,
	`croft_policy_info{policy="croft-pods",wall="policy"}`:                                              `1x240`,
	`croft_policy_type_warnings{policy="croft-pods"}`:                                                   `0x240`,
	`croft_verify_timestamp_seconds`:                                                                    `0x240`,
	`croft_verify_results{result="held"}`:                                                               `900x240`,
	`croft_verify_results{result="breached"}`:                                                           `0x240`,
	`croft_verify_results{result="blocked_elsewhere"}`:                                                  `0x240`,
	formatCheckSeries(`croft-pods`, `invalid_error`, `deny`):                                            `0+10x240`,
	formatCheckSeries(`croft-pods`, `invalid_error`, `warn`):                                            `0+900x240`,
	`croft_proxy_requests_total{method="get",code="200"}`:                                               `0+600x240`,
	`croft_proxy_requests_total{method="get",code="503"}`:                                               `0+1x240`,
	`croft_proxy_request_duration_seconds_bucket{method="get",le="0.064"}`:                              `0+600x240`,
	`croft_proxy_request_duration_seconds_bucket{method="get",le="16.384"}`:                             `0+600x240`,
	`croft_proxy_request_duration_seconds_bucket{method="get",le="+Inf"}`:                               `0+600x240`,
	`croft_proxy_unauthenticated_requests_total`:                                                        `0+5x240`,
	`croft_ledger_last_hour_timestamp_seconds`:                                                          `-4200+60x240`,
	`croft_ledger_hours_estimated_total{reason="estimate"}`:                                             `0+0.02x240`,
	`croft_ledger_hours_estimated_total{reason="no_price"}`:                                             `0x240`,
	`croft_ledger_store_errors_total{operation="write"}`:                                                `1x240`,
	`croft_ledger_queries_total{resource="costs",code="200"}`:                                           `0+60x240`,
	`croft_ledger_queries_total{resource="costs",code="403"}`:                                           `0+60x240`,
	`croft_ledger_queries_total{resource="costs",code="503"}`:                                           `0+1x240`,
	`croft_secret_copies_failed{source="registry"}`:                                                     `2 0x239`,
}

func formatCheckSeries(policy, errorType, action string) string {
	return `apiserver_validating_admission_policy_check_total{policy="` + policy + `",policy_binding="` + policy +
		`",error_type="` + errorType + `",enforcement_action="` + action + `"}`
}

func formatConditionSeries(kind, labels string) string {
	return `croft_` + kind + `_status_condition{` + labels + `}`
}

var alertCases = map[string]alertCase{
	"CroftOperatorDown": {
		fires:   map[string]string{`croft_operator_heartbeat_timestamp_seconds`: `0 60 60x240`},
		silent:  map[string]string{`croft_operator_heartbeat_timestamp_seconds`: `0+60x240`},
		summary: "No croft operator has renewed its heartbeat",
	},
	"CroftReconcileErrors": {
		fires: map[string]string{
			`croft_build_info` + ours: `1x240`,
			`controller_runtime_reconcile_total{controller="tenant",result="error",` + us + `}`: `0+6x240`,
		},
		// Another operator's errors, and croft's own if they are rare.
		silent: map[string]string{
			`croft_build_info` + ours: `1x240`,
			`controller_runtime_reconcile_total{controller="nodeclaim",result="error",` + theirs + `}`: `0+60x240`,
			`controller_runtime_reconcile_total{controller="tenant",result="error",` + us + `}`:        `0 1x240`,
		},
		labels:  map[string]string{"controller": "tenant"},
		summary: "croft's controller tenant fails repeatedly",
	},
	"CroftReconcileSlow": {
		fires: map[string]string{
			`croft_build_info` + ours: `1x240`,
			`controller_runtime_reconcile_time_seconds_bucket{controller="tenant",le="30",` + us + `}`:   `0+9x240`,
			`controller_runtime_reconcile_time_seconds_bucket{controller="tenant",le="60",` + us + `}`:   `0+10x240`,
			`controller_runtime_reconcile_time_seconds_bucket{controller="tenant",le="+Inf",` + us + `}`: `0+10x240`,
		},
		silent: map[string]string{
			`croft_build_info` + ours: `1x240`,
			`controller_runtime_reconcile_time_seconds_bucket{controller="tenant",le="1",` + us + `}`:    `0+10x240`,
			`controller_runtime_reconcile_time_seconds_bucket{controller="tenant",le="60",` + us + `}`:   `0+10x240`,
			`controller_runtime_reconcile_time_seconds_bucket{controller="tenant",le="+Inf",` + us + `}`: `0+10x240`,
		},
		labels:  map[string]string{"controller": "tenant"},
		summary: "croft's controller tenant takes more than 30 s for one object in a hundred",
	},
	"CroftQueueGrows": {
		fires: map[string]string{
			`croft_build_info` + ours: `1x240`, `workqueue_depth{name="tenant",controller="tenant",priority="0",` + us + `}`: `150x240`,
		},
		silent: map[string]string{
			`croft_build_info` + ours: `1x240`,
			`workqueue_depth{name="tenant",controller="tenant",priority="0",` + us + `}`:   `150 150 0x240`,
			`workqueue_depth{name="nodes",controller="nodes",priority="0",` + theirs + `}`: `150x240`,
		},
		labels:  map[string]string{"controller": "tenant"},
		summary: "150 objects wait for croft's controller tenant",
	},
	"CroftContention": {
		fires:   map[string]string{`croft_retries_total{controller="tenant",reason="conflict"}`: `0+90x240`},
		silent:  map[string]string{`croft_retries_total{controller="tenant",reason="conflict"}`: `0+30x240`},
		labels:  map[string]string{"controller": "tenant", "reason": "conflict"},
		summary: "Another writer contends with croft's controller tenant (conflict)",
	},
	"CroftPlatformChanged": {
		fires:   map[string]string{`croft_repairs_total{tenant="",kind="ClusterRole"}`: `0x10 1x230`},
		silent:  map[string]string{`croft_repairs_total{tenant="",kind="ClusterRole"}`: `7x240`, `croft_repairs_total{tenant="shop",kind="RoleBinding"}`: `0+1x240`},
		labels:  map[string]string{"kind": "ClusterRole"},
		summary: "A user or program changed or deleted a ClusterRole of croft, which concerns every tenant",
	},
	"CroftDriftRepeats": {
		fires:   map[string]string{`croft_repairs_total{tenant="shop",kind="RoleBinding"}`: `0+1x240`},
		silent:  map[string]string{`croft_repairs_total{tenant="shop",kind="RoleBinding"}`: `0x20 9x220`, `croft_repairs_total{tenant="",kind="ClusterRole"}`: `0+1x240`},
		labels:  map[string]string{"tenant": "shop", "kind": "RoleBinding"},
		summary: "RoleBinding objects of tenant shop are changed repeatedly",
		at:      time.Hour,
	},
	"CroftConnectionNotClosed": {
		// The operator stops after ten minutes, before the end.
		fires: map[string]string{
			`croft_operator_heartbeat_timestamp_seconds`:                               `0+60x10 stale`,
			`croft_connection_end_timestamp_seconds{tenant="shop",caller="billing"}`:   `900x10 stale`,
			`croft_connection_end_timestamp_seconds{tenant="shop",caller="later"}`:     `9000x10 stale`,
			`croft_connection_end_timestamp_seconds{tenant="shop",caller="withdrawn"}`: `900x5 stale`,
		},
		// The operator closes it at the end.
		silent: map[string]string{
			`croft_operator_heartbeat_timestamp_seconds`:                             `0+60x240`,
			`croft_connection_end_timestamp_seconds{tenant="shop",caller="billing"}`: `900x15 stale`,
		},
		labels:  map[string]string{"tenant": "shop", "caller": "billing"},
		summary: "Pods of tenant billing can connect to tenant shop, although the consent ended at 1970-01-01 00:15:00 +0000 UTC",
		at:      time.Hour,
	},
	"CroftVerifyBreached": {
		fires:   map[string]string{`croft_verify_results{result="breached"}`: `2x240`},
		silent:  map[string]string{`croft_verify_results{result="breached"}`: `0x240`, `croft_verify_results{result="not_tried"}`: `40x240`},
		summary: "croft verify found 2 breaches",
	},
	"CroftVerifyInconclusive": {
		fires:   map[string]string{`croft_verify_results{result="blocked_elsewhere"}`: `3x240`},
		silent:  map[string]string{`croft_verify_results{result="blocked_elsewhere"}`: `0x240`, `croft_verify_results{result="not_tried"}`: `40x240`},
		summary: "3 attacks of croft verify prove nothing about their walls",
	},
	"CroftVerifyStale": {
		fires:   map[string]string{`croft_verify_timestamp_seconds`: `-200000x240`},
		silent:  map[string]string{`croft_verify_timestamp_seconds`: `-150000x240`},
		summary: "croft verify was last recorded 2d 7h 58m 20s ago",
	},
	"CroftPolicyFails": {
		fires:   map[string]string{formatCheckSeries(`croft-pods`, `compile_error`, `deny`): `0+5x240`},
		silent:  map[string]string{formatCheckSeries(`croft-pods`, `invalid_error`, `deny`): `0+5x240`, formatCheckSeries(`others`, `compile_error`, `deny`): `0+5x240`},
		labels:  map[string]string{"policy": "croft-pods", "error_type": "compile_error"},
		summary: "The API server cannot evaluate croft-pods (compile_error)",
	},
	"CroftPolicyDoesNotCompile": {
		fires:   map[string]string{`croft_policy_type_warnings{policy="croft-pods"}`: `2x240`},
		silent:  map[string]string{`croft_policy_type_warnings{policy="croft-pods"}`: `0x240`},
		labels:  map[string]string{"policy": "croft-pods"},
		summary: "2 expressions of croft-pods do not compile against the kinds of this cluster",
	},
	"CroftDenialsPersist": {
		fires: map[string]string{
			`croft_policy_info{policy="croft-pods",wall="policy"}`: `1x240`, formatCheckSeries(`croft-pods`, `invalid_error`, `deny`): `0+120x240`,
		},
		silent: map[string]string{
			`croft_policy_info{policy="croft-pods",wall="policy"}`:   `1x240`,
			formatCheckSeries(`croft-pods`, `invalid_error`, `warn`): `0+6000x240`, formatCheckSeries(`others`, `invalid_error`, `deny`): `0+120x240`,
		},
		labels:  map[string]string{"policy": "croft-pods", "wall": "policy"},
		summary: "croft-pods refuses 2 requests a second",
	},
	"CroftPlatformNotReady": {
		fires:   map[string]string{formatConditionSeries("platform", `condition="Ready",status="False",reason="EngineMissing"`): `1x240`},
		silent:  map[string]string{formatConditionSeries("platform", `condition="Ready",status="False",reason="ApplyFailed"`): `1 1 1 _x240`},
		labels:  map[string]string{"reason": "EngineMissing"},
		summary: "The Platform is not Ready: EngineMissing",
	},
	"CroftPoolNotReady": {
		fires:   map[string]string{formatConditionSeries("pool", `pool="apps",condition="Ready",status="False",reason="NodePoolNotReady"`): `1x240`},
		silent:  map[string]string{formatConditionSeries("pool", `pool="apps",condition="Ready",status="False",reason="InUse"`): `1x240`},
		labels:  map[string]string{"pool": "apps", "reason": "NodePoolNotReady"},
		summary: "Pool apps is not Ready: NodePoolNotReady",
	},
	"CroftTenantNotReady": {
		fires:   map[string]string{formatConditionSeries("tenant", `tenant="shop",condition="Ready",status="False",reason="Invalid"`): `1x240`},
		silent:  map[string]string{formatConditionSeries("tenant", `tenant="shop",condition="Ready",status="False",reason="Deleting"`): `1x240`},
		labels:  map[string]string{"tenant": "shop", "reason": "Invalid"},
		summary: "Tenant shop is not Ready: Invalid",
	},
	"CroftTenantNotEnforced": {
		fires:   map[string]string{formatConditionSeries("tenant", `tenant="shop",condition="Enforced",status="False",reason="NotEnforcedYet"`): `1x240`},
		silent:  map[string]string{formatConditionSeries("tenant", `tenant="shop",condition="Enforced",status="False",reason="NotEnforcedYet"`): `1 1 _x240`},
		labels:  map[string]string{"tenant": "shop", "reason": "NotEnforcedYet"},
		summary: "Policies do not place pods of tenant shop: NotEnforcedYet",
	},
	"CroftTenantStaysDeleting": {
		fires:   map[string]string{formatConditionSeries("tenant", `tenant="shop",condition="Ready",status="False",reason="Deleting"`): `1x240`},
		silent:  map[string]string{formatConditionSeries("tenant", `tenant="shop",condition="Ready",status="False",reason="Deleting"`): `1x30 _x210`},
		labels:  map[string]string{"tenant": "shop"},
		summary: "The deletion of tenant shop has not completed for an hour",
	},
	"CroftQuotaNearlyUsed": {
		fires:   map[string]string{`croft_tenant_quota_used_ratio{tenant="shop",resource="pods"}`: `0.95x240`},
		silent:  map[string]string{`croft_tenant_quota_used_ratio{tenant="shop",resource="pods"}`: `0.85x240`},
		labels:  map[string]string{"tenant": "shop", "resource": "pods"},
		summary: "Tenant shop uses 95% of its quota of pods",
	},
	"CroftPodsRefused": {
		fires:   map[string]string{`croft_tenant_refused_workloads{tenant="shop"}`: `2x240`},
		silent:  map[string]string{`croft_tenant_refused_workloads{tenant="shop"}`: `2x20 _x220`},
		labels:  map[string]string{"tenant": "shop"},
		summary: "The pods of 2 workloads of tenant shop are refused",
	},
	"CroftBudgetSpent": {
		fires:   map[string]string{`croft_tenant_budget_spent_ratio{tenant="shop"}`: `1.01x240`},
		silent:  map[string]string{`croft_tenant_budget_spent_ratio{tenant="shop"}`: `0.99x240`},
		labels:  map[string]string{"tenant": "shop"},
		summary: "Tenant shop has spent 101% of its budget for this month",
	},
	"CroftSharesRestless": {
		fires:   map[string]string{`croft_quota_shares_moved_total{tenant="shop"}`: `0+3x240`},
		silent:  map[string]string{`croft_quota_shares_moved_total{tenant="shop"}`: `0+1x240`},
		labels:  map[string]string{"tenant": "shop"},
		summary: "croft changes shares of the quota of tenant shop 180 times an hour",
		at:      2 * time.Hour,
	},
	"CroftInterfacesThrottled": {
		fires:   map[string]string{`croft_ec2_calls_total{action="CreateNetworkInterface",result="throttled"}`: `0+12x240`},
		silent:  map[string]string{`croft_ec2_calls_total{action="CreateNetworkInterface",result="throttled"}`: `0+3x240`},
		labels:  map[string]string{"action": "CreateNetworkInterface"},
		summary: "AWS throttles CreateNetworkInterface: nodes wait for their network interfaces",
	},
	"CroftInterfacesOrphaned": {
		fires:   map[string]string{`croft_interfaces{network="n3",state="orphaned"}`: `2x240`},
		silent:  map[string]string{`croft_interfaces{network="n3",state="orphaned"}`: `2 2 2 0x240`},
		labels:  map[string]string{"network": "n3"},
		summary: "2 interfaces of network n3 have no node and are not deleted",
	},
	"CroftNodeNetworksPending": {
		fires:   map[string]string{`croft_node_networks_waiting_since_timestamp_seconds{pool="telco"}`: `0x240`},
		silent:  map[string]string{`croft_node_networks_waiting_since_timestamp_seconds{pool="telco"}`: `0+60x240`},
		labels:  map[string]string{"pool": "telco"},
		summary: "A node of pool telco has been waiting for its secondary networks for more than ten minutes",
	},
	"CroftNetworkAddressesLow": {
		fires: map[string]string{
			`croft_network_addresses{network="n3",zone="us-west-2a"}`: `32x240`, `croft_network_addresses_used{network="n3",zone="us-west-2a"}`: `30x240`,
		},
		silent: map[string]string{
			`croft_network_addresses{network="n3",zone="us-west-2a"}`: `32x240`, `croft_network_addresses_used{network="n3",zone="us-west-2a"}`: `28 30 32 30 28x236`,
		},
		labels:  map[string]string{"network": "n3", "zone": "us-west-2a"},
		summary: "93.75% of the addresses of network n3 in us-west-2a are used",
	},
	"CroftProxyErrors": {
		fires: map[string]string{
			`croft_proxy_requests_total{method="get",code="200"}`: `0+90x240`, `croft_proxy_requests_total{method="get",code="502"}`: `0+10x240`,
		},
		silent: map[string]string{
			`croft_proxy_requests_total{method="get",code="403"}`: `0+90x240`, `croft_proxy_requests_total{method="get",code="502"}`: `0+1x240`,
		},
		summary: "croft proxy responds to 10% of the requests with an error of its own or of the API server",
	},
	"CroftProxySlow": {
		fires: map[string]string{
			`croft_proxy_request_duration_seconds_bucket{method="get",le="4.096"}`:  `0+90x240`,
			`croft_proxy_request_duration_seconds_bucket{method="get",le="16.384"}`: `0+100x240`,
			`croft_proxy_request_duration_seconds_bucket{method="get",le="+Inf"}`:   `0+100x240`,
		},
		silent: map[string]string{
			`croft_proxy_request_duration_seconds_bucket{method="get",le="1.024"}`:  `0+100x240`,
			`croft_proxy_request_duration_seconds_bucket{method="get",le="16.384"}`: `0+100x240`,
			`croft_proxy_request_duration_seconds_bucket{method="get",le="+Inf"}`:   `0+100x240`,
		},
		summary: "One request in a hundred takes croft proxy more than 15.16s",
	},
	"CroftLedgerRecordsNothing": {
		// The ledger has stored an hour, and was then removed or does not start any more.
		fires:   map[string]string{`croft_ledger_last_hour_timestamp_seconds`: `0x10 _x230`},
		silent:  map[string]string{`croft_ledger_last_hour_timestamp_seconds`: `-4200+60x240`},
		summary: "The last hour that croft ledger has stored ended 2h 30m 0s ago",
		at:      150 * time.Minute,
	},
	"CroftSecretNotCopied": {
		fires:   map[string]string{`croft_secret_copies_failed{source="registry"}`: `3x240`},
		silent:  map[string]string{`croft_secret_copies_failed{source="registry"}`: `3 0x239`},
		labels:  map[string]string{"source": "registry"},
		summary: "3 copies of the Secret registry are missing or old",
	},
	"CroftSecretCopierDown": {
		fires:   map[string]string{`croft_secret_copies_failed{source="registry"}`: `0x5 stale`},
		silent:  map[string]string{`croft_secret_copies_failed{source="registry"}`: `0x240`},
		summary: "croft copy-secrets does not run",
	},
	"CroftLedgerStoreErrors": {
		fires:   map[string]string{`croft_ledger_store_errors_total{operation="write"}`: `0+60x240`},
		silent:  map[string]string{`croft_ledger_store_errors_total{operation="write"}`: `3x240`},
		labels:  map[string]string{"operation": "write"},
		summary: "croft ledger cannot write all of its records",
	},
	"CroftLedgerErrors": {
		fires: map[string]string{
			`croft_ledger_queries_total{resource="budgets",code="200"}`: `0+1x240`, `croft_ledger_queries_total{resource="budgets",code="503"}`: `0+1x240`,
			`croft_ledger_queries_total{resource="metrics",code="200"}`: `0+100x240`,
		},
		silent: map[string]string{
			`croft_ledger_queries_total{resource="costs",code="403"}`: `0+90x240`, `croft_ledger_queries_total{resource="costs",code="503"}`: `0+1x240`,
		},
		labels:  map[string]string{"resource": "budgets"},
		summary: "croft ledger responds to 50% of the requests for budgets with an error of its own or of the API server",
	},
	"CroftLedgerPriceMissing": {
		fires:   map[string]string{`croft_ledger_hours_estimated_total{reason="no_price"}`: `0x60 1x180`},
		silent:  map[string]string{`croft_ledger_hours_estimated_total{reason="no_price"}`: `7x240`, `croft_ledger_hours_estimated_total{reason="gap"}`: `0x60 1x180`},
		summary: "Some nodes, volumes or load balancers have no price: their cost is in no sum of croft ledger",
		at:      2 * time.Hour,
	},
	"CroftProxyRefusesLogins": {
		fires:   map[string]string{`croft_proxy_unauthenticated_requests_total`: `0+120x240`},
		silent:  map[string]string{`croft_proxy_unauthenticated_requests_total`: `0+30x240`},
		summary: "2 requests a second at croft proxy have no valid login",
	},
}
