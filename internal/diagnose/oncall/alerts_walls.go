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
	// Nothing closes a connection while no operator runs, and then its series ends with the operator's.
	// The rule keeps its own last result as long as there is no heartbeat. A connection that was closed
	// before is not in this result.
	{"croft:connection_end_timestamp_seconds:last", `max by (tenant, caller) (croft_connection_end_timestamp_seconds)
or (croft:connection_end_timestamp_seconds:last unless on () croft_operator_heartbeat_timestamp_seconds)`},
}

var wallAlerts = []Alert{
	{
		Name: "CroftConnectionNotClosed", Expr: `croft:connection_end_timestamp_seconds:last < time() - 60`,
		For: time.Minute, Severity: Critical,
		Summary: "Pods of tenant {{ $labels.caller }} can connect to tenant {{ $labels.tenant }}, although the consent ended at " +
			"{{ humanizeTimestamp $value }}",
		Meaning: "no operator was running at the end of the consent, or the operator cannot delete the network policies of the " +
			"connection. They allow it until they are deleted. All other walls stay in force",
		Fix: "start the operator: it closes the connection within seconds. If it runs, correct the Tenant, or grant the right " +
			"that its log names. To close the connection without the operator, delete the policy that `croft doctor` names",
		Run: "croft doctor; croft reach --from CALLER --to TENANT",
	},
	{
		Name: "CroftPlatformChanged", Expr: `sum by (kind) (increase(croft_repairs_total{tenant=""}[10m])) > 0`,
		Severity: Warning,
		Summary:  "A user or program changed or deleted a {{ $labels.kind }} of croft, which concerns every tenant",
		Meaning:  "the operator restored an object of the platform or of a pool. It was not in force for about a second",
		Fix: "find the author: the operator's log names the field manager of a change, and the API server's audit log the " +
			"user who deleted the object",
		Run: "kubectl get events -A --field-selector reason=Repaired",
	},
	{
		Name: "CroftDriftRepeats", Expr: `sum by (tenant, kind) (increase(croft_repairs_total{tenant!=""}[1h])) > 20`,
		Severity: Warning,
		Summary:  "{{ $labels.kind }} objects of tenant {{ $labels.tenant }} are changed repeatedly",
		Meaning:  "another client also manages the tenant's walls, and croft reverts each of its changes",
		Fix:      "remove the objects from the pipeline or controller whose field manager the operator's log names",
		Run:      "kubectl describe tenant NAME",
	},
	{
		Name: "CroftVerifyBreached", Expr: `max(croft_verify_results{result="breached"}) > 0`,
		Severity: Critical,
		Summary:  "croft verify found {{ $value }} breaches",
		Meaning: "in the last recorded run, an attack succeeded that a wall has to stop, or a request was refused that a " +
			"tenant must be able to make",
		Fix: "run it again by hand: it names the attack and the rule that should have stopped it; then check that the " +
			"rule's policy is in force",
		Run: "croft verify; croft status",
	},
	{
		Name: "CroftVerifyInconclusive", Expr: `max(croft_verify_results{result="blocked_elsewhere"}) > 0`,
		Severity: Warning,
		Summary:  "{{ $value }} attacks of croft verify prove nothing about their walls",
		Meaning:  "the attacks failed, but another component stopped them, such as a webhook that did not respond",
		Fix:      "run it again by hand, and read which component stopped them",
		Run:      "croft verify",
	},
	{
		Name: "CroftVerifyStale", Expr: `time() - max(croft_verify_timestamp_seconds) > 2 * 86400`,
		For: 10 * time.Minute, Severity: Warning,
		Summary: "croft verify was last recorded {{ humanizeDuration $value }} ago",
		Meaning: "the regular run does not complete, or was not started. A cluster in which no run was ever recorded has no " +
			"alert",
		Fix: "check the CronJob or the pipeline that runs `croft verify --record`",
		Run: "kubectl get platform default -o yaml",
	},
	{
		Name: "CroftPolicyFails", Expr: `sum by (policy, error_type) (croft:policy_errors:rate5m) > 0`,
		For: 5 * time.Minute, Severity: Critical,
		Summary: "The API server cannot evaluate {{ $labels.policy }} ({{ $labels.error_type }})",
		Meaning: "the API server refuses the tenants' requests to which the policy applies, since croft's policies fail " +
			"closed: the wall stays in force, and teams cannot work",
		Fix: "find the request (the API server's response names the policy), and report it to croft's maintainers with a " +
			"support bundle; `out_of_budget` means a very large object",
		Run: "croft support-bundle",
	},
	{
		Name: "CroftPolicyDoesNotCompile", Expr: `max by (policy) (croft_policy_type_warnings) > 0`,
		For: 15 * time.Minute, Severity: Warning,
		Summary: "{{ $value }} expressions of {{ $labels.policy }} do not compile against the kinds of this cluster",
		Meaning: "the kube-controller-manager has checked the policy against the cluster's kinds; another version of a kind " +
			"may have other fields",
		Fix: "read the warnings; a newer croft may support the kind's version",
		Run: "kubectl get validatingadmissionpolicies -o jsonpath='{.items[*].status.typeChecking}'",
	},
	{
		Name: "CroftDenialsPersist", Expr: `sum by (policy, wall) (croft:policy_denials:rate5m) > 1`,
		For: 30 * time.Minute, Severity: Info,
		Summary: "{{ $labels.policy }} refuses {{ $value }} requests a second",
		Meaning: "a controller or pipeline of a tenant repeats requests that the rule refuses. The wall stays in force",
		Fix: "find the tenant in the API server's audit log, and inform the team: `croft why` explains the refusal and " +
			"names the person who can allow more",
		Run: "croft why deployment/NAME -n NAMESPACE",
	},
}
