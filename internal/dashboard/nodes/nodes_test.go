package nodes_test

import (
	"context"
	"fmt"
	"slices"
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
	"croft.dev/croft/internal/dashboard/nodes"
	"croft.dev/croft/internal/declare/scheme"
)

// TestGather reads NodeClaims and events, or Nodes without the right to NodeClaims or without
// Karpenter, by three requests.
func TestGather(t *testing.T) {
	event := func(namespace, reason string) client.Object {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: reason}, Reason: reason}
	}
	objects := []client.Object{
		&v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}, &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "apps-1"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
		event("default", "InsufficientCapacityError"), event("default", "Other"), event("shop", "InsufficientCapacityError"),
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", nil)
	for name, c := range map[string]struct {
		errs map[string]error
		want string
	}{
		"an admin":            {nil, "1 pool, 1 claim, 1 refusal, 0 nodes, hidden []"},
		"a team at the proxy": {map[string]error{"NodeClaimList": forbidden}, "1 pool, 0 claim, 0 refusal, 2 nodes, hidden [NodeClaims]"},
		"no Karpenter":        {map[string]error{"NodeClaimList": apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "")}, "1 pool, 0 claim, 0 refusal, 2 nodes, hidden []"},
		"no events":           {map[string]error{"EventList": forbidden}, "1 pool, 1 claim, 0 refusal, 0 nodes, hidden [events]"},
		"no pools":            {map[string]error{"PoolList": forbidden}, ""},
		"a broken server":     {map[string]error{"NodeClaimList": apierrors.NewInternalError(fmt.Errorf("broken"))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			on := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithIndex(&corev1.Event{}, "reason", func(o client.Object) []string {
				e, _ := o.(*corev1.Event)
				return []string{e.Reason}
			}).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, under client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					requests++
					kind := map[bool]string{true: "PoolList"}[isKind[*v1alpha1.PoolList](list)] + map[bool]string{true: "NodeClaimList"}[isKind[*karpenterv1.NodeClaimList](list)] +
						map[bool]string{true: "EventList"}[isKind[*corev1.EventList](list)]
					if err := c.errs[kind]; err != nil {
						return err
					}
					return under.List(ctx, list, opts...)
				},
			}).Build()
			s, err := nodes.Gather(t.Context(), on)
			if c.want == "" {
				if err == nil {
					t.Error("no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(s.Hidden)
			if got := fmt.Sprintf("%d pool, %d claim, %d refusal, %d nodes, hidden %v", len(s.Pools), len(s.Claims), len(s.Refusals), len(s.Nodes), s.Hidden); got != c.want || requests != 3 {
				t.Errorf("%d requests: %s, want %s", requests, got, c.want)
			}
		})
	}
}

func isKind[T client.ObjectList](list client.ObjectList) bool {
	_, is := list.(T)
	return is
}
