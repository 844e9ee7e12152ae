package oncall

import "time"

var proxyRecords = []Record{
	{"croft:proxy_errors:ratio5m",
		`sum(rate(croft_proxy_requests_total{code=~"5.."}[5m])) / sum(rate(croft_proxy_requests_total[5m]))`},
	{"croft:proxy_request_duration_seconds:p99",
		`histogram_quantile(0.99, sum by (le) (rate(croft_proxy_request_duration_seconds_bucket[10m])))`},
}

var proxyAlerts = []Alert{
	{
		Name: "CroftProxyErrors", Expr: `croft:proxy_errors:ratio5m > 0.05`,
		For: 10 * time.Minute, Severity: Warning,
		Summary: "croft proxy responds to {{ humanizePercentage $value }} of the requests with an error of its own or of the " +
			"API server",
		Meaning: "users of the proxy cannot work; workloads are not affected",
		Fix:     "the proxy's log shows whether it cannot reach the API server, or may not impersonate users",
		Run:     "kubectl -n croft-system logs deployment/croft-proxy",
	},
	{
		Name: "CroftProxySlow", Expr: `croft:proxy_request_duration_seconds:p99 > 4`,
		For: 15 * time.Minute, Severity: Warning,
		Summary: "One request in a hundred takes croft proxy more than {{ humanizeDuration $value }}",
		Meaning: "usually the API server itself is slow; or one user lists very many objects with `-A`",
		Fix:     "compare with the API server's own latencies; add replicas of the proxy if its CPU is used up",
		Run:     "kubectl -n croft-system top pods",
	},
	{
		Name: "CroftProxyRefusesLogins", Expr: `sum(rate(croft_proxy_unauthenticated_requests_total[10m])) > 1`,
		For: 10 * time.Minute, Severity: Warning,
		Summary: "{{ $value }} requests a second at croft proxy have no valid login",
		Meaning: "an identity provider has new keys or another issuer, many tokens expired at the same time, or somebody " +
			"guesses tokens",
		Fix: "compare the AuthenticationConfiguration with the identity provider; the proxy's log has the reasons and " +
			"addresses",
		Run: "kubectl -n croft-system logs deployment/croft-proxy | grep -i authenticat",
	},
}
