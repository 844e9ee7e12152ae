package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/controller/outcome"
)

func TestOf(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed"))
	refused := &apply.ObjectError{Err: &apply.NamespaceNotOwnedError{Namespace: "n"}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no"))
	missing := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "NodePool"}}
	unmade := &apply.ObjectError{Ref: apply.Ref{GroupVersionKind: apply.GatekeeperConstraintKinds[0]}, Err: fmt.Errorf("read: %w", missing)}
	for _, test := range []struct {
		name           string
		err            error
		requeue, fails bool
	}{
		{"a kind that Gatekeeper is about to make", unmade, true, false},
		{"nothing", nil, false, false},
		{"people mend it", refused, false, false},
		{"a namespace on its way out", &apply.NamespaceTerminatingError{Namespace: "n"}, false, false},
		{"a lost race", fmt.Errorf("patch: %w", conflict), true, false},
		{"a missing kind", &apply.ObjectError{Err: fmt.Errorf("read: %w", missing)}, true, false},
		{"the end", context.Canceled, false, false},
		{"a refusal", forbidden, false, true},
		{"several that are quiet", errors.Join(refused, errors.Join(conflict, nil)), true, false},
		{"one that is not among several that are", errors.Join(refused, errors.Join(conflict, forbidden)), false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := outcome.Of(test.err)
			if errors.Is(test.err, unmade) && result.RequeueAfter > time.Second {
				t.Errorf("it is looked again in %s, and the kind comes in a moment", result.RequeueAfter)
			}
			if (result.RequeueAfter > 0) != test.requeue || (err != nil) != test.fails {
				t.Errorf("%v, %v", result, err)
			}
		})
	}
}
