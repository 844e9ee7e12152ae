package why_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/diagnose/why"
)

// TestNeighbours expects the number of other tenants' pods that wait for a pod's pool. Only platform admins get the
// tenants' names.
func TestNeighbours(t *testing.T) {
	waiting := func(namespace, name, pool string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
		p.Spec.NodeSelector = map[string]string{key: pool}
		p.Spec.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpEqual, Value: pool}}
		return p
	}
	rules := &v1alpha1.TenantRules{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: v1alpha1.TenantRulesName}}
	rules.Spec.Tenant, rules.Spec.Namespaces, rules.Spec.Pools = "shop", []string{"shop", "shop-test"}, []string{"apps"}
	const named = "nodepool/apps: 130 pods of other tenants wait in the same pool: bank (70), museum (60)"
	const unnamed = "nodepool/apps: 130 pods of other tenants wait in the same pool"
	for _, test := range []struct {
		name string
		// forbidden are kinds that the caller may not read in the whole cluster.
		forbidden []string
		others    int
		want      string
	}{
		{"an admin", nil, 60, named},
		{"an admin, and few pods", nil, 5, ""},
		{"a member with the right to read all pods", []string{"NodePool", "NodeClaim", "Namespace", "Platform"}, 60, unnamed},
		{"a member with the right to read namespaces, too", []string{"NodePool", "NodeClaim", "Platform"}, 60, unnamed},
		{"a member", []string{"NodePool", "NodeClaim", "Namespace", "Platform", "Pod"}, 60, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			running := waiting("museum", "running", "apps")
			running.Spec.NodeName = "n"
			objects := []client.Object{waiting("shop", "web", "apps"), rules.DeepCopy(), running, &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}}
			for namespace, tenant := range map[string]string{"shop": "shop", "shop-test": "shop", "bank-a": "bank", "bank-b": "bank", "museum": "museum"} {
				objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{v1alpha1.TenantLabel: tenant}}})
			}
			for i := range test.others {
				objects = append(objects, waiting("museum", fmt.Sprint("p", i), "apps"), waiting("museum", fmt.Sprint("q", i), "other"), waiting("shop-test", fmt.Sprint("p", i), "apps"))
			}
			for i := range test.others / 6 * 7 {
				objects = append(objects, waiting([]string{"bank-a", "bank-b"}[i%2], fmt.Sprint("p", i), "apps"))
			}
			story := explainWithout(t, test.forbidden, objects)
			var found []string
			for _, step := range story.Steps {
				if strings.Contains(step.Observation, "other tenants") {
					found = append(found, step.Object+": "+step.Observation)
					if step.Verdict != why.Waiting || step.Finding == nil || step.Finding.ID != "tenant-load" {
						t.Errorf("%+v", step)
					}
				}
			}
			if got := strings.Join(found, "\n"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			text, err := json.Marshal(story)
			if err != nil {
				t.Fatal(err)
			}
			if test.want != named && (strings.Contains(string(text), "bank") || strings.Contains(string(text), "museum")) {
				t.Errorf("the names of other tenants are in %s", text)
			}
		})
	}
}

// explainWithout explains pod web of namespace shop to a caller who may not read some kinds outside of it.
func explainWithout(t *testing.T, forbidden []string, objects []client.Object) why.Story {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, objectKey client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				gvk, err := c.GroupVersionKindFor(o)
				if err == nil {
					err = refuseKind(forbidden, gvk, objectKey.Namespace)
				}
				if err != nil {
					return err
				}
				return c.Get(ctx, objectKey, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
				gvk, err := c.GroupVersionKindFor(o)
				if err == nil {
					err = refuseKind(forbidden, gvk, (&client.ListOptions{}).ApplyOptions(opts).Namespace)
				}
				if err != nil {
					return err
				}
				return c.List(ctx, o, opts...)
			},
		}).Build()
	seen, err := why.Gather(t.Context(), c, why.Target{Kind: "pod", Namespace: "shop", Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	return why.ExplainSnapshot(seen)
}

// refuseKind returns Forbidden for a forbidden kind, except in a namespace.
func refuseKind(forbidden []string, gvk schema.GroupVersionKind, namespace string) error {
	for _, kind := range forbidden {
		if namespace == "" && strings.TrimSuffix(gvk.Kind, "List") == kind {
			return apierrors.NewForbidden(schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(kind)}, "", nil)
		}
	}
	return nil
}
