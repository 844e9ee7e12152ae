package me_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/diagnose/me"
)

// TestGatherRefused reads refusals in all of the tenant's namespaces. Events that the caller
// may not read are left out without an error.
func TestGatherRefused(t *testing.T) {
	refused := func(namespace, name, component, reason string) client.Object {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Reason: reason, Source: corev1.EventSource{Component: component},
			InvolvedObject: corev1.ObjectReference{Kind: "Job", Name: name, UID: types.UID(namespace + name)}, LastTimestamp: metav1.Now(),
			Message: `Error creating: pods "a" is forbidden: no`,
		}
	}
	for name, c := range map[string]struct {
		forbidden string
		want      string
	}{
		"all are read":    {"", "[{shop-a Job a no} {shop-b Job b no}] [] []"},
		"one is not read": {"shop-b", "[{shop-a Job a no}] [] [events]"},
	} {
		t.Run(name, func(t *testing.T) {
			on := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
				&v1alpha1.TenantRules{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-a", Name: v1alpha1.TenantRulesName}, Spec: v1alpha1.TenantRulesSpec{Namespaces: []string{"shop-a", "shop-b"}}},
				refused("shop-a", "a", "job-controller", "FailedCreate"), refused("shop-b", "b", "job-controller", "FailedCreate"),
				refused("shop-a", "forged", "web", "FailedCreate"), refused("shop-a", "made", "job-controller", "SuccessfulCreate"), refused("bank", "a", "job-controller", "FailedCreate"),
			).WithIndex(&corev1.Event{}, "reason", func(o client.Object) []string {
				e, _ := o.(*corev1.Event)
				return []string{e.Reason}
			}).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					if review, ok := o.(*authenticationv1.SelfSubjectReview); ok {
						review.Status.UserInfo.Username = "ana"
					}
					return nil
				},
				List: func(ctx context.Context, under client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					in := (&client.ListOptions{}).ApplyOptions(opts).Namespace
					if _, events := list.(*corev1.EventList); events && in == c.forbidden {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil)
					}
					return under.List(ctx, list, opts...)
				},
			}).Build()
			m, err := me.Gather(t.Context(), on, "shop-a")
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(m.Refused, func(a, b v1alpha1.RefusedWorkload) int {
				return slices.Compare([]string{a.Namespace}, []string{b.Namespace})
			})
			if got := fmt.Sprint(m.Refused, m.Namespaces[0].Unreadable, m.Namespaces[1].Unreadable); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// TestGatherDeclared shows the Tenant's spec to callers who may read it, and no error to
// others.
func TestGatherDeclared(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"readable":     {nil, "org1"},
		"not readable": {apierrors.NewForbidden(schema.GroupResource{Resource: "tenants"}, "shop", nil), ""},
		"deleted":      {apierrors.NewNotFound(schema.GroupResource{Resource: "tenants"}, "shop"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			on := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
				&v1alpha1.TenantRules{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: v1alpha1.TenantRulesName}, Spec: v1alpha1.TenantRulesSpec{Tenant: "shop"}},
				&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: v1alpha1.TenantSpec{CostCode: "org1"}},
			).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return nil },
				Get: func(ctx context.Context, under client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if _, tenant := o.(*v1alpha1.Tenant); tenant && c.err != nil {
						return c.err
					}
					return under.Get(ctx, key, o, opts...)
				},
			}).Build()
			m, err := me.Gather(t.Context(), on, "shop")
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if m.Declared != nil {
				got = m.Declared.CostCode
			}
			if got != c.want {
				t.Errorf("declared %q, want %q", got, c.want)
			}
		})
	}
}
