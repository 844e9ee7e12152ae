package cluster_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/dashboard/cluster"
)

// TestWatcher reads objects, and expects a watch of each with the same token and selectors, from the version
// that was read. The object with which a watch begins is no change.
func TestWatcher(t *testing.T) {
	const patience = time.Minute
	var mu sync.Mutex
	watches := map[string]int{}
	modify := make(chan struct{})
	s, err := cluster.NewServer(startServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		event := func(kind, version string) {
			_, _ = fmt.Fprintf(w, `{"type":%q,"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"web","resourceVersion":%q}}}`, kind, version)
			_ = http.NewResponseController(w).Flush()
		}
		q := r.URL.Query()
		switch {
		case q.Get("watch") == "" && strings.HasSuffix(r.URL.Path, "/pods"):
			_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`)
		case q.Get("watch") == "":
			_, _ = io.WriteString(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":"web","resourceVersion":"5"}}`)
		default:
			mu.Lock()
			watches[fmt.Sprintf("%s %s labels=%s fields=%s version=%s", r.Header.Get("Authorization"), r.URL.Path, q.Get("labelSelector"), q.Get("fieldSelector"), q.Get("resourceVersion"))]++
			mu.Unlock()
			if q.Get("fieldSelector") == "metadata.name=web" {
				event("ADDED", "5")
				select {
				case <-modify:
					event("MODIFIED", "6")
				case <-r.Context().Done():
				}
			} else {
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Connect("ana")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // before the server waits for its requests
	w := cluster.NewWatcher(c)
	read := func(more ...client.ListOption) {
		t.Helper()
		recording := w.Client()
		if err := recording.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
		if err := recording.List(ctx, &corev1.PodList{}, append(more, client.InNamespace("shop"))...); err != nil {
			t.Fatal(err)
		}
		w.Watch(ctx)
	}
	expect := func(want ...string) {
		t.Helper()
		err := wait.PollUntilContextTimeout(ctx, time.Millisecond, patience, true, func(context.Context) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, line := range want {
				if watches[line] != 1 {
					return false, nil
				}
			}
			return len(watches) == len(want), nil
		})
		if err != nil {
			t.Fatalf("got %v, want one of each of %q", watches, want)
		}
	}
	object := "Bearer ana /api/v1/namespaces/shop/pods labels= fields=metadata.name=web version="
	list := "Bearer ana /api/v1/namespaces/shop/pods labels= fields= version=7"
	selected := "Bearer ana /api/v1/namespaces/shop/pods labels=app=web fields= version=7"
	read()
	expect(object, list)
	read(client.MatchingLabels{"app": "web"})
	expect(object, list, selected)
	if !w.IsComplete() {
		t.Error("not each read has a watch")
	}
	select {
	case <-w.Changed():
		t.Error("the object that was read is a change")
	case modify <- struct{}{}:
	}
	select {
	case <-w.Changed():
	case <-time.After(patience):
		t.Error("the change is not reported")
	}
	for i := range 30 {
		if err := w.Client().List(ctx, &corev1.PodList{}, client.InNamespace(fmt.Sprint("ns-", i))); err != nil {
			t.Fatal(err)
		}
	}
	w.Watch(ctx)
	if w.IsComplete() {
		t.Error("a page has more watches than the limit")
	}
}
