package doctor

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var loadTenants = map[string]string{"shop": "shop", "shop-test": "shop", "bank": "bank"}

// expectLoad compares findings with a text. "" expects none.
func expectLoad(t *testing.T, name string, found []Finding, want string) {
	t.Helper()
	switch {
	case want == "" && len(found) > 0:
		t.Errorf("%s: %+v", name, found)
	case want == "":
	case len(found) != 1 || found[0].Severity != Warning || found[0].Fix == "" || !strings.Contains(found[0].Object+": "+found[0].Message, want):
		t.Errorf("%s: %+v, want %q", name, found, want)
	}
}

// TestWaitingPods expects the tenant that has more than half of many waiting pods, in all of its namespaces.
func TestWaitingPods(t *testing.T) {
	for name, test := range map[string]struct {
		waiting map[string]int
		want    string
	}{
		"none":                {nil, ""},
		"few":                 {map[string]int{"shop": 99}, ""},
		"many":                {map[string]int{"shop": 100}, "Tenant/shop: 100 of the 100 pods that wait for a node are its own"},
		"half":                {map[string]int{"shop": 200, "bank": 200}, ""},
		"more than half":      {map[string]int{"shop": 200, "bank": 201}, "Tenant/bank: 201 of the 401 pods"},
		"in two namespaces":   {map[string]int{"shop": 60, "shop-test": 60, "bank": 100}, "Tenant/shop: 120 of the 220 pods"},
		"of the platform":     {map[string]int{"kube-system": 500, "shop": 200}, ""},
		"fewer than the rest": {map[string]int{"kube-system": 150, "shop": 200}, "Tenant/shop: 200 of the 350 pods"},
	} {
		expectLoad(t, name, findWaitingPods(test.waiting, loadTenants), test.want)
	}
}

// TestIsWaiting fails if pods count as load that do not wait for a node.
func TestIsWaiting(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"a new one":                {corev1.Pod{}, true},
		"one without a node":       {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, true},
		"one that starts":          {corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}, false},
		"one with a gate":          {corev1.Pod{Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "x"}}}}, false},
		"one that is deleted":      {corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}, false},
		"one that failed without":  {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}, false},
		"one that ended elsewhere": {corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, false},
	} {
		if got := isWaiting(&test.pod); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// TestFindRequests expects the tenant of most requests in progress by the namespace of their service accounts, or
// otherwise the user of most waiting ones. A namespace alone names a tenant only if a FlowSchema distinguishes by
// it, with a note that it can be forged.
func TestFindRequests(t *testing.T) {
	const ci, other, bank = "system:serviceaccount:shop:ci", "system:serviceaccount:shop-test:web", "system:serviceaccount:bank:web"
	repeat := func(flow string, n int) []string { return slices.Repeat([]string{flow}, n) }
	for name, test := range map[string]struct {
		waiting     []string
		executed    []string
		byNamespace string
		want        string
	}{
		"none":              {},
		"few":               {waiting: repeat(ci, 19)},
		"one account":       {waiting: repeat(ci, 20), want: "Tenant/shop: 20 of the 20 requests in progress in the API server are of its namespaces"},
		"executed":          {executed: repeat(ci, 20), want: "Tenant/shop: 20 of the 20 requests in progress"},
		"both":              {waiting: repeat(ci, 5), executed: slices.Concat(repeat(other, 15), repeat(bank, 19)), want: "Tenant/shop: 20 of the 39 requests"},
		"several accounts":  {waiting: slices.Concat(repeat(ci, 15), repeat(other, 15), repeat(bank, 20)), want: "Tenant/shop: 30 of the 50 requests"},
		"half":              {waiting: slices.Concat(repeat(ci, 30), repeat(bank, 30))},
		"a user":            {waiting: repeat("jane", 30), want: "User/jane: 30 of the 30 requests that wait in the API server are by this user"},
		"a controller":      {executed: repeat("system:kube-controller-manager", 30)},
		"the platform":      {waiting: repeat("system:serviceaccount:kube-system:x", 30), want: "User/system:serviceaccount:kube-system:x"},
		"a user's name":     {waiting: repeat("shop", 30), want: "User/shop"},
		"a namespace":       {waiting: repeat("shop", 30), byNamespace: "tenants", want: "Tenant/shop: 30 of the 30 requests in progress in the API server are of its namespaces. Check this by the audit log: FlowSchema tenants"},
		"without namespace": {waiting: repeat("", 30), byNamespace: "tenants"},
	} {
		expectLoad(t, name, findRequests(&Requests{Waiting: test.waiting, Executed: test.executed, ByNamespace: test.byNamespace}, loadTenants), test.want)
	}
}

// requestsList is the API server's list, as version 1.36 prints it.
const requestsList = `PriorityLevelName, FlowSchemaName,   QueueIndex, RequestIndexInQueue, FlowDistingsher,                ArriveTime,                     InitialSeats, FinalSeats, AdditionalLatency, StartTime
workload-low,      service-accounts, 14,         0,                   system:serviceaccount:shop:ci,  2026-11-28T12:00:00.000000001Z, 1,            0,          0s,                0001-01-01T00:00:00Z
workload-low,      service-accounts, 14,         1,                   system:serviceaccount:bank:web, 2026-11-28T12:00:00.000000002Z, 1,            0,          0s,                0001-01-01T00:00:00Z
workload-low,      service-accounts, 14,         -1,                  system:serviceaccount:shop:run, 2026-11-28T12:00:00.000000003Z, 1,            0,          0s,                2026-11-28T12:00:00.000000003Z
global-default,    global-default,   3,          0,                   CN=jane, O=shop,                2026-11-28T12:00:00.000000004Z, 1,            0,          0s,                0001-01-01T00:00:00Z
global-default,    global-default,   4,          0,                   jane
exempt,            exempt,           -1,         -1,                  admin,                          2026-11-28T12:00:00.000000005Z, 1,            0,          0s,                2026-11-28T12:00:00.000000005Z
`

// TestParseRequests expects the flows of waiting and of executed requests, without exempt ones and broken lines, and an
// error for another format.
func TestParseRequests(t *testing.T) {
	requests, err := parseRequests(requestsList)
	waiting := []string{"system:serviceaccount:shop:ci", "system:serviceaccount:bank:web", "CN=jane,O=shop"}
	executed := []string{"system:serviceaccount:shop:run"}
	if err != nil || !slices.Equal(requests.Waiting, waiting) || !slices.Equal(requests.Executed, executed) {
		t.Errorf("%+v, %v, want %q and %q", requests, err, waiting, executed)
	}
	for _, list := range []string{"", "no list", strings.Replace(requestsList, "FlowDistingsher", "User", 1)} {
		if requests, err := parseRequests(list); err == nil {
			t.Errorf("%q: %+v", list, requests)
		}
	}
}

// TestNamespaceSchema fails if a FlowSchema is overlooked that distinguishes flows by namespace.
func TestNamespaceSchema(t *testing.T) {
	schema := func(name string, method *flowcontrolv1.FlowDistinguisherMethod) flowcontrolv1.FlowSchema {
		return flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flowcontrolv1.FlowSchemaSpec{DistinguisherMethod: method}}
	}
	all := []flowcontrolv1.FlowSchema{
		schema("exempt", nil), schema("global-default", &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType}),
	}
	if got := findNamespaceSchema(all); got != "" {
		t.Errorf("got %s, want none", got)
	}
	all = append(all, schema("tenants", &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByNamespaceType}))
	if got := findNamespaceSchema(all); got != "tenants" {
		t.Errorf("got %q, want tenants", got)
	}
}
