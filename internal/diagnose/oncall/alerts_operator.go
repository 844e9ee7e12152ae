package oncall

import "time"

// ofCroft limits metrics that every controller-runtime process has to croft's processes.
const ofCroft = " * on (job, instance) group_left () croft_build_info"

var operatorRecords = []Record{
	{"croft:reconcile_duration_seconds:p99", `histogram_quantile(0.99, sum by (controller, le) (
  rate(controller_runtime_reconcile_time_seconds_bucket[10m])` + ofCroft + `))`},
	{"croft:reconcile_errors:rate5m", `sum by (controller) (
  rate(controller_runtime_reconcile_total{result="error"}[5m])` + ofCroft + `)`},
}

var operatorAlerts = []Alert{
	{
		Name: "CroftOperatorDown",
		Expr: `absent(croft_operator_heartbeat_timestamp_seconds)
or time() - max(croft_operator_heartbeat_timestamp_seconds) > 60`,
		For: 2 * time.Minute, Severity: Critical,
		Summary: "No croft operator has renewed its heartbeat",
		Meaning: "no operator leads, or no operator can write. The walls stay in force, since the API server enforces them; " +
			"but no operator reverts drift, closes connections between tenants at their end, or gives new tenants walls, " +
			"and therefore access",
		Fix: "start the operator, or read in its log why it stops; if it runs, check that Prometheus scrapes it, and that " +
			"it may write the Lease `croft-operator`",
		Run: "croft doctor; kubectl -n croft-system get deployments,pods,leases",
	},
	{
		Name: "CroftReconcileErrors", Expr: `croft:reconcile_errors:rate5m > 0.02`,
		For: 15 * time.Minute, Severity: Warning,
		Summary: "croft's controller {{ $labels.controller }} fails repeatedly",
		Meaning: "the API server refuses requests of the operator, for example because a right is missing after an upgrade. " +
			"Existing walls stay in force",
		Fix: "read the errors in the operator's log; after an upgrade run `croft install` of the new version, which " +
			"grants the rights",
		Run: "kubectl -n croft-system logs deployment/croft | grep '\"level\":\"ERROR\"'",
	},
	{
		Name: "CroftReconcileSlow", Expr: `croft:reconcile_duration_seconds:p99 > 30`,
		For: 15 * time.Minute, Severity: Warning,
		Summary: "croft's controller {{ $labels.controller }} takes more than 30 s for one object in a hundred",
		Meaning: "the API server responds slowly, or a tenant has very many namespaces. Drift lasts as long as a reconcile " +
			"takes",
		Fix: "check the API server's latencies, and its priority and fairness; the operator runs as a workload of high " +
			"priority",
		Run: "kubectl get --raw /metrics | grep apiserver_flowcontrol_rejected_requests_total",
	},
	{
		Name: "CroftQueueGrows", Expr: `sum by (controller) (workqueue_depth` + ofCroft + `) > 100`,
		For: 15 * time.Minute, Severity: Warning,
		Summary: "{{ $value }} objects wait for croft's controller {{ $labels.controller }}",
		Meaning: "objects change faster than the operator reconciles them. Drift lasts longer",
		Fix:     "find the writer: `croft_repairs_total` counts drift by tenant; otherwise as for CroftReconcileSlow",
		Run:     "croft status",
	},
	{
		Name: "CroftContention", Expr: `sum by (controller, reason) (rate(croft_retries_total[10m])) > 1`,
		For: 10 * time.Minute, Severity: Warning,
		Summary: "Another writer contends with croft's controller {{ $labels.controller }} ({{ $labels.reason }})",
		Meaning: "another client writes the objects that croft writes, many times a minute",
		Fix:     "find a second operator without leader election, a pipeline, or a policy engine that changes croft's objects",
		Run:     "croft doctor",
	},
}
