package metric

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	conditionLabels = []Label{
		{"condition", "`Ready`, `Accepted` and the others of [conditions.md](conditions.md)"},
		{"status", "`True`, `False` or `Unknown`"},
		{"reason", "the condition's reason"},
	}
	tenantLabel = Label{Name: "tenant"}
)

// The operator's counters and its state.
var (
	// Repairs counts repairs of drift.
	Repairs = Metric{
		Name: "croft_repairs_total", Type: Counter, Process: Operator,
		Labels: []Label{{"tenant", "empty for objects of the platform and of pools"}, {Name: "kind"}},
		Help:   "Objects that were changed or deleted, and that croft restored.",
	}
	// Retries counts lost races.
	Retries = Metric{
		Name: "croft_retries_total", Type: Counter, Process: Operator,
		Labels: []Label{
			{"controller", "`platform`, `pool`, `tenant` or `secondarynetwork`"},
			{"reason", "`conflict`, `not_found`, `already_exists` or `kind_pending` (Gatekeeper is late)"},
		},
		Help: "Reconciles that conflicted with another writer and were retried.",
	}
	// SharesMoved counts changes of the division of quotas.
	SharesMoved = Metric{
		Name: "croft_quota_shares_moved_total", Type: Counter, Process: Operator, Labels: []Label{tenantLabel},
		Help: "Changes of a namespace's share of its tenant's quota.",
	}
	// Heartbeat is the time of the operator's last heartbeat.
	Heartbeat = Metric{
		Name: "croft_operator_heartbeat_timestamp_seconds", Type: Gauge, Process: Operator,
		Help: "Unix time at which the leading operator last wrote its heartbeat, the Lease croft-system/croft-operator.",
	}
	// BuildInfo has the version as a label.
	BuildInfo = Metric{
		Name: "croft_build_info", Type: Gauge, Process: Operator, Labels: []Label{{Name: "version"}},
		Help: "Always 1, with the operator's version.",
	}
)

// The state of declared objects. Only the leading operator serves it.
var (
	// PlatformCondition has a series for each condition of the Platform.
	PlatformCondition = Metric{
		Name: "croft_platform_status_condition", Type: Gauge, Process: Operator, Labels: conditionLabels,
		Help: "Always 1: a condition of the Platform, as it is now.",
	}
	// PoolCondition has a series for each condition of a Pool.
	PoolCondition = Metric{
		Name: "croft_pool_status_condition", Type: Gauge, Process: Operator,
		Labels: append([]Label{{Name: "pool"}}, conditionLabels...),
		Help:   "Always 1: a condition of a Pool, as it is now.",
	}
	// TenantCondition has a series for each condition of a Tenant.
	TenantCondition = Metric{
		Name: "croft_tenant_status_condition", Type: Gauge, Process: Operator,
		Labels: append([]Label{tenantLabel}, conditionLabels...),
		Help:   "Always 1: a condition of a Tenant, as it is now.",
	}
	// QuotaUse is the used fraction of a quota.
	QuotaUse = Metric{
		Name: "croft_tenant_quota_used_ratio", Type: Gauge, Process: Operator,
		Labels: []Label{tenantLabel, {Name: "resource"}},
		Help: "Used part of a tenant's quota, from 0 to 1, over all of its namespaces; resources of which nothing is " +
			"used are left out.",
	}
	// RefusedWorkloads is the number of workloads whose pods are refused.
	RefusedWorkloads = Metric{
		Name: "croft_tenant_refused_workloads", Type: Gauge, Process: Operator, Labels: []Label{tenantLabel},
		Help: "ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs of a tenant whose pods the API server refuses; " +
			"tenants without one are left out.",
	}
	// BudgetSpent is the spent fraction of a budget.
	BudgetSpent = Metric{
		Name: "croft_tenant_budget_spent_ratio", Type: Gauge, Process: Operator, Labels: []Label{tenantLabel},
		Help: "Fraction of a tenant's budget that is spent in this month, in whole percent; tenants without a budget or a " +
			"figure are left out.",
	}
	// ConnectionEnd is the end of a connection between two tenants.
	ConnectionEnd = Metric{
		Name: "croft_connection_end_timestamp_seconds", Type: Gauge, Process: Operator,
		Labels: []Label{{"tenant", "the called tenant"}, {Name: "caller"}},
		Help: "Unix time at which the operator closes a connection between two tenants that is open in the cluster; " +
			"connections without an end are left out.",
	}
	// PolicyInfo maps admission policies to walls.
	PolicyInfo = Metric{
		Name: "croft_policy_info", Type: Gauge, Process: Operator,
		Labels: []Label{{"policy", "a ValidatingAdmissionPolicy of croft"}, {"wall", "its wall; `shared` if several have rules in it"}},
		Help:   "Always 1: an admission policy of croft in the cluster, for joins with the API server's metrics.",
	}
	// PolicyWarnings counts type-checking warnings.
	PolicyWarnings = Metric{
		Name: "croft_policy_type_warnings", Type: Gauge, Process: Operator, Labels: []Label{{Name: "policy"}},
		Help: "Expressions of a ValidatingAdmissionPolicy that do not compile against the kinds of this cluster, by " +
			"its status.typeChecking.",
	}
	// VerifyTime is when the last recorded run of croft verify ended.
	VerifyTime = Metric{
		Name: "croft_verify_timestamp_seconds", Type: Gauge, Process: Operator,
		Help: "Unix time at which the last recorded run of croft verify ended.",
	}
	// VerifyResults counts the results of the last recorded run of croft verify.
	VerifyResults = Metric{
		Name: "croft_verify_results", Type: Gauge, Process: Operator,
		Labels: []Label{{"result", "`held`, `breached`, `blocked_elsewhere` or `not_tried`"}},
		Help:   "Attacks of the last recorded run of croft verify, by result.",
	}
)

// The operator's metrics of secondary networks. Except for the addresses of pods, which
// require whereabouts, they only exist on AWS.
var (
	// Interfaces counts the interfaces that croft created.
	Interfaces = Metric{
		Name: "croft_interfaces", Type: Gauge, Process: Operator,
		Labels: []Label{{Name: "network"}, {"state", "`attached`, `attaching`, `available` (not attached yet) or " +
			"`orphaned` (no NodeClaim has it; it is deleted after two minutes)"}},
		Help: "Network interfaces that croft created for secondary networks.",
	}
	// AttachSeconds is how long nodes wait for their interfaces.
	AttachSeconds = Metric{
		Name: "croft_interfaces_attach_seconds", Type: Histogram, Process: Operator, Labels: []Label{{Name: "pool"}},
		Help:    "Time from the launch of an instance until all its secondary network interfaces were attached.",
		Buckets: []float64{1, 2, 5, 8, 10, 12, 15, 20, 30, 60, 120, 300},
	}
	// NetworksSeconds is how long nodes have the startup taint.
	NetworksSeconds = Metric{
		Name: "croft_node_networks_seconds", Type: Histogram, Process: Operator, Labels: []Label{{Name: "pool"}},
		Help:    "Time from the registration of a node until its secondary networks were ready and its startup taint was removed.",
		Buckets: []float64{1, 2, 5, 8, 10, 12, 15, 20, 30, 60, 120, 300},
	}
	// NetworksWaiting is since when the oldest node waits.
	NetworksWaiting = Metric{
		Name: "croft_node_networks_waiting_since_timestamp_seconds", Type: Gauge, Process: Operator, Labels: []Label{{Name: "pool"}},
		Help: "Unix time at which the pool's oldest node with the startup taint of secondary networks was registered; " +
			"absent if no node has it.",
	}
	// NetworkUsed is the number of addresses that pods have.
	NetworkUsed = Metric{
		Name: "croft_network_addresses_used", Type: Gauge, Process: Operator, Labels: []Label{{Name: "network"}, {Name: "zone"}},
		Help: "Addresses of a secondary network that pods have in a zone, by whereabouts' IPPools.",
	}
	// NetworkAddresses is the number of addresses that pods may have.
	NetworkAddresses = Metric{
		Name: "croft_network_addresses", Type: Gauge, Process: Operator, Labels: []Label{{Name: "network"}, {Name: "zone"}},
		Help: "Addresses of a secondary network that pods may have in a zone.",
	}
	// EC2Calls counts calls of EC2's API.
	EC2Calls = Metric{
		Name: "croft_ec2_calls_total", Type: Counter, Process: Operator,
		Labels: []Label{{Name: "action"}, {"result", "`ok`, `error`, `throttled`, or `deferred`: not sent, to stay below " +
			"the limits of the API"}},
		Help: "Calls of EC2's API for network interfaces.",
	}
)

// The metrics of croft proxy. No label identifies users: its cardinality would be too high.
var (
	// ProxyRequests counts requests.
	ProxyRequests = Metric{
		Name: "croft_proxy_requests_total", Type: Counter, Process: Proxy,
		Labels: []Label{{Name: "method"}, {"code", "the status code"}},
		Help:   "Completed requests, by method and status code.",
	}
	// ProxyDuration is the duration of requests.
	ProxyDuration = Metric{
		Name: "croft_proxy_request_duration_seconds", Type: Histogram, Process: Proxy, Labels: []Label{{Name: "method"}},
		Help:    "Duration of requests in seconds, excluding watches, logs and streams.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}
	// ProxyOpen is the number of open requests.
	ProxyOpen = Metric{
		Name: "croft_proxy_open_requests", Type: Gauge, Process: Proxy,
		Help: "Requests in progress, including watches, logs and streams.",
	}
	// ProxyUnauthenticated counts failed authentications.
	ProxyUnauthenticated = Metric{
		Name: "croft_proxy_unauthenticated_requests_total", Type: Counter, Process: Proxy,
		Help: "Requests that failed authentication.",
	}
)

// The metrics of croft ledger. No label identifies a tenant: the number of its values would have no bound, and a
// tenant's cost is for the people of this tenant.
var (
	// LedgerStored is the end of the stored hours.
	LedgerStored = Metric{
		Name: "croft_ledger_last_hour_timestamp_seconds", Type: Gauge, Process: Ledger,
		Help: "Unix time at which the last stored hour ended; before there is one, the beginning of the first hour.",
	}
	// LedgerEstimated counts hours that are not exact.
	LedgerEstimated = Metric{
		Name: "croft_ledger_hours_estimated_total", Type: Counter, Process: Ledger,
		Labels: []Label{{"reason", "`gap` (no ledger ran for a part of the hour), `estimate` (a price, or the time of an object, " +
			"is estimated) or `no_price` (a cost is unknown, and in no sum)"}},
		Help: "Stored hours with a figure that is not exact; an hour counts for each of its reasons.",
	}
	// LedgerStoreErrors counts errors of the store.
	LedgerStoreErrors = Metric{
		Name: "croft_ledger_store_errors_total", Type: Counter, Process: Ledger,
		Labels: []Label{{"operation", "`write` (the ledger tries again) or `read` (a file is damaged; each read of it counts)"}},
		Help:   "Errors while the ledger writes or reads its records.",
	}
	// LedgerCopies counts copies of hours in the cluster.
	LedgerCopies = Metric{
		Name: "croft_ledger_hour_copies_total", Type: Counter, Process: Ledger,
		Labels: []Label{{"result", "`written`, `too_large` (the hour is only on the volume) or `failed` (the ledger tries again)"}},
		Help:   "Attempts to copy a stored hour to ConfigMaps, from which the ledger restores it if its volume is lost.",
	}
	// LedgerQueries counts the requests of users.
	LedgerQueries = Metric{
		Name: "croft_ledger_queries_total", Type: Counter, Process: Ledger,
		Labels: []Label{ledgerResourceLabel, {"code", "the status code"}},
		Help:   "Completed requests, by resource and status code.",
	}
	// LedgerDuration is the duration of the requests of users.
	LedgerDuration = Metric{
		Name: "croft_ledger_query_duration_seconds", Type: Histogram, Process: Ledger, Labels: []Label{ledgerResourceLabel},
		Help:    "Duration of requests in seconds.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}
	// LedgerCost is the current cost of everything.
	LedgerCost = Metric{
		Name: "croft_ledger_cost_per_hour", Type: Gauge, Process: Ledger,
		Labels: []Label{{Name: "currency"}, {"kind", "`tenant`, `platform`, `idle` or `unallocated`"}},
		Help: "Cost of an hour in which nothing changes, of the whole cluster, as NOW/HOUR of croft cost; only at /v1/metrics of " +
			"the address for users, for callers who may get costs.croft.dev/metrics.",
	}

	ledgerResourceLabel = Label{"resource", "`costs`, `charges`, `history`, `budgets`, `metrics` or `other`"}
)

// CopiesFailed is the number of missing or old copies of Secrets. It is the only metric of croft copy-secrets.
var CopiesFailed = Metric{
	Name: "croft_secret_copies_failed", Type: Gauge, Process: Copier,
	Labels: []Label{{"source", "the name of the Secret in the namespace `croft-secrets`"}},
	Help:   "Copies of a Secret of the platform that are missing or old; 0 if all of them were written.",
}

// Own returns croft's metrics, by process and name.
func Own() []Metric {
	all := []Metric{
		Repairs, Retries, SharesMoved, Heartbeat, BuildInfo,
		PlatformCondition, PoolCondition, TenantCondition, QuotaUse, RefusedWorkloads, BudgetSpent, ConnectionEnd, PolicyInfo, PolicyWarnings, VerifyTime, VerifyResults,
		Interfaces, AttachSeconds, NetworksSeconds, NetworksWaiting, NetworkUsed, NetworkAddresses, EC2Calls,
		ProxyRequests, ProxyDuration, ProxyOpen, ProxyUnauthenticated,
		LedgerStored, LedgerEstimated, LedgerStoreErrors, LedgerCopies, LedgerQueries, LedgerDuration, LedgerCost,
		CopiesFailed,
	}
	slices.SortFunc(all, compareMetrics)
	return all
}
