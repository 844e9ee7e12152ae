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
		Meaning: "cluster-wide objects of the walls are not as they should be, or the placement engine lets pods through",
		Fix:     "the condition's message says what is wrong; [conditions.md](conditions.md) explains the reason",
		Run:     "kubectl describe platform default; croft doctor",
	},
	{
		Name: "CroftPoolNotReady",
		Expr: `max by (pool, reason) (croft_pool_status_condition{condition="Ready", status!="True", reason!="InUse"}) > 0`,
		For:  10 * time.Minute, Severity: Warning,
		Summary: "Pool {{ $labels.pool }} is not Ready: {{ $labels.reason }}",
		Meaning: "the pool is refused, by croft (`Invalid`), by the API server or by Karpenter: no node is added to " +
			"it. Nodes that are there stay",
		Fix: "the condition's message is Karpenter's own, or names the field that is wrong",
		Run: "croft status pool/NAME; croft why nodepool/NAME",
	},
	{
		Name: "CroftTenantNotReady",
		Expr: `max by (tenant, reason) (croft_tenant_status_condition{condition="Ready", status!="True", reason!="Deleting"}) > 0`,
		For:  15 * time.Minute, Severity: Warning,
		Summary: "Tenant {{ $labels.tenant }} is not Ready: {{ $labels.reason }}",
		Meaning: "the tenant's declaration is refused, or a wall of it cannot be written. What stood before stands",
		Fix: "the condition's message says which field or object it is; [conditions.md](conditions.md) explains " +
			"the reason",
		Run: "croft status tenant/NAME",
	},
	{
		Name: "CroftTenantNotEnforced",
		Expr: `max by (tenant, reason) (croft_tenant_status_condition{condition="Enforced", status="False"}) > 0`,
		For:  5 * time.Minute, Severity: Critical,
		Summary: "Pods of tenant {{ $labels.tenant }} are not placed by the policies: {{ $labels.reason }}",
		Meaning: "a dry-run pod of the tenant came back without its pool's node selector, a namespace of it is not " +
			"its own any more, or an API server evaluates its previous rules or does not answer (`APIServerBehind`)",
		Fix: "see whether the policies and their bindings are there, and whether the namespace has the label " +
			"`croft.dev/tenant`. Restart the API server that `APIServerBehind` names: [walls.md](../explanation/walls.md#when-a-rule-is-in-force)",
		Run: "croft doctor; croft verify --tenant NAME",
	},
	{
		Name: "CroftTenantStaysDeleting",
		Expr: `max by (tenant) (croft_tenant_status_condition{condition="Ready", reason="Deleting"}) > 0`,
		For:  time.Hour, Severity: Warning,
		Summary: "Tenant {{ $labels.tenant }} has been on its way out for an hour",
		Meaning: "a namespace of the tenant is not deleted, mostly for a finalizer whose controller was uninstalled. The tenant's " +
			"people have no access any more",
		Fix: "`croft why tenant/NAME` names the objects and finalizers that hold its namespaces up",
		Run: "croft why tenant/NAME",
	},
	{
		Name: "CroftQuotaNearlyUsed", Expr: `max by (tenant, resource) (croft_tenant_quota_used_ratio) > 0.9`,
		For: 30 * time.Minute, Severity: Info,
		Summary: "Tenant {{ $labels.tenant }} uses {{ humanizePercentage $value }} of its quota of {{ $labels.resource }}",
		Meaning: "the tenant is about to be refused objects. Nobody else is concerned",
		Fix:     "tell the team, or raise `quota` of the Tenant",
		Run:     "croft status tenant/NAME",
	},
	{
		Name: "CroftPodsRefused", Expr: `max by (tenant) (croft_tenant_refused_workloads) > 0`,
		For: 30 * time.Minute, Severity: Info,
		Summary: "The pods of {{ $value }} workloads of tenant {{ $labels.tenant }} are refused",
		Meaning: "the API server has refused the pods for half an hour: by the tenant's quota, a policy, Pod Security or limits. Only this tenant is concerned",
		Fix:     "tell the team: `croft me` shows it the workloads and the reasons. If the reason is a rule that the team may be exempt from, widen the Tenant's `policy` or `quota`",
		Run:     "croft status tenant/NAME",
	},
	{
		Name: "CroftSharesRestless", Expr: `sum by (tenant) (increase(croft_quota_shares_moved_total[1h])) > 120`,
		For: 10 * time.Minute, Severity: Warning,
		Summary: "Shares of the quota of tenant {{ $labels.tenant }} are moved {{ $value }} times an hour",
		Meaning: "namespaces of the tenant take shares from one another: its quota is too small for what they ask for",
		Fix:     "raise `quota` of the Tenant, or set `quotaMinimums` for the namespaces that must not wait",
		Run:     "croft status tenant/NAME",
	},
}
