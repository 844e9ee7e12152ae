package watch

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// slowMapper is a RESTMapper that blocks until it may answer.
type slowMapper struct {
	meta.RESTMapper
	asked, answer chan struct{}
}

func (m *slowMapper) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	m.asked <- struct{}{}
	<-m.answer
	return nil, &meta.NoKindMatchError{GroupKind: kind}
}

// TestLookWaitsOnlyForNeededKinds delays discovery, and fails if callers wait for kinds that
// they do not need.
func TestLookWaitsOnlyForNeededKinds(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "mutations.gatekeeper.sh", Version: "v1", Kind: "Assign"}
	mapper := &slowMapper{asked: make(chan struct{}, 10), answer: make(chan struct{})}
	l := &Late{mapper: mapper, kinds: []schema.GroupVersionKind{kind}, absent: map[schema.GroupVersionKind]time.Time{kind: time.Now()}}
	look := func(needed ...schema.GroupVersionKind) <-chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			if watched, err := l.Look(t.Context(), needed...); err != nil || len(watched) > 0 {
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

// TestLookStopsWithContext fails if a stopping operator waits for the lookups of all kinds
// that the cluster does not serve. With eight concurrent tenants and a slow API server, these
// lookups took longer than an operator has to stop.
func TestLookStopsWithContext(t *testing.T) {
	kinds := []schema.GroupVersionKind{{Group: "a.example.org", Version: "v1", Kind: "A"}, {Group: "b.example.org", Version: "v1", Kind: "B"}}
	mapper := &slowMapper{asked: make(chan struct{}, 10), answer: make(chan struct{})}
	l := &Late{mapper: mapper, kinds: kinds, absent: map[schema.GroupVersionKind]time.Time{}}
	ctx, end := context.WithCancel(t.Context())
	go func() {
		<-mapper.asked
		end()
		close(mapper.answer)
	}()
	if _, err := l.Look(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a look whose context ended answers %v", err)
	}
	if len(mapper.asked) > 0 {
		t.Error("a kind was looked up after the context had ended")
	}
}
