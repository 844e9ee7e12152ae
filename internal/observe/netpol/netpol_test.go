package netpol_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/netpol"
)

func newNamespaces(n, tenants int) []corev1.Namespace {
	var all []corev1.Namespace
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		all = append(all, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelMetadataName: name, v1alpha1.TenantLabel: fmt.Sprintf("t%d", i%tenants),
		}}})
	}
	return all
}

func newMap(t testing.TB, namespaces []corev1.Namespace, policies []networkingv1.NetworkPolicy) *netpol.Map {
	t.Helper()
	m, err := netpol.New(namespaces, policies)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// newClosedPolicy returns a policy that denies all ingress of the selected pods, except for the
// given rules.
func newClosedPolicy(namespace, name string, pods metav1.LabelSelector, in ...networkingv1.NetworkPolicyIngressRule) networkingv1.NetworkPolicy {
	return networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: pods, Ingress: in, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		},
	}
}

// TestConnects expects a hole to be found that exists only for some pods or some port.
func TestConnects(t *testing.T) {
	every := metav1.LabelSelector{}
	web := metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	port := intstr.FromInt32(5432)
	for name, c := range map[string]struct {
		policies []networkingv1.NetworkPolicy
		port     int
		want     bool
	}{
		"no policy":                        {nil, 0, true},
		"closed":                           {[]networkingv1.NetworkPolicy{newClosedPolicy("n1", "p", every)}, 0, false},
		"closed for some pods":             {[]networkingv1.NetworkPolicy{newClosedPolicy("n1", "p", web)}, 0, true},
		"a hole to some pods":              {[]networkingv1.NetworkPolicy{newClosedPolicy("n1", "p", every), newClosedPolicy("n1", "q", web, networkingv1.NetworkPolicyIngressRule{})}, 0, true},
		"a hole to a port":                 {[]networkingv1.NetworkPolicy{newClosedPolicy("n1", "p", every, networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{{Port: &port}}})}, 0, true},
		"a hole to a port, and another is": {[]networkingv1.NetworkPolicy{newClosedPolicy("n1", "p", every, networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{{Port: &port}}})}, 80, false},
		"a hole from some pods": {[]networkingv1.NetworkPolicy{newClosedPolicy("n1", "p", every, networkingv1.NetworkPolicyIngressRule{
			From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &every, PodSelector: &web}},
		})}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMap(t, newNamespaces(2, 2), c.policies)
			got, err := m.Connects("n0", "n1", c.port, "TCP")
			if err != nil || got.Allowed != c.want {
				t.Errorf("%+v, %v; want %t", got, err, c.want)
			}
			if len(c.policies) > 0 && len(got.Ingress.Selecting) == 0 && name != "closed for some pods" {
				t.Errorf("no deciding policy is named: %+v", got)
			}
		})
	}
	if _, err := newMap(t, nil, nil).Connects("a", "b", 0, "TCP"); err == nil {
		t.Error("namespaces that do not exist get an answer")
	}
}

// TestEachPair expects all pairs of namespaces of different tenants. If there are too many,
// it expects a sample in which every namespace is both a source and a destination.
func TestEachPair(t *testing.T) {
	m := newMap(t, newNamespaces(60, 20), nil)
	seen := map[string]int{}
	judged, total := m.EachPair(1_000_000, func(from, to string) bool {
		if m.Tenant(from) == m.Tenant(to) {
			t.Errorf("%s and %s are of one tenant", from, to)
		}
		seen[from+" "+to]++
		return true
	})
	if want := 60*60 - 20*3*3; judged != want || total != want || len(seen) != want {
		t.Errorf("%d of %d pairs, %d different; want %d", judged, total, len(seen), want)
	}
	var sources, destinations []string
	judged, _ = m.EachPair(600, func(from, to string) bool {
		sources, destinations = append(sources, from), append(destinations, to)
		return true
	})
	for _, list := range [][]string{sources, destinations} {
		slices.Sort(list)
		if n := len(slices.Compact(list)); n != 60 || judged > 620 {
			t.Errorf("a sample of %d pairs has %d namespaces on one side; want all 60", judged, n)
		}
	}
}

func BenchmarkEachPair(b *testing.B) {
	all := newNamespaces(300, 300)
	var policies []networkingv1.NetworkPolicy
	for _, n := range all {
		policies = append(policies, newClosedPolicy(n.Name, "p", metav1.LabelSelector{}, networkingv1.NetworkPolicyIngressRule{
			From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.TenantLabel: n.Labels[v1alpha1.TenantLabel]}}}},
		}))
	}
	m := newMap(b, all, policies)
	for b.Loop() {
		m.EachPair(netpol.MaxPairs, func(from, to string) bool {
			_, err := m.Connects(from, to, 0, "TCP")
			return err == nil
		})
	}
}
