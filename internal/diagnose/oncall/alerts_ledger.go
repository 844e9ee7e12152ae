package oncall

import "time"

var ledgerRecords = []Record{
	{"croft:ledger_errors:ratio15m", `sum by (resource) (rate(croft_ledger_queries_total{code=~"5.."}[15m]))
/ sum by (resource) (rate(croft_ledger_queries_total[15m]))`},
}

var ledgerAlerts = []Alert{
	{
		// Not absent(): a platform without a ledger has no such series, and no problem.
		Name: "CroftLedgerRecordsNothing", Expr: `time() - max(last_over_time(croft_ledger_last_hour_timestamp_seconds[3d])) > 7200`,
		For: 5 * time.Minute, Severity: Warning,
		Summary: "The last hour that croft ledger has stored ended {{ humanizeDuration $value }} ago",
		Meaning: "the ledger does not run, or cannot write. No wall depends on it. The next start computes the missing hours from " +
			"the objects that still exist: the cost of objects that disappeared meanwhile is estimated, and objects that existed " +
			"only meanwhile are missing. Budgets keep their stage, and no stricter stage begins",
		Fix: "read in the ledger's log why it stops or cannot write: a full or unattached volume, a Secret of its certificate " +
			"that does not exist, or a right that is missing after an upgrade. Three days after a ledger was removed, the alert ends",
		Run: "kubectl -n croft-system get deployments,pods,persistentvolumeclaims; kubectl -n croft-system logs deployment/croft-ledger",
	},
	{
		Name: "CroftLedgerStoreErrors", Expr: `sum by (operation) (increase(croft_ledger_store_errors_total[15m])) > 0`,
		For: 10 * time.Minute, Severity: Warning,
		Summary: "croft ledger cannot {{ $labels.operation }} all of its records",
		Meaning: "for `write`, observations are only in the memory of the process, which tries again each second: they are lost if it " +
			"ends. For `read`, a file is damaged: its hours are missing in the figures, which name the missing time",
		Fix: "for `write`, enlarge or repair the volume of the PersistentVolumeClaim `croft-ledger`. For `read`, restore the file " +
			"that the log names from a backup, or remove it and accept the missing hours",
		Run: "kubectl -n croft-system logs deployment/croft-ledger | grep '\"level\":\"ERROR\"'",
	},
	{
		Name: "CroftLedgerErrors", Expr: `croft:ledger_errors:ratio15m > 0.1`,
		For: 15 * time.Minute, Severity: Warning,
		Summary: "croft ledger responds to {{ humanizePercentage $value }} of the requests for {{ $labels.resource }} with an error of " +
			"its own or of the API server",
		Meaning: "users of croft cost and of the dashboard get no costs. Without `budgets`, the stages of budgets stay as they are. " +
			"Workloads are not affected",
		Fix: "the ledger's log shows whether it cannot review tokens and rights, cannot read its records, or is busy with answers " +
			"for the whole cluster",
		Run: "kubectl -n croft-system logs deployment/croft-ledger",
	},
	{
		Name: "CroftLedgerPriceMissing", Expr: `sum(increase(croft_ledger_hours_estimated_total{reason="no_price"}[3h])) > 0`,
		Severity: Info,
		Summary:  "Some nodes, volumes or load balancers have no price: their cost is in no sum of croft ledger",
		Meaning: "a cost of the last three hours is unknown. Figures that lack it are marked with `?`, and budgets do not count it. " +
			"Prices that are added later count from then on",
		Fix: "the last lines of the output name the missing prices: add them to the file of `--prices`, or name Karpenter's metrics " +
			"with `--karpenter-metrics`: [cost.md](../how-to/cost.md#set-prices)",
		Run: "croft cost --ledger URL --since 3h",
	},
}
