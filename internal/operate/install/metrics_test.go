package install_test

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/install"
)

// TestTenantsReadNoMetrics fails if the pods of a tenant may connect to the metrics of the operator, which name all
// tenants, or of the ledger, or if the pods of the platform may not.
func TestTenantsReadNoMetrics(t *testing.T) {
	tenant := labels.Set{"kubernetes.io/metadata.name": "shop", v1alpha1.TenantLabel: "shop"}
	monitoring := labels.Set{"kubernetes.io/metadata.name": "monitoring"}
	var found []string
	for _, o := range buildObjects(t, install.Options{Image: "croft:test", Ledger: true}) {
		policy, ok := o.(*networkingv1.NetworkPolicy)
		if !ok {
			continue
		}
		for _, rule := range policy.Spec.Ingress {
			isMetrics := func(p networkingv1.NetworkPolicyPort) bool { return p.Port.String() == "metrics" }
			if len(rule.Ports) > 0 && !slices.ContainsFunc(rule.Ports, isMetrics) {
				continue
			}
			found = append(found, policy.Name)
			if allowsPods(t, rule, tenant) {
				t.Errorf("NetworkPolicy %s admits a tenant's pods: %v", policy.Name, rule)
			}
			if !allowsPods(t, rule, monitoring) {
				t.Errorf("NetworkPolicy %s refuses the platform's pods: %v", policy.Name, rule)
			}
		}
	}
	slices.Sort(found)
	if want := []string{"croft", install.LedgerName}; !slices.Equal(found, want) {
		t.Errorf("rules about metrics are in %q, want %q", found, want)
	}
}

// allowsPods reports whether a rule admits pods of a namespace with these labels.
func allowsPods(t *testing.T, rule networkingv1.NetworkPolicyIngressRule, namespace labels.Set) bool {
	t.Helper()
	return len(rule.From) == 0 || slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool {
		if peer.NamespaceSelector == nil {
			return false
		}
		selector, err := metav1.LabelSelectorAsSelector(peer.NamespaceSelector)
		if err != nil {
			t.Fatal(err)
		}
		return selector.Matches(namespace)
	})
}
