package oncall

import "time"

var tenantRecords = []Record{
	{"croft:tenants:count",
		`count by (status, reason) (max by (tenant, status, reason) (croft_tenant_status_condition{condition="Ready"}))`},
	{"croft:pools:count",
		`count by (status, reason) (max by (pool, status, reason) (croft_pool_status_condition{condition="Ready"}))`},
}

var tenantAlerts = []Alert{
	{
		Name: "CroftPlatformNotReady",
		Expr: `max by (reason) (croft_platform_status_condition{condition="Ready", status!="True"}) > 0`,
		For:  5 * time.Minute, Severity: Critical,
		Summary: "The Platform is not Ready: {{ $labels.reason }}",
		Meaning: "cluster-wide objects of the walls differ from the declared state, or the placement engine does not place " +
			"pods",
		Fix: "the condition's message names the problem; [conditions.md](conditions.md) explains the reason",
		Run: "kubectl describe platform default; croft doctor",
	},
	{
		Name: "CroftPoolNotReady",
		Expr: `max by (pool, reason) (croft_pool_status_condition{condition="Ready", status!="True", reason!="InUse"}) > 0`,
		For:  10 * time.Minute, Severity: Warning,
		Summary: "Pool {{ $labels.pool }} is not Ready: {{ $labels.reason }}",
		Meaning: "croft (`Invalid`), the API server or Karpenter refuses the pool: it gets no new nodes. Existing nodes stay",
		Fix:     "the condition's message is Karpenter's own, or names the wrong field",
		Run:     "croft status pool/NAME; croft why nodepool/NAME",
	},
	{
		Name: "CroftTenantNotReady",
		Expr: `max by (tenant, reason) (croft_tenant_status_condition{condition="Ready", status!="True", reason!="Deleting"}) > 0`,
		For:  15 * time.Minute, Severity: Warning,
		Summary: "Tenant {{ $labels.tenant }} is not Ready: {{ $labels.reason }}",
		Meaning: "the tenant's declaration is invalid, or one of its walls cannot be written. The walls that were written " +
			"before stay in force",
		Fix: "the condition's message names the field or the object; [conditions.md](conditions.md) explains the reason",
		Run: "croft status tenant/NAME",
	},
	{
		Name: "CroftTenantNotEnforced",
		Expr: `max by (tenant, reason) (croft_tenant_status_condition{condition="Enforced", status="False"}) > 0`,
		For:  5 * time.Minute, Severity: Critical,
		Summary: "Policies do not place pods of tenant {{ $labels.tenant }}: {{ $labels.reason }}",
		Meaning: "a dry-run pod of the tenant was returned without its pool's node selector, one of its namespaces no longer " +
			"belongs to it, or an API server evaluates its previous rules or does not respond (`APIServerBehind`)",
		Fix: "check that the policies and their bindings exist, and that the namespace has the label `croft.dev/tenant`. " +
			"Restart the API server that `APIServerBehind` names: [walls.md](../explanation/walls.md#when-a-rule-is-in-force)",
		Run: "croft doctor; croft verify --tenant NAME",
	},
	{
		Name: "CroftTenantStaysDeleting",
		Expr: `max by (tenant) (croft_tenant_status_condition{condition="Ready", reason="Deleting"}) > 0`,
		For:  time.Hour, Severity: Warning,
		Summary: "The deletion of tenant {{ $labels.tenant }} has not completed for an hour",
		Meaning: "a namespace of the tenant is not deleted, usually because of a finalizer whose controller was uninstalled. " +
			"The tenant's people no longer have access",
		Fix: "`croft why tenant/NAME` names the objects and finalizers that delay the deletion of its namespaces",
		Run: "croft why tenant/NAME",
	},
	{
		Name: "CroftQuotaNearlyUsed", Expr: `max by (tenant, resource) (croft_tenant_quota_used_ratio) > 0.9`,
		For: 30 * time.Minute, Severity: Info,
		Summary: "Tenant {{ $labels.tenant }} uses {{ humanizePercentage $value }} of its quota of {{ $labels.resource }}",
		Meaning: "the API server will soon refuse the tenant's new objects. Other tenants are not affected",
		Fix:     "inform the team, or raise `quota` of the Tenant",
		Run:     "croft status tenant/NAME",
	},
	{
		Name: "CroftPodsRefused", Expr: `max by (tenant) (croft_tenant_refused_workloads) > 0`,
		For: 30 * time.Minute, Severity: Info,
		Summary: "The pods of {{ $value }} workloads of tenant {{ $labels.tenant }} are refused",
		Meaning: "the API server has refused the pods for half an hour: by the tenant's quota, a policy, Pod Security or " +
			"limits. Other tenants are not affected",
		Fix: "inform the team: `croft me` shows the workloads and the reasons. If a rule is the reason and the team may " +
			"get an exception, extend the Tenant's `policy` or `quota`",
		Run: "croft status tenant/NAME",
	},
	{
		Name: "CroftBudgetSpent", Expr: `max by (tenant) (croft_tenant_budget_spent_ratio) >= 1`,
		For: 30 * time.Minute, Severity: Info,
		Summary: "Tenant {{ $labels.tenant }} has spent {{ humanizePercentage $value }} of its budget for this month",
		Meaning: "the cost of the month has reached the tenant's budget. If a stage of the budget is in force, the API server " +
			"refuses its new pods. Existing pods stay, and other tenants are not affected",
		Fix: "inform the team, or raise `budget` of the Tenant: [budgets.md](../how-to/budgets.md)",
		Run: "croft cost --budgets",
	},
	{
		Name: "CroftSharesRestless", Expr: `sum by (tenant) (increase(croft_quota_shares_moved_total[1h])) > 120`,
		For: 10 * time.Minute, Severity: Warning,
		Summary: "croft changes shares of the quota of tenant {{ $labels.tenant }} {{ $value }} times an hour",
		Meaning: "namespaces of the tenant take shares from one another: its quota is too small for their requests",
		Fix:     "raise `quota` of the Tenant, or set `quotaMinimums` for the namespaces that must not wait",
		Run:     "croft status tenant/NAME",
	},
}
