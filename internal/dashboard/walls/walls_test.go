package walls_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/dashboard/walls"
	"croft.dev/croft/internal/declare/scheme"
)

// TestGather expects the operator's events, the newest first, and genuine refusals of all tenants.
// Tenants may write events in their namespaces.
func TestGather(t *testing.T) {
	now := time.Now()
	event := func(namespace, name, reason, component string, age time.Duration) client.Object {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Reason: reason, Source: corev1.EventSource{Component: component}, LastTimestamp: metav1.NewTime(now.Add(-age)),
			InvolvedObject: corev1.ObjectReference{Kind: "Job", Name: name, UID: types.UID(namespace + name)}, Message: name,
		}
	}
	objects := []client.Object{
		&v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName}, Spec: v1alpha1.PlatformSpec{ClusterName: "one"}},
		event("default", "older", "Repaired", "croft-operator", 2*time.Minute), event("default", "newer", "Repaired", "croft-operator", time.Minute), event("shop", "forged-repair", "Repaired", "web", 0),
		event("shop", "refused", "FailedCreate", "job-controller", 0), event("shop", "forged", "FailedCreate", "web", 0), event("bank", "refused", "FailedCreate", "job-controller", 0),
	}
	for name, c := range map[string]struct {
		hidden bool
		want   string
	}{
		"an admin":  {false, "one: newer older; bank/refused shop/refused; []"},
		"no events": {true, "one: ; ; [events of repairs events of refusals]"},
	} {
		t.Run(name, func(t *testing.T) {
			on := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithIndex(&corev1.Event{}, "reason", func(o client.Object) []string {
				e, _ := o.(*corev1.Event)
				return []string{e.Reason}
			}).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, under client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if c.hidden {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil)
					}
					return under.List(ctx, list, opts...)
				},
			}).Build()
			s, err := walls.Gather(t.Context(), on, now)
			if err != nil {
				t.Fatal(err)
			}
			var repairs, refused []string
			for _, e := range s.Repairs {
				repairs = append(repairs, e.Name)
			}
			for _, w := range s.Refused {
				refused = append(refused, w.Namespace+"/"+w.Name)
			}
			if got := fmt.Sprintf("%s: %s; %s; %v", s.Platform.Spec.ClusterName, strings.Join(repairs, " "), strings.Join(refused, " "), s.Hidden); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
	if _, err := walls.Gather(t.Context(), fake.NewClientBuilder().WithScheme(scheme.New()).Build(), now); !apierrors.IsNotFound(err) {
		t.Errorf("without a Platform: %v", err)
	}
}
