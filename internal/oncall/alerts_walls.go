package oncall

import "time"

var wallRecords = []Record{
	// By rule and wall: the API server's own counts, joined with croft's policies by name.
	{"croft:policy_denials:rate5m", `sum by (policy) (
  rate(apiserver_validating_admission_policy_check_total{policy=~"croft-.*", enforcement_action="deny"}[5m]))
* on (policy) group_left (wall) max by (policy, wall) (croft_policy_info)`},
	// The API server counts an ordinary denial as invalid_error.
	{"croft:policy_errors:rate5m", `sum by (policy, error_type) (
  rate(apiserver_validating_admission_policy_check_total{policy=~"croft-.*", error_type=~"compile_error|out_of_budget"}[5m]))`},
}

var wallAlerts = []Alert{
	{
		Name: "CroftPlatformChanged", Expr: `sum by (kind) (increase(croft_repairs_total{tenant=""}[10m])) > 0`,
		Severity: Warning,
		Summary:  "Somebody changed or deleted a {{ $labels.kind }} of croft's, which concerns every tenant",
		Meaning:  "an object of the platform or of a pool was put back. Until then, for about a second, it did not hold",
		Fix: "find out who did it: the operator's log names the field manager of a change, the audit log of the " +
			"API server who deleted",
		Run: "kubectl get events -A --field-selector reason=PutBack",
	},
	{
		Name: "CroftDriftRepeats", Expr: `sum by (tenant, kind) (increase(croft_repairs_total{tenant!=""}[1h])) > 20`,
		Severity: Warning,
		Summary:  "{{ $labels.kind }} objects of tenant {{ $labels.tenant }} are changed again and again",
		Meaning:  "something else also manages the tenant's walls, and croft undoes it each time",
		Fix:      "take the objects out of the pipeline or controller whose field manager the operator's log names",
		Run:      "kubectl describe tenant NAME",
	},
	{
		Name: "CroftVerifyBreached", Expr: `max(croft_verify_results{result="breached"}) > 0`,
		Severity: Critical,
		Summary:  "croft verify found {{ $value }} breaches",
		Meaning: "in the last recorded run an attack went through that a wall has to stop, or something was stopped that a tenant " +
			"must be able to do",
		Fix: "run it again by hand: it names the attack and what should have stopped it; then look whether that stands",
		Run: "croft verify; croft status",
	},
	{
		Name: "CroftVerifyInconclusive", Expr: `max(croft_verify_results{result="blocked_elsewhere"}) > 0`,
		Severity: Warning,
		Summary:  "{{ $value }} attacks of croft verify say nothing about their walls",
		Meaning: "attacks failed, but not by the wall that should stop them: something else was in the way, such as a " +
			"webhook that did not answer",
		Fix: "run it again by hand, and read what stopped them",
		Run: "croft verify",
	},
	{
		Name: "CroftVerifyStale", Expr: `time() - max(croft_verify_timestamp_seconds) > 2 * 86400`,
		For: 10 * time.Minute, Severity: Warning,
		Summary: "croft verify was last recorded {{ humanizeDuration $value }} ago",
		Meaning: "the regular run does not come to its end, or nobody started it. A cluster where no run was ever recorded raises no " +
			"alert",
		Fix: "look at the CronJob or the pipeline that runs `croft verify --record`",
		Run: "kubectl get platform default -o yaml",
	},
	{
		Name: "CroftPolicyFails", Expr: `sum by (policy, error_type) (croft:policy_errors:rate5m) > 0`,
		For: 5 * time.Minute, Severity: Critical,
		Summary: "The API server cannot evaluate {{ $labels.policy }} ({{ $labels.error_type }})",
		Meaning: "requests of tenants that the policy is about are refused, since croft's policies fail closed: the wall holds, and " +
			"teams cannot work",
		Fix: "see which request it is (the API server's answer names the policy), and report it to croft's maintainers with a " +
			"support bundle; `out_of_budget` means a very large object",
		Run: "croft support-bundle",
	},
	{
		Name: "CroftPolicyDoesNotCompile", Expr: `max by (policy) (croft_policy_type_warnings) > 0`,
		For: 15 * time.Minute, Severity: Warning,
		Summary: "{{ $value }} expressions of {{ $labels.policy }} do not fit the kinds of this cluster",
		Meaning: "the kube-controller-manager has checked the policy against the cluster's kinds; a kind of another " +
			"version may have other fields",
		Fix: "read the warnings; a newer croft may know the kind's version",
		Run: "kubectl get validatingadmissionpolicies -o jsonpath='{.items[*].status.typeChecking}'",
	},
	{
		Name: "CroftDenialsPersist", Expr: `sum by (policy, wall) (croft:policy_denials:rate5m) > 1`,
		For: 30 * time.Minute, Severity: Info,
		Summary: "{{ $labels.policy }} refuses {{ $value }} requests a second",
		Meaning: "a controller or pipeline of a tenant tries again and again what the rule refuses. The wall holds",
		Fix: "find the tenant in the API server's audit log, and tell the team: `croft why` explains the refusal " +
			"and who can allow more",
		Run: "croft why deployment/NAME -n NAMESPACE",
	},
}
