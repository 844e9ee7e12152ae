package apply_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/test/sandbox"
)

// TestSnapshot compares 600 objects of one kind with a real API server. It fails if a comparison
// without a difference reads more than the pages of one list, or if a difference is missed.
func TestSnapshot(t *testing.T) {
	sandbox.EndToEnd(t)
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	var reads atomic.Int64
	counted := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			reads.Add(1)
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			reads.Add(1)
			return c.List(ctx, list, opts...)
		},
	})
	const number, pages = 600, 2
	objects := make([]client.Object, number)
	for i := range objects {
		objects[i] = &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("object-%03d", i), Labels: map[string]string{v1alpha1.TenantLabel: "shop"}},
			Data:       map[string]string{"key": "value"},
		}
	}
	changes, err := newSnapshot(t, c).ApplyEach(t.Context(), objects...)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(changes, func(a, b apply.Change) int { return strings.Compare(a.Name, b.Name) }) ||
		slices.ContainsFunc(changes, func(c apply.Change) bool { return c.Action != apply.Created }) {
		t.Errorf("the first changes are %v", changes[:3])
	}
	applier := newSnapshot(t, counted)
	if differences, err := applier.Diff(t.Context(), objects...); err != nil || len(differences) > 0 || reads.Load() > pages {
		t.Errorf("unchanged: %d requests, %v, %v", reads.Load(), differences, err)
	}
	var known corev1.ConfigMapList
	if err := c.List(t.Context(), &known, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	reads.Store(0)
	if differences, err := newSnapshot(t, counted, &known).Diff(t.Context(), objects...); err != nil || len(differences) > 0 || reads.Load() > 0 {
		t.Errorf("known: %d requests, %v, %v", reads.Load(), differences, err)
	}

	changed, _ := objects[7].DeepCopyObject().(*corev1.ConfigMap)
	changed.Data["key"] = "other"
	objects[7] = changed
	if err := c.Delete(t.Context(), objects[8]); err != nil {
		t.Fatal(err)
	}
	differences, err := newSnapshot(t, c).Diff(t.Context(), objects...)
	if err != nil || len(differences) != 2 || differences[0].Action != apply.Configured || differences[1].Action != apply.Created {
		t.Errorf("%v, %v", differences, err)
	}
	// The list of this Applier is older than the deletion: an object that differs is read again.
	changes, err = applier.ApplyEach(t.Context(), objects[7])
	if err != nil || len(changes) != 1 || changes[0].Action != apply.Configured {
		t.Errorf("%v, %v", changes, err)
	}
}

func newSnapshot(t *testing.T, c client.Client, known ...client.ObjectList) *apply.Applier {
	t.Helper()
	a, err := apply.NewSnapshot(c, known...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
