package metric

import (
	"cmp"
	"slices"
)

var controllerLabel = Label{"controller", "`platform`, `pool`, `tenant` and the others"}

// Others returns the metrics of other projects that alerts and dashboards use.
// controller-runtime's libraries serve the metrics of croft's processes.
func Others() []Metric {
	all := []Metric{
		{
			Name: "controller_runtime_reconcile_total", Type: Counter, Process: Operator,
			Labels: []Label{controllerLabel, {"result", "`success`, `error`, `requeue` or `requeue_after`"}},
			Help:   "Reconciles.",
		},
		{
			Name: "controller_runtime_reconcile_time_seconds", Type: Histogram, Process: Operator,
			Labels: []Label{controllerLabel},
			Help:   "Duration of reconciles in seconds.",
		},
		{
			Name: "workqueue_depth", Type: Gauge, Process: Operator,
			Labels: []Label{{"name", "the controller"}, controllerLabel, {Name: "priority"}},
			Help:   "Objects that wait to be reconciled.",
		},
		{
			Name: "workqueue_queue_duration_seconds", Type: Histogram, Process: Operator,
			Labels: []Label{{"name", "the controller"}, controllerLabel},
			Help:   "How long objects wait to be reconciled.",
		},
		{
			Name: "rest_client_requests_total", Type: Counter, Process: Operator,
			Labels: []Label{{Name: "code"}, {Name: "method"}, {Name: "host"}},
			Help:   "Requests to the API server.",
		},
		{
			Name: "apiserver_validating_admission_policy_check_total", Type: Counter, Process: APIServer,
			Labels: []Label{
				{Name: "policy"}, {Name: "policy_binding"},
				{"error_type", "`invalid_error` for an ordinary refusal; `compile_error`, `out_of_budget`"},
				{"enforcement_action", "`deny`, `warn` or `audit`"},
			},
			Help: "Requests that a validating admission policy refused, warned of or could not evaluate.",
		},
		{
			Name: "apiserver_admission_controller_admission_duration_seconds", Type: Histogram, Process: APIServer,
			Labels: []Label{
				{"name", "`ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy` are all policies together"},
				{Name: "operation"}, {Name: "rejected"}, {Name: "type"},
			},
			Help: "Duration of admission plugins, in seconds.",
		},
	}
	slices.SortFunc(all, compareMetrics)
	return all
}

func compareMetrics(a, b Metric) int {
	return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(a.Name, b.Name))
}
