package operator_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/sandbox"
	"k8s.io/apimachinery/pkg/api/meta"
)

func TestScale(t *testing.T) {
	const n = 1000
	f := newField(t, sandbox.WithControllers)
	stop := f.operate()
	f.create(platform(), pool("apps"))
	start := time.Now()
	for i := range n {
		f.create(tenant(fmt.Sprintf("t-%d", i), "apps"))
	}
	t.Logf("created in %v", time.Since(start))
	wait := func() {
		for {
			var list v1alpha1.TenantList
			if err := f.client.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			ready := 0
			for _, x := range list.Items {
				if meta.IsStatusConditionTrue(x.Status.Conditions, "Ready") {
					ready++
				}
			}
			if ready == n {
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
	wait()
	t.Logf("all ready after %v, %d writes", time.Since(start), len(f.writes.since(0)))
	time.Sleep(3 * time.Second)
	stop()
	before := len(f.writes.since(0))
	start = time.Now()
	stop = f.operate()
	last, at := -1, time.Now()
	for time.Since(at) < 2*time.Second {
		if k := len(f.writes.since(before)); k != last {
			last, at = k, time.Now()
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("restart: quiet after %v, %d writes", at.Sub(start), last)
	kinds := map[string]int{}
	for _, w := range f.writes.since(before) {
		if len(w) > 60 { w = w[:25] }
		kinds[w]++
	}
	t.Log(kinds)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("heap %d MB", m.HeapAlloc>>20)
	before = len(f.writes.since(0))
	f.patch(tenant("t-5", "apps"), `{"spec":{"costCode":"x"}}`)
	start = time.Now()
	f.ready(tenant("t-5", "apps"))
	t.Logf("one change: %v", time.Since(start))
	time.Sleep(time.Second)
	for _, w := range f.writes.since(before) {
		t.Log(w)
	}
	stop()
}
