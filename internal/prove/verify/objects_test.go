package verify_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

// TestCompareObjects expects results for deleted and changed objects while no operator runs.
func TestCompareObjects(t *testing.T) {
	sandbox.EndToEnd(t)
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.Install(t.Context(), c, install.Options{}); err != nil {
		t.Fatal(err)
	}
	d, problems := manifest.Parse("croft.yaml", []byte("platform: {clusterName: demo, nodeClass: {kwok: {}}}\npools: {apps: {}}\ntenants: {shop: {pool: apps}, bank: {pool: apps}}\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e, problems := estate.Build(d)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if _, err := apply.New(c).Apply(t.Context(), wall.Objects(e)...); err != nil {
		t.Fatal(err)
	}
	breaches := func(tenant string) string {
		t.Helper()
		results, err := verify.CompareObjects(t.Context(), c, e, tenant, false)
		if err != nil || len(results) != len(wall.All()) {
			t.Fatal(results, err)
		}
		var all []string
		for _, r := range results {
			if r.Variants == 0 || r.IsGood() != (len(r.Breaches) == 0) {
				t.Errorf("%+v", r)
			}
			all = append(all, r.Breaches...)
		}
		return strings.Join(all, "; ")
	}
	if got := breaches(""); got != "" {
		t.Fatalf("nothing was changed: %s", got)
	}
	if _, err := verify.CompareObjects(t.Context(), noDeadlineClient{c}, e, "", false); err != nil {
		t.Errorf("by a client with a rate limit: %v", err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: install.ProbesName}}
	must(c.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	binding.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
	must(c.Update(t.Context(), binding, client.FieldOwner("somebody")))
	if got := breaches(""); !strings.Contains(got, "ValidatingAdmissionPolicyBinding croft-probes was changed") {
		t.Errorf("the binding of croft-probes audits: %q", got)
	}
	must(c.Delete(t.Context(), binding))
	if got := breaches("shop"); !strings.Contains(got, "ValidatingAdmissionPolicyBinding croft-probes is missing") {
		t.Errorf("the binding of croft-probes was deleted: %q", got)
	}
	must(c.DeleteAllOf(t.Context(), &networkingv1.NetworkPolicy{}, client.InNamespace("bank")))
	must(c.DeleteAllOf(t.Context(), &corev1.ResourceQuota{}, client.InNamespace("bank")))
	if got := breaches(""); !strings.Contains(got, "NetworkPolicy bank/croft-isolation is missing") || !strings.Contains(got, "ResourceQuota bank/croft is missing") {
		t.Errorf("a tenant's policies and quota were deleted: %q", got)
	}
	if got := breaches("shop"); strings.Contains(got, "bank") {
		t.Errorf("of shop: %q", got)
	}
}

// noDeadlineClient is a client whose reads fail under a deadline: shortly before a deadline, a
// client with a rate limit sends no requests.
type noDeadlineClient struct{ client.Client }

func (u noDeadlineClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, limited := ctx.Deadline(); limited {
		return errors.New("the wait for the rate limit would exceed the deadline")
	}
	return u.Client.Get(ctx, key, o, opts...)
}
