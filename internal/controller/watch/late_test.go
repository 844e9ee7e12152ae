package watch

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// slowMapper answers when it is let.
type slowMapper struct {
	meta.RESTMapper
	asked, answer chan struct{}
}

func (m *slowMapper) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	m.asked <- struct{}{}
	<-m.answer
	return nil, &meta.NoKindMatchError{GroupKind: kind}
}

// TestLookDoesNotWaitForOthers has discovery answer late, and wants only those to wait
// for it that need the answer.
func TestLookDoesNotWaitForOthers(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "mutations.gatekeeper.sh", Version: "v1", Kind: "Assign"}
	mapper := &slowMapper{asked: make(chan struct{}, 10), answer: make(chan struct{})}
	l := &Late{mapper: mapper, kinds: []schema.GroupVersionKind{kind}, absent: map[schema.GroupVersionKind]time.Time{kind: time.Now()}}
	look := func(needed ...schema.GroupVersionKind) <-chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			if watched, err := l.Look(needed...); err != nil || len(watched) > 0 {
				t.Errorf("%v, %v", watched, err)
			}
		}()
		return done
	}
	first := look(kind)
	<-mapper.asked
	select {
	case <-look():
	case <-time.After(10 * time.Second):
		t.Error("a look that needs nothing waits for the discovery of another")
	}
	second := look(kind)
	select {
	case <-second:
		t.Error("a look that needs the kind does not wait for the answer")
	case <-time.After(100 * time.Millisecond):
	}
	close(mapper.answer)
	for _, done := range []<-chan struct{}{first, second} {
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("a look does not end")
		}
	}
}
