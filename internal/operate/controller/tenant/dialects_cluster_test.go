package tenant_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
)

var (
	calicoKind, calicoStorageKind = apply.DialectKinds[0], apply.DialectKinds[1]
	clusterKind, awsKind          = apply.ClusterDialectKinds[0], apply.ClusterDialectKinds[1]
)

// TestDialects changes the dialect of a platform while its tenants are in use. After each
// write of the operator to a network policy it evaluates all existing policies: at no
// moment may a connection be allowed that was denied before, or denied that was allowed
// before.
func TestDialects(t *testing.T) {
	sandbox.Thorough(t)
	f := &fixture{operatortest.Start(t, sandbox.WithControllers)}
	stop := f.Operate()
	defer stop()
	shop, bank := operatortest.NewTenant("shop", "apps"), operatortest.NewTenant("bank", "apps")
	shop.Spec.Namespaces = []string{"shop", "shop-ci"}
	bank.Spec.Network = v1alpha1.TenantNetwork{Egress: v1alpha1.EgressRestricted, AllowCIDRs: []string{"198.51.100.0/24"}}
	p := operatortest.NewPlatform()
	p.Spec.Network.PlatformNamespaces = []string{"ingress"}
	f.Create(operatortest.NewNamespace("ingress"), p, operatortest.NewPool("apps"), shop, bank)
	f.AwaitReady(p, shop, bank)

	var mu sync.Mutex
	judged := 0
	watch := func(write string) {
		if !strings.Contains(write, "networkpolicies") {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		judged++
		for _, wrong := range f.listWrongConnections() {
			t.Errorf("after %s: %s", write, wrong)
		}
	}
	watch("the beginning, before any networkpolicies were written again")
	f.Writes.OnWrite(watch)
	speak := func(dialect, calico string) {
		f.Patch(p, fmt.Sprintf(`{"spec": {"network": {"dialect": %q, "calico": %s}}}`, dialect, calico))
	}
	expectPolicies := func(kinds map[schema.GroupVersionKind]int) {
		t.Helper()
		f.AwaitReady(p, shop, bank)
		f.Await("the policies of this dialect alone", func() string { return f.comparePolicyCounts(kinds) })
	}
	networkPolicy := schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}
	const each = 4 // policies in a namespace: isolation, DNS, platform, egress

	if err := f.Cluster.InstallCRDs(t.Context(), sandbox.Calico, sandbox.CalicoStorage, sandbox.AmazonVPC); err != nil {
		t.Fatal(err)
	}
	speak("ClusterNetworkPolicy", "null")
	missing := "ClusterNetworkPolicy (policy.networking.k8s.io/v1alpha2)"
	for _, o := range []client.Object{p, shop} {
		if c := f.AwaitCondition(o, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed); strings.Count(c.Message, missing) != 1 {
			t.Errorf("%T has the message %q; want it to name %s, once", o, c.Message, missing)
		}
	}
	if why := f.comparePolicyCounts(map[schema.GroupVersionKind]int{networkPolicy: 3 * each}); why != "" {
		t.Errorf("the earlier policies changed: %s", why)
	}
	if err := f.Cluster.InstallCRDs(t.Context(), sandbox.NetworkPolicyAPI); err != nil {
		t.Fatal(err)
	}
	expectPolicies(map[schema.GroupVersionKind]int{networkPolicy: 3 * each, clusterKind: 2})
	speak("Calico", "{}")
	expectPolicies(map[schema.GroupVersionKind]int{calicoKind: 3 * (each + 1)})
	f.Writes.OnWrite(nil) // this test changes the policies; the operator does not
	t.Run("changes by others are reverted", func(t *testing.T) {
		guard := f.getPolicy(calicoKind, "shop", "croft-guard")
		f.Patch(guard, `{"spec": {"ingress": [{"action": "Allow"}]}}`)
		f.Await("the guard to be put back", func() string {
			if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(guard), guard); err != nil {
				return err.Error()
			}
			rules, _, _ := unstructured.NestedSlice(guard.Object, "spec", "ingress")
			if len(rules) != 1 || rules[0].(map[string]any)["action"] != "Deny" {
				return fmt.Sprint(rules)
			}
			return ""
		})
		f.Delete(guard)
		f.Await("the guard to be created again", func() string {
			if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(guard), guard); err != nil {
				return err.Error()
			}
			return ""
		})
	})
	speak("Calico", `{"apiGroup": "crd.projectcalico.org"}`)
	expectPolicies(map[schema.GroupVersionKind]int{calicoStorageKind: 3 * (each + 1)})
	// A network plugin reads one of Calico's two API groups, and so does netpol. No cluster
	// changes from one to the other, so these writes are not evaluated.
	speak("AWS", "null")
	expectPolicies(map[schema.GroupVersionKind]int{networkPolicy: 3 * each, awsKind: 2})
	f.Writes.OnWrite(watch)
	speak("Kubernetes", "null")
	expectPolicies(map[schema.GroupVersionKind]int{networkPolicy: 3 * each})
	speak("Calico", "{}")
	expectPolicies(map[schema.GroupVersionKind]int{calicoKind: 3 * (each + 1)})
	speak("Kubernetes", "null")
	expectPolicies(map[schema.GroupVersionKind]int{networkPolicy: 3 * each})
	mu.Lock()
	t.Logf("judged after %d writes", judged)
	if judged < 60 {
		t.Errorf("only %d writes were judged", judged)
	}
	mu.Unlock()

	speak("ClusterNetworkPolicy", "null")
	expectPolicies(map[schema.GroupVersionKind]int{networkPolicy: 3 * each, clusterKind: 2})
	f.Patch(bank, `{"spec": {"deletion": "Delete"}}`)
	f.Delete(shop)
	f.AwaitDeletion(shop.DeepCopy())
	f.Delete(bank)
	f.AwaitDeletion(bank.DeepCopy())
	// The retained tenant keeps its walls; nothing remains of the deleted one.
	if why := f.comparePolicyCounts(map[schema.GroupVersionKind]int{networkPolicy: 2 * each, clusterKind: 1}); why != "" {
		t.Errorf("after the tenants went: %s", why)
	}
	f.getPolicy(clusterKind, "", "croft-guard-shop")
}

// listWrongConnections lists the connections that differ from the tenants' walls.
func (f *fixture) listWrongConnections() []string {
	m, err := netpol.ReadMap(f.Context(), f.Client)
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	want := func(what string, allowed bool, flow attack.Flow) {
		flow.Port, flow.Protocol = cmp.Or(flow.Port, 8080), "TCP"
		got, err := m.Evaluate(flow)
		if err != nil || got.Allowed != allowed {
			all = append(all, fmt.Sprintf("%s: %v, want %v (%+v, %v)", what, got.Allowed, allowed, got, err))
		}
	}
	m.EachPair(netpol.MaxPairs, func(from, to string) bool {
		if v, err := m.Connects(from, to, 0, "TCP"); err != nil || v.Allowed {
			all = append(all, fmt.Sprintf("%s can connect (%+v, %v)", v.Connection, v, err))
		}
		return true
	})
	for _, n := range []string{"shop", "shop-ci", "bank"} {
		if !m.Has(n) {
			continue
		}
		want("from nowhere into "+n, false, attack.Flow{FromNamespace: "default", ToNamespace: n})
		want("from outside into "+n, false, attack.Flow{FromIP: "203.0.113.10", ToNamespace: n})
		want("from the platform into "+n, true, attack.Flow{FromNamespace: "ingress", ToNamespace: n})
		want("within "+n, true, attack.Flow{FromNamespace: n, ToNamespace: n})
		want("from "+n+" to the internet", n != "bank", attack.Flow{FromNamespace: n, ToIP: "203.0.113.10"})
		want("from "+n+" to DNS", true, attack.Flow{FromNamespace: n, ToNamespace: "kube-system", ToLabels: map[string]string{"k8s-app": "kube-dns"}, Port: 53})
		for _, ip := range []string{"169.254.169.254", "fd00:ec2::254"} {
			want("from "+n+" to the metadata address "+netip.MustParseAddr(ip).String(), false, attack.Flow{FromNamespace: n, ToIP: ip})
		}
	}
	return all
}

// comparePolicyCounts describes how the numbers of croft's policies differ from want, over all
// kinds that the cluster serves. It returns "" if they do not differ.
func (f *fixture) comparePolicyCounts(want map[schema.GroupVersionKind]int) string {
	var wrong []string
	for _, kind := range []schema.GroupVersionKind{
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}, calicoKind, calicoStorageKind, clusterKind, awsKind,
	} {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := f.Client.List(f.Context(), all, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return err.Error()
		}
		if len(all.Items) != want[kind] {
			wrong = append(wrong, fmt.Sprintf("%d of %s, want %d", len(all.Items), kind.GroupKind(), want[kind]))
		}
	}
	slices.Sort(wrong)
	return strings.Join(wrong, "; ")
}

func (f *fixture) getPolicy(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	f.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	if err := f.Client.Get(f.Context(), client.ObjectKey{Namespace: namespace, Name: name}, u); err != nil {
		f.Fatal(err)
	}
	return u
}
