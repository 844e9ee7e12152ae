package netpol_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/rules/attack"
)

// parsePolicies reads policies of any kind from YAML.
func parsePolicies(t *testing.T, texts ...string) []client.Object {
	t.Helper()
	var all []client.Object
	for _, text := range texts {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		if u.GetAPIVersion() != "networking.k8s.io/v1" {
			all = append(all, u)
			continue
		}
		np := &networkingv1.NetworkPolicy{}
		if err := yaml.Unmarshal([]byte(text), np); err != nil {
			t.Fatal(err)
		}
		all = append(all, np)
	}
	return all
}

const (
	allowAll  = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: allow, namespace: n1}, spec: {policyTypes: [Ingress], ingress: [{}]}}"
	allowNone = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: none, namespace: n1}, spec: {policyTypes: [Ingress]}}"
)

func formatCalicoPolicy(order, action string) string {
	return "{apiVersion: projectcalico.org/v3, kind: NetworkPolicy, metadata: {name: own, namespace: n1}, spec: {order: " + order + ", ingress: [{action: " + action + "}]}}"
}

func formatClusterPolicy(tier, action string) string {
	return "{apiVersion: policy.networking.k8s.io/v1alpha2, kind: ClusterNetworkPolicy, metadata: {name: all}, spec: {tier: " + tier +
		", priority: 1, subject: {namespaces: {matchLabels: {name: n1}}}, ingress: [{action: " + action + ", from: [{namespaces: {}}]}]}}"
}

// TestOrderOfPolicyKinds evaluates policies of several kinds in their order: cluster-wide ones
// of the tier Admin, Calico's before order 1000, NetworkPolicies, Calico's after it, and
// cluster-wide ones of the tier Baseline.
func TestOrderOfPolicyKinds(t *testing.T) {
	const firstTier = "{apiVersion: projectcalico.org/v3, kind: NetworkPolicy, metadata: {name: first.own, namespace: n1}, spec: {tier: first, ingress: [{action: %s}]}}"
	for name, test := range map[string]struct {
		policies []string
		allowed  bool
		by       string
	}{
		"Calico denies before NetworkPolicies allow":     {[]string{allowAll, formatCalicoPolicy("20", "Deny")}, false, "Calico NetworkPolicy n1/own"},
		"NetworkPolicies allow before Calico denies":     {[]string{allowAll, formatCalicoPolicy("2000", "Deny")}, true, ""},
		"NetworkPolicies leave other traffic to Calico":  {[]string{allowNone, formatCalicoPolicy("2000", "Allow")}, true, "Calico NetworkPolicy n1/own"},
		"selected pods are denied by default":            {[]string{allowNone, formatCalicoPolicy("2000", "Log")}, false, ""},
		"cluster-wide Deny before Calico":                {[]string{formatClusterPolicy("Admin", "Deny"), formatCalicoPolicy("1", "Allow")}, false, "ClusterNetworkPolicy all"},
		"cluster-wide Accept before NetworkPolicies":     {[]string{formatClusterPolicy("Admin", "Accept"), allowNone}, true, "ClusterNetworkPolicy all"},
		"cluster-wide Pass leaves it to NetworkPolicies": {[]string{formatClusterPolicy("Admin", "Pass"), allowNone}, false, ""},
		"Baseline is not asked after NetworkPolicies":    {[]string{formatClusterPolicy("Baseline", "Deny"), allowAll}, true, ""},
		"Baseline is asked where no NetworkPolicy is":    {[]string{formatClusterPolicy("Baseline", "Deny")}, false, "ClusterNetworkPolicy all"},
		"a policy of a tier that is not there":           {[]string{allowNone, strings.ReplaceAll(firstTier, "%s", "Allow")}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := newNamespaces(2, 2)
			for i := range all {
				all[i].Labels["name"] = all[i].Name
			}
			m, err := netpol.NewFromObjects(all, parsePolicies(t, test.policies...))
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Connects("n0", "n1", 0, "TCP")
			if err != nil || got.Allowed != test.allowed || got.Ingress.DecidedBy != test.by {
				t.Errorf("%+v, %v; want %v by %q", got, err, test.allowed, test.by)
			}
		})
	}
}

// TestAllowsWithChangedPolicies evaluates a connection with an additional policy, and without
// an existing one. The map must not change.
func TestAllowsWithChangedPolicies(t *testing.T) {
	m, err := netpol.NewFromObjects(newNamespaces(2, 2), parsePolicies(t, allowNone))
	if err != nil {
		t.Fatal(err)
	}
	flow := attack.Flow{FromNamespace: "n0", ToNamespace: "n1", Port: 80, Protocol: "TCP"}
	for _, added := range []string{allowAll, formatCalicoPolicy("1", "Allow")} {
		flow.AddedPolicies = parsePolicies(t, added)
		if allowed, err := m.Allows(flow); err != nil || !allowed {
			t.Errorf("with %s: %v, %v; want it to be let through", added, allowed, err)
		}
		flow.AddedPolicies = nil
		if allowed, err := m.Allows(flow); err != nil || allowed {
			t.Errorf("and without it again: %v, %v", allowed, err)
		}
	}
	flow.OmittedPolicies = parsePolicies(t, allowNone)
	if allowed, err := m.Allows(flow); err != nil || !allowed {
		t.Errorf("without what denies: %v, %v; want it to be let through", allowed, err)
	}
	flow.OmittedPolicies = nil
	flow.AddedPolicies = []client.Object{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n1"}}}
	if _, err := m.Allows(flow); err == nil {
		t.Error("a pod is no policy")
	}
}

// TestConnectsWithCalicoSelectors expects a hole to be found that exists only for some pods on
// some port. A connection between pods without labels would not reveal it.
func TestConnectsWithCalicoSelectors(t *testing.T) {
	m, err := netpol.NewFromObjects(newNamespaces(2, 2), parsePolicies(t, `{apiVersion: projectcalico.org/v3, kind: NetworkPolicy, metadata: {name: hole, namespace: n1}, spec: {selector: "app in {'db', 'web'}",
		ingress: [{action: Allow, protocol: TCP, source: {namespaceSelector: all(), selector: "role == 'x' && has(y)"}, destination: {ports: [5432]}}]}}`, allowNone))
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Connects("n0", "n1", 0, "TCP")
	if err != nil || !got.Allowed || !slices.Contains(got.Ingress.Selecting, "Calico NetworkPolicy n1/hole") && got.Ingress.DecidedBy == "" {
		t.Errorf("%+v, %v; want the hole to be found", got, err)
	}
	if plain, err := m.Allows(attack.Flow{FromNamespace: "n0", ToNamespace: "n1", Port: 5432, Protocol: "TCP"}); err != nil || plain {
		t.Errorf("between ordinary pods: %v, %v", plain, err)
	}
}
