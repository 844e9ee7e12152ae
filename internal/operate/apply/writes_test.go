package apply

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// TestEventBeforeAnswer fails if the event of a write that arrives before the write's answer counts as another
// client's, or if a write without an answer blocks events.
func TestEventBeforeAnswer(t *testing.T) {
	key := writeKey{schema.GroupKind{Kind: "ConfigMap"}, types.NamespacedName{Name: "shop"}}
	object := &corev1.ConfigMap{}
	object.UID, object.ResourceVersion = "1", "7"
	for name, answer := range map[string]time.Duration{"answered": mostAnswerTime / 2, "answered later": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWrites()
				end := w.beginWrite(key)
				w.beginWrite(key)() // another write of the same object does not end the first one
				var writing sync.WaitGroup
				writing.Go(func() {
					time.Sleep(answer)
					w.record(key, object)
					end()
				})
				began := time.Now()
				isOwn := w.receive(key, object)
				if waited := time.Since(began); isOwn != (answer <= mostAnswerTime) || waited != min(answer, mostAnswerTime) {
					t.Errorf("own: %t, after %s", isOwn, waited)
				}
				writing.Wait()
			})
		})
	}
}

// TestPendingWrites fails if a version that croft has not written counts as its own, or if writes without events
// are remembered without limit.
func TestPendingWrites(t *testing.T) {
	key := writeKey{schema.GroupKind{Kind: "ConfigMap"}, types.NamespacedName{Name: "shop"}}
	object := func(uid types.UID, version string) *corev1.ConfigMap {
		o := &corev1.ConfigMap{}
		o.UID, o.ResourceVersion = uid, version
		return o
	}
	w := newWrites()
	for _, version := range []string{"3", "5", "8"} {
		w.record(key, object("1", version))
	}
	for _, event := range []struct {
		uid     types.UID
		version string
		isOwn   bool
		pending int
	}{{"1", "2", false, 3}, {"2", "3", false, 3}, {"1", "3", true, 2}, {"1", "4", false, 2}, {"1", "6", false, 1}, {"1", "5", false, 1}, {"1", "8", true, 0}, {"1", "8", false, 0}} {
		if isOwn := w.receive(key, object(event.uid, event.version)); isOwn != event.isOwn || len(w.pending[key].versions) != event.pending {
			t.Errorf("version %s of %s: own %t, %d pending", event.version, event.uid, isOwn, len(w.pending[key].versions))
		}
	}
	if w.isPending(key) {
		t.Error("the object is remembered without writes")
	}
	for _, version := range []string{"11", "12", "13", "14", "15", "16"} {
		w.record(key, object("1", version))
	}
	if w.receive(key, object("1", "12")) || !w.isBehind(key, object("1", "15")) || w.isBehind(key, object("2", "15")) || w.isBehind(key, object("1", "16")) {
		t.Errorf("unexpected writes: %v", w.pending)
	}
	w.record(key, object("2", "17"))
	if got := w.pending[key]; got.uid != "2" || len(got.versions) != 1 {
		t.Errorf("another object's writes: %v", got)
	}
}
