package cli

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
)

// TestFirstNamespaceOfMembers looks up namespaces as a tenant's member without the proxy.
// The member may get the tenant's namespaces, and may list none.
func TestFirstNamespaceOfMembers(t *testing.T) {
	namespace := func(name, tenant string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.TenantLabel: tenant}}}
	}
	forbidden := func(name string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, name, nil)
	}
	for _, test := range []struct {
		name, tenant, context, want, refused string
	}{
		{name: "named as the tenant", tenant: "shop", context: "default", want: "shop"},
		{name: "in the context", tenant: "blog", context: "blog-prod", want: "blog-prod"},
		{name: "another tenant's in the context", tenant: "blog", context: "shop", refused: "name a namespace with --namespace"},
		{name: "another tenant's with the tenant's name", tenant: "wiki", context: "default", refused: "has no role in a namespace wiki"},
		{name: "one that may not be read", tenant: "bank", context: "bank", refused: "name a namespace with --namespace"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme.New()).
				WithObjects(namespace("shop", "shop"), namespace("blog-prod", "blog"), namespace("wiki", "other"), namespace("bank", "bank")).
				WithInterceptorFuncs(interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
						if _, isNamespace := o.(*corev1.Namespace); !isNamespace || key.Name == "bank" {
							return forbidden(key.Name)
						}
						return c.Get(ctx, key, o, options...)
					},
					List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
						return forbidden("")
					},
				}).Build()
			got, err := findFirstNamespace(t.Context(), c, test.tenant, "ann", test.context)
			if got != test.want || (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("%q, %v; want %q, %q", got, err, test.want, test.refused)
			}
		})
	}
}
