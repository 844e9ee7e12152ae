package migrate_test

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/adoption/migrate"
	"croft.dev/croft/internal/adoption/migrate/network"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// TestOtherNetworkPolicies expects a problem for policies that the network plugin combines with
// croft's, so that one allows traffic that the other denies.
func TestOtherNetworkPolicies(t *testing.T) {
	policy := func(apiVersion, kind, namespace, spec string) string {
		if namespace != "" {
			namespace = ", namespace: " + namespace
		}
		return buildDedicatedPool("jobs") + buildSelectorAssign("namespaces: [a]", "node-pool: jobs") +
			"\n---\n{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {name: p" + namespace + "}, spec: " + spec + "}\n"
	}
	const (
		cilium, antrea, calico = "cilium.io/v2", "crd.antrea.io/v1beta1", "projectcalico.org/v3"
		admin                  = "policy.networking.k8s.io/v1alpha1"
		combined               = "combines it with croft's policies"
		before, after          = "precedes croft's policies", "precede it"
	)
	rule := func(direction, action string) string { return "{" + direction + ": [{action: " + action + "}]}" }
	stays := []want{{source.Other, "/p ", "it stays"}}
	for name, r := range map[string]row{
		"Cilium's egress":                  {read: policy(cilium, "CiliumNetworkPolicy", "a", "{egress: [{toEndpoints: [{}]}]}"), options: demo, problems: []string{"CiliumNetworkPolicy/a/p: croft migrate does not read CiliumNetworkPolicy, and the network plugin " + combined}},
		"Cilium's list of rules":           {read: policy(cilium, "CiliumNetworkPolicy", "a", "{}, specs: [{ingress: [{}]}]"), options: demo, problems: []string{combined}},
		"Cilium's, of the cluster":         {read: policy(cilium, "CiliumClusterwideNetworkPolicy", "", "{ingress: [{}]}"), options: demo, problems: []string{combined}},
		"Cilium's, that denies alone":      {read: policy(cilium, "CiliumClusterwideNetworkPolicy", "", "{egressDeny: [{toEntities: [world]}]}"), options: demo},
		"Cilium's, of no tenant":           {read: policy(cilium, "CiliumNetworkPolicy", "kube-system", "{egress: [{}]}"), options: demo},
		"Antrea's":                         {read: policy(antrea, "NetworkPolicy", "a", rule("egress", "Drop")), options: demo, problems: []string{combined}},
		"GKE's":                            {read: policy("networking.gke.io/v1alpha1", "FQDNNetworkPolicy", "a", "{egress: [{}]}"), options: demo, problems: []string{combined}},
		"AWS', of an application":          {read: policy("networking.k8s.aws/v1alpha1", "ApplicationNetworkPolicy", "a", "{egress: [{}]}"), options: demo, problems: []string{combined}},
		"an administrator's, that allows":  {read: policy(admin, "AdminNetworkPolicy", "", rule("ingress", "Allow")), options: demo, problems: []string{before}},
		"an administrator's, that denies":  {read: policy(admin, "AdminNetworkPolicy", "", rule("egress", "Deny")), options: demo, findings: stays},
		"a baseline that denies":           {read: policy(admin, "BaselineAdminNetworkPolicy", "", rule("egress", "Deny")), options: demo, problems: []string{after}},
		"a baseline that allows":           {read: policy(admin, "BaselineAdminNetworkPolicy", "", rule("egress", "Allow")), options: demo, findings: stays},
		"the newer kind, that accepts":     {read: policy("policy.networking.k8s.io/v1alpha2", "ClusterNetworkPolicy", "", "{tier: Admin, egress: [{action: Accept}]}"), options: demo, problems: []string{before}},
		"the newer kind, of the baseline":  {read: policy("policy.networking.k8s.io/v1alpha2", "ClusterNetworkPolicy", "", "{tier: Baseline, egress: [{action: Deny}]}"), options: demo, problems: []string{after}},
		"AWS', that accepts":               {read: policy("networking.k8s.aws/v1alpha1", "ClusterNetworkPolicy", "", "{tier: Admin, ingress: [{action: Accept}]}"), options: demo, problems: []string{before}},
		"Calico's, global, of a low order": {read: policy(calico, "GlobalNetworkPolicy", "", "{order: 10, ingress: [{action: Allow}]}"), options: demo, problems: []string{"GlobalNetworkPolicy/p: spec.order: " + before}},
		"Calico's, of a tier":              {read: policy(calico, "GlobalNetworkPolicy", "", "{tier: security, egress: [{action: Allow}]}"), options: demo, problems: []string{"GlobalNetworkPolicy/p: spec: " + before}},
		"Calico's default deny":            {read: policy(calico, "GlobalNetworkPolicy", "", "{types: [Ingress, Egress]}"), options: demo, problems: []string{"follows croft's policies"}},
		"Calico's, of egress":              {read: policy(calico, "NetworkPolicy", "a", "{selector: \"app == 'db'\", egress: [{action: Allow, protocol: UDP}]}"), options: demo, problems: []string{"NetworkPolicy/a/p: spec: follows croft's policies"}},
		"Calico's, that denies first":      {read: policy(calico, "GlobalNetworkPolicy", "", "{order: 10, types: [Egress], egress: [{action: Deny, destination: {nets: [10.0.0.0/8]}}]}"), options: demo, findings: stays},
		"Calico's, that allows all":        {read: policy(calico, "GlobalNetworkPolicy", "", "{egress: [{action: Allow}]}"), options: demo, findings: stays},
	} {
		t.Run(name, r.checkMapping)
	}
}

// listRecorder records the kinds that are listed.
type listRecorder struct {
	client.Reader
	kinds map[string]bool
}

func (a listRecorder) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	kind := list.GetObjectKind().GroupVersionKind()
	a.kinds[kind.Group+"/"+kind.Kind] = true
	return nil
}

// TestLiveReadsOthers expects Live to read the kinds of other engines that are problems in
// files.
func TestLiveReadsOthers(t *testing.T) {
	a := listRecorder{kinds: map[string]bool{}}
	if _, _, err := migrate.ReadCluster(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	engines := map[string][]string{
		"kyverno.io": {"ClusterPolicy", "Policy"}, "policies.kyverno.io": {"MutatingPolicy", "NamespacedMutatingPolicy"},
		"admissionregistration.k8s.io": {"MutatingAdmissionPolicy"},
	}
	for _, all := range []map[string][]string{engines, network.Unread} {
		for group, kinds := range all {
			for _, kind := range kinds {
				if !a.kinds[group+"/"+kind+"List"] {
					t.Errorf("%s of %s is not read", kind, group)
				}
			}
		}
	}
}
