package quotaplan_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/internal/declare/quotaplan"
)

func TestParseRefusal(t *testing.T) {
	const pod = `Error creating: pods "web-759454f978-q96mq" is forbidden: exceeded quota: croft, `
	for _, test := range []struct {
		name, message string
		want          corev1.ResourceList
	}{
		{"one resource", pod + "requested: requests.cpu=12, used: requests.cpu=500m, limited: requests.cpu=10",
			corev1.ResourceList{"requests.cpu": resource.MustParse("12500m")}},
		{"several, combined", "(combined from similar events): " + pod + "requested: pods=1,requests.memory=4Gi, used: pods=3,requests.memory=1Gi, limited: pods=3,requests.memory=4Gi",
			corev1.ResourceList{"pods": resource.MustParse("4"), "requests.memory": resource.MustParse("5Gi")}},
		{"another quota", `Error creating: pods "a" is forbidden: exceeded quota: mine, requested: pods=1, used: pods=1, limited: pods=1`, nil},
		{"something else", `Error creating: pods "a" is forbidden: no`, nil},
		{"below zero", pod + "requested: pods=-1, used: pods=1, limited: pods=1", nil},
		{"an exponent that is too large", pod + "requested: pods=1e999999999, used: pods=1, limited: pods=1", nil},
		{"no number", pod + "requested: pods=many, used: pods=1, limited: pods=1", nil},
		{"not what is used", pod + "requested: pods=1, used: services=1, limited: pods=1", nil},
		{"too long", strings.Repeat(" ", 5000) + pod + "requested: pods=1, used: pods=1, limited: pods=1", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			refusal, ok := quotaplan.ParseRefusal(test.message)
			if ok != (test.want != nil) || ok && !quotaplan.IsEqual(refusal.Demand(), test.want) {
				t.Errorf("got %v, %v; want %v", refusal.Demand(), ok, test.want)
			}
		})
	}
}

// TestNeeds tests namespaces that need more headroom than the others.
func TestNeeds(t *testing.T) {
	needing := func(s quotaplan.Space, minimum string, demands ...string) quotaplan.Space {
		s.Minimum = newResourceList(corev1.ResourcePods, minimum)
		for _, d := range demands {
			s.Demands = append(s.Demands, newResourceList(corev1.ResourcePods, d))
		}
		return s
	}
	a, b := newSpace("a", "10", "10", "10", "0"), newSpace("b", "10", "10", "10", "0")
	for _, test := range []struct {
		name   string
		spaces []quotaplan.Space
		want   map[string]string
	}{
		{"a minimum that is there already moves nothing", []quotaplan.Space{needing(a, "9"), b}, map[string]string{"a": "10", "b": "10"}},
		{"a minimum is made room for", []quotaplan.Space{needing(a, "15"), b}, map[string]string{"a": "10", "b": "5"}},
		{"and given", []quotaplan.Space{needing(a, "15"), newSpace("b", "5", "5", "5", "0")}, map[string]string{"a": "15", "b": "5"}},
		{"a minimum is not more than what others do not use", []quotaplan.Space{needing(newSpace("a", "4", "4", "4", "0"), "15"), newSpace("b", "16", "16", "16", "9")},
			map[string]string{"a": "4", "b": "9"}},
		{"a demand is made room for", []quotaplan.Space{needing(a, "", "12"), b}, map[string]string{"a": "10", "b": "8"}},
		{"and given", []quotaplan.Space{needing(a, "", "12"), newSpace("b", "8", "8", "8", "0")}, map[string]string{"a": "12", "b": "8"}},
		{"a demand that is met moves nothing", []quotaplan.Space{needing(newSpace("a", "15", "15", "15", "12"), "", "12"), newSpace("b", "5", "5", "5", "0")},
			map[string]string{"a": "15", "b": "5"}},
		{"one that does not fit moves nothing", []quotaplan.Space{needing(a, "", "21"), b}, map[string]string{"a": "10", "b": "10"}},
		{"of two the one that fits", []quotaplan.Space{needing(a, "", "21", "13"), b}, map[string]string{"a": "10", "b": "7"}},
		{"the smaller first", []quotaplan.Space{needing(a, "", "15"), needing(b, "", "11")}, map[string]string{"a": "9", "b": "10"}},
		{"none takes a minimum from another", []quotaplan.Space{needing(a, "10"), needing(b, "", "11")}, map[string]string{"a": "10", "b": "10"}},
		{"one takes what is beyond it", []quotaplan.Space{needing(a, "8"), needing(b, "", "12")}, map[string]string{"a": "8", "b": "10"}},
		{"minimums beyond the quota grant nothing that is not there", []quotaplan.Space{needing(a, "30"), needing(b, "30")}, map[string]string{"a": "10", "b": "0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			next := quotaplan.Plan(newResourceList(corev1.ResourcePods, "20"), test.spaces)
			for namespace, want := range test.want {
				if got := next[namespace]; !quotaplan.IsEqual(got, newResourceList(corev1.ResourcePods, want)) {
					t.Errorf("%s gets %v, want %s", namespace, got, want)
				}
			}
		})
	}
}

func TestEvenButForMinimums(t *testing.T) {
	shares := quotaplan.DivideEvenly(newResourceList(corev1.ResourcePods, "20"), []string{"a", "b", "c"},
		map[string]corev1.ResourceList{"b": newResourceList(corev1.ResourcePods, "15"), "c": newResourceList(corev1.ResourcePods, "1")})
	for namespace, want := range map[string]string{"a": "3", "b": "15", "c": "2"} {
		if !quotaplan.IsEqual(shares[namespace], newResourceList(corev1.ResourcePods, want)) {
			t.Errorf("%s gets %v, want %s", namespace, shares[namespace], want)
		}
	}
}
