package connections_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/dashboard/connections"
	"croft.dev/croft/internal/declare/scheme"
)

// makePolicy returns a policy that selects every pod, and allows connections with namespaces that
// have the labels.
func makePolicy(name string, labels map[string]string, types ...networkingv1.PolicyType) *networkingv1.NetworkPolicy {
	peers := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: labels}}}
	p := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}},
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: types},
	}
	for _, kind := range types {
		if kind == networkingv1.PolicyTypeIngress {
			p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: peers}}
		} else {
			p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: peers}}
		}
	}
	return p
}

// TestEvaluate compares the decisions about the peers of a namespace, with and without the right to
// list namespaces.
func TestEvaluate(t *testing.T) {
	objects := []client.Object{
		&v1alpha1.TenantRules{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: v1alpha1.TenantRulesName}, Spec: v1alpha1.TenantRulesSpec{
			Tenant: "shop", Namespaces: []string{"shop-dev", "shop"}, PlatformNamespaces: []string{"ingress"},
		}},
		makePolicy("croft-isolation", map[string]string{v1alpha1.TenantLabel: "shop"}, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress),
		makePolicy("croft-platform", map[string]string{corev1.LabelMetadataName: "ingress"}, networkingv1.PolicyTypeIngress),
		makePolicy("bank", map[string]string{"team": "bank"}, networkingv1.PolicyTypeIngress),
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "a"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.TenantLabel: "shop"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-dev", Labels: map[string]string{v1alpha1.TenantLabel: "shop"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank", Labels: map[string]string{v1alpha1.TenantLabel: "bank"}}},
	}
	const denied = "denied, since no rule allows it of "
	want := map[string]string{
		"shop": "allowed by shop/croft-isolation | allowed by shop/croft-isolation", "shop-dev": "allowed by shop/croft-isolation | allowed by shop/croft-isolation",
		"ingress": "allowed by shop/croft-platform | " + denied + "shop/croft-isolation", connections.OtherTenants: denied + " | " + denied + "shop/croft-isolation",
		"DNS": "| " + denied + "shop/croft-isolation", "internet": "| " + denied + "shop/croft-isolation", "metadata": "| " + denied + "shop/croft-isolation",
	}
	for name, c := range map[string]struct {
		kind   string
		labels bool
	}{"an admin": {"", true}, "a member": {"NamespaceList", false}} {
		t.Run(name, func(t *testing.T) {
			s, err := connections.Gather(t.Context(), newClient(objects, c.kind), "shop")
			if err != nil {
				t.Fatal(err)
			}
			if (s.Labels != nil) != c.labels || !s.HasWall() || len(s.Policies) != 3 {
				t.Errorf("labels %v, wall %t, %d policies", s.Labels, s.HasWall(), len(s.Policies))
			}
			peers, err := s.Evaluate()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range peers {
				got := "| " + p.To.Egress.Describe()
				if p.From != nil {
					got = p.From.Ingress.Describe() + " " + got
				}
				if parts := strings.Split(want[p.Name], " | "); len(parts) == 2 && (!strings.HasPrefix(got, parts[0]) || !strings.HasSuffix(got, parts[1])) || want[p.Name] == "" {
					t.Errorf("%s: %s\nwant %s", p.Name, got, want[p.Name])
				}
			}
			if len(peers) != 7 || !peers[2].Platform || peers[0].Platform {
				t.Errorf("%d peers: %v", len(peers), peers)
			}
		})
	}
	for _, kind := range []string{"NetworkPolicyList", "TenantRules"} {
		if _, err := connections.Gather(t.Context(), newClient(objects, kind), "shop"); err == nil {
			t.Errorf("no error without the right to %s", kind)
		}
	}
}

// TestIsTooLarge expects a limit on the work that a tenant's policies cause.
func TestIsTooLarge(t *testing.T) {
	s := &connections.Snapshot{Rules: v1alpha1.TenantRulesSpec{Namespaces: make([]string, 20), PlatformNamespaces: make([]string, 5)}}
	for range 10 {
		s.Policies = append(s.Policies, *makePolicy("a", nil, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress))
	}
	if s.IsTooLarge() {
		t.Error("ten policies are too large")
	}
	for range 10 {
		p := makePolicy("a", nil, networkingv1.PolicyTypeIngress)
		p.Spec.Ingress[0].From, p.Spec.Ingress[0].Ports = make([]networkingv1.NetworkPolicyPeer, 100), make([]networkingv1.NetworkPolicyPort, 100)
		s.Policies = append(s.Policies, *p)
	}
	if !s.IsTooLarge() {
		t.Error("policies with 1,000 peers and 1,000 ports are not too large")
	}
}

// newClient returns a client without the right to read a kind.
func newClient(objects []client.Object, forbidden string) client.Client {
	refuse := func(o any) error {
		kind := ""
		switch o := o.(type) {
		case *metav1.PartialObjectMetadataList:
			kind = o.Kind
		case *networkingv1.NetworkPolicyList:
			kind = "NetworkPolicyList"
		case *v1alpha1.TenantRules:
			kind = "TenantRules"
		}
		if kind == forbidden {
			return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", nil)
		}
		return nil
	}
	return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, under client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := refuse(list); err != nil {
				return err
			}
			return under.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, under client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := refuse(o); err != nil {
				return err
			}
			return under.Get(ctx, key, o, opts...)
		},
	}).Build()
}
