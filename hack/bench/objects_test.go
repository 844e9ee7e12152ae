package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"croft.dev/croft/hack/internal/tenants"
)

// TestObjectsAreValid expects five valid objects in the namespace of each tenant, with its parameters.
func TestObjectsAreValid(t *testing.T) {
	all, err := buildNamespaceObjects(2, renderObjects("first"))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || len(all[1]) != 5 {
		t.Fatalf("the objects: %v", all)
	}
	name := tenants.Name(objectsPrefix, 1)
	for _, object := range all[1] {
		if object.GetNamespace() != name {
			t.Errorf("%s is in %s", object.GetName(), object.GetNamespace())
		}
	}
}

// TestCompareWrites refuses a second write of an object, in which case a measurement fails.
func TestCompareWrites(t *testing.T) {
	for _, test := range []struct {
		writes float64
		ok     bool
	}{{9, true}, {10, true}, {11, false}} {
		c, err := work{Writes: test.writes, Requests: requests{"GET": 10, "PATCH": 10}}.compareWrites(10)
		if (err == nil) != test.ok || c.Croft != test.writes/10 {
			t.Errorf("%g writes of 10 objects: %+v, %v", test.writes, c, err)
		}
	}
}

// TestCountWritesTo omits reads, dry runs and other resources.
func TestCountWritesTo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`# TYPE apiserver_request_total counter
apiserver_request_total{dry_run="",resource="configmaps",verb="APPLY",code="200"} 2
apiserver_request_total{dry_run="",resource="configmaps",verb="APPLY",code="201"} 1
apiserver_request_total{dry_run="",resource="rolebindings",verb="DELETE"} 4
apiserver_request_total{dry_run="All",resource="configmaps",verb="APPLY"} 8
apiserver_request_total{dry_run="",resource="configmaps",verb="LIST"} 16
apiserver_request_total{dry_run="",resource="pods",verb="POST"} 32
`))
	}))
	defer server.Close()
	got, err := countWritesTo(t.Context(), &rest.Config{Host: server.URL}, "configmaps", "rolebindings")
	if err != nil || got != 7 {
		t.Errorf("%g writes: %v", got, err)
	}
}

// TestAwaitBundle counts each namespace once, and only with a current object.
func TestAwaitBundle(t *testing.T) {
	events := watch.NewFakeWithChanSize(5, false)
	change := func(namespace, data string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bundleName}, Data: map[string]string{"ca.crt": data}}
	}
	a := awaitBundle("second")
	events.Add(change("a", renderBundle("first")))
	events.Modify(change("a", renderBundle("second")))
	events.Modify(change("a", renderBundle("second")))
	events.Delete(change("c", renderBundle("second")))
	events.Add(change("b", renderBundle("second")))
	if took, err := a.wait(t.Context(), events, time.Now(), 2); err != nil || len(took) != 2 {
		t.Errorf("%v, %v", took, err)
	}
	events.Stop()
	if _, err := a.wait(t.Context(), events, time.Now(), 1); err == nil {
		t.Error("a watch that ended is no error")
	}
}
