package outcome_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/outcome"
	"croft.dev/croft/internal/operate/controller/owner"
)

var (
	errConflict = fmt.Errorf("patch: %w", apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed")))
	refused     = &apply.ObjectError{Err: &apply.NamespaceNotOwnedError{Namespace: "n"}}
	forbidden   = apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no"))
	rejected    = &apply.ObjectError{Err: apierrors.NewInvalid(schema.GroupKind{Kind: "ResourceQuota"}, "x", nil)}
)

func TestOf(t *testing.T) {
	missing := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "NodePool"}}
	pending := &apply.ObjectError{Ref: apply.Ref{GroupVersionKind: apply.GatekeeperConstraintKinds[0]}, Err: fmt.Errorf("read: %w", missing)}
	for _, test := range []struct {
		name           string
		err            error
		requeue, fails bool
	}{
		{"a kind that Gatekeeper is about to make", pending, true, false},
		{"nothing", nil, false, false},
		{"people fix it", refused, false, false},
		{"a namespace on its way out", &apply.NamespaceTerminatingError{Namespace: "n"}, false, false},
		{"a deleted owner", fmt.Errorf("hold: %w", owner.ErrGone), false, false},
		{"a lost race", errConflict, true, false},
		{"deleted meanwhile", fmt.Errorf("patch: %w", apierrors.NewNotFound(schema.GroupResource{}, "x")), true, false},
		{"made meanwhile", fmt.Errorf("create: %w", apierrors.NewAlreadyExists(schema.GroupResource{}, "x")), true, false},
		{"a missing kind", &apply.ObjectError{Err: fmt.Errorf("read: %w", missing)}, true, false},
		{"the end", context.Canceled, false, false},
		{"a refusal", forbidden, false, true},
		{"several that are quiet", errors.Join(refused, errors.Join(errConflict, nil)), true, false},
		{"one that is not among several that are", errors.Join(refused, errors.Join(errConflict, forbidden)), false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := outcome.NewRetries("test").Resolve(t.Context(), "x", reconcile.Result{}, test.err)
			if errors.Is(test.err, pending) && result.RequeueAfter > time.Second {
				t.Errorf("it is looked again in %s, and the kind comes in a moment", result.RequeueAfter)
			}
			if (result.RequeueAfter > 0) != test.requeue || (err != nil) != test.fails {
				t.Errorf("%v, %v", result, err)
			}
		})
	}
}

// TestRaces fails if races are not retried with back-off for each object, or if consecutive
// races are logged more than once.
func TestRaces(t *testing.T) {
	var lines bytes.Buffer
	ctx := log.IntoContext(t.Context(), logr.FromSlogHandler(slog.NewTextHandler(&lines, nil)))
	r := outcome.NewRetries("races")
	lose := func(name string, planned time.Duration) time.Duration {
		t.Helper()
		result, err := r.Resolve(ctx, name, reconcile.Result{RequeueAfter: planned}, errConflict)
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	if !r.IsRacing("shop", errConflict) || r.IsRacing("shop", errors.Join(errConflict, forbidden)) || r.IsRacing("shop", nil) {
		t.Error("the first conflict alone is a race that the next attempt resolves")
	}
	var last, total time.Duration
	for range 10 {
		pause := lose("shop", 0)
		if pause <= last {
			t.Errorf("pause of %s after one of %s", pause, last)
		}
		last, total = pause, total+pause
	}
	if total < 10*time.Second {
		t.Errorf("10 conflicts in a row are retried within %s", total)
	}
	if r.IsRacing("shop", errConflict) {
		t.Error("the eleventh conflict in a row is not reported")
	}
	if pause := lose("bank", 0); pause >= time.Second {
		t.Errorf("another object waits %s for its first retry", pause)
	}
	if pause := lose("shop", time.Second); pause != time.Second {
		t.Errorf("retried after %s, and it asked for a second", pause)
	}
	if n := strings.Count(lines.String(), "conflict with another writer"); n != 2 {
		t.Errorf("%d log lines for two objects:\n%s", n, lines.String())
	}
	if _, err := r.Resolve(ctx, "shop", reconcile.Result{}, nil); err != nil {
		t.Fatal(err)
	}
	if pause := lose("shop", 0); pause >= time.Second {
		t.Errorf("after a success, the first retry waits %s", pause)
	}
	if n := countRetries(t, "races"); n != 13 {
		t.Errorf("croft_retries_total = %v, want 13", n)
	}
}

func TestReason(t *testing.T) {
	for want, err := range map[string]error{
		v1alpha1.ReasonApplyFailed:       errors.Join(errConflict, forbidden),
		v1alpha1.ReasonRejected:          errors.Join(errConflict, errors.Join(forbidden, rejected)),
		v1alpha1.ReasonNamespaceNotOwned: errors.Join(rejected, refused),
	} {
		if got := outcome.Reason(err); got != want {
			t.Errorf("reason %s, want %s, of: %v", got, want, err)
		}
	}
}

func TestNeedsPerson(t *testing.T) {
	missing := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "NodePool"}}
	pending := &apply.ObjectError{Ref: apply.Ref{GroupVersionKind: apply.GatekeeperConstraintKinds[0]}, Err: missing}
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"nothing", nil, false},
		{"a conflict", errConflict, false},
		{"no answer", context.DeadlineExceeded, false},
		{"a namespace that is being deleted", &apply.NamespaceTerminatingError{Namespace: "n"}, false},
		{"a kind that Gatekeeper is about to create", pending, false},
		{"a missing kind", &apply.ObjectError{Err: missing}, true},
		{"another owner's namespace", refused, true},
		{"an invalid object", rejected, true},
		{"an invalid object, among others", errors.Join(errConflict, errors.Join(rejected)), true},
		{"a missing right, or a quota that is not counted yet", forbidden, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := outcome.NeedsPerson(test.err); got != test.want {
				t.Errorf("%v: %v", got, test.err)
			}
		})
	}
}

func countRetries(t *testing.T, controller string) (total float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "croft_retries_total" && m.GetLabel()[0].GetValue() == controller {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return total
}
