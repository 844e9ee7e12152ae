// Package outcome decides how a reconciler continues after an error.
package outcome

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/owner"
)

// later is the interval of look-ups of a kind that the cluster does not serve.
const later = 30 * time.Second

// Resolve returns the result of a reconciler, with the earliest time of its next call. Errors
// that people must correct and conflicts are reported in the object's conditions, and not
// returned, so that they do not fill the logs. Conflicts are retried with back-off, and
// logged once. All other errors are returned: the controller logs and retries them.
func (r *Retries) Resolve(ctx context.Context, name string, result reconcile.Result, err error) (reconcile.Result, error) {
	var unexpected, races []error
	for _, leaf := range Leaves(err) {
		switch {
		// The namespace's or the owner's own event reconciles the object again.
		case isType[*apply.NamespaceNotOwnedError](leaf), isType[*apply.NamespaceTerminatingError](leaf), errors.Is(leaf, owner.ErrGone):
		case classifyRace(leaf) != "":
			races = append(races, leaf)
		case meta.IsNoMatchError(leaf):
			requeueWithin(&result, later)
		case errors.Is(leaf, context.Canceled):
		default:
			unexpected = append(unexpected, leaf)
		}
	}
	if len(races) > 0 {
		requeueWithin(&result, r.recordRaces(ctx, name, races))
	} else {
		r.resetStreak(ctx, name)
	}
	if len(unexpected) > 0 {
		return reconcile.Result{}, errors.Join(unexpected...)
	}
	return result, nil
}

func requeueWithin(result *reconcile.Result, after time.Duration) {
	if result.RequeueAfter == 0 || after < result.RequeueAfter {
		result.RequeueAfter = after
	}
}

// Reason returns a condition's reason for an error. Reasons that people can act on come
// first.
func Reason(err error) string {
	leaves := Leaves(err)
	switch {
	case slices.ContainsFunc(leaves, isType[*apply.NamespaceNotOwnedError]):
		return v1alpha1.ReasonNamespaceNotOwned
	case slices.ContainsFunc(leaves, apierrors.IsInvalid):
		return v1alpha1.ReasonRejected
	default:
		return v1alpha1.ReasonApplyFailed
	}
}

// NeedsPerson reports whether an error certainly remains until a person acts: corrects the
// declaration, permits an adoption, or installs a kind. A forbidden request may succeed later:
// rights reach the API server's cache after an upgrade, and a new quota refuses objects until
// they are counted.
func NeedsPerson(err error) bool {
	return slices.ContainsFunc(Leaves(err), func(leaf error) bool {
		return isType[*apply.NamespaceNotOwnedError](leaf) || apierrors.IsInvalid(leaf) ||
			meta.IsNoMatchError(leaf) && classifyRace(leaf) == ""
	})
}

// classifyRace classifies a race, for a metric's label. It returns "" for other errors.
func classifyRace(err error) string {
	var object *apply.ObjectError
	switch {
	case apierrors.IsConflict(err):
		return "conflict"
	case apierrors.IsNotFound(err):
		return "not_found"
	case apierrors.IsAlreadyExists(err):
		return "already_exists"
	case errors.As(err, &object) && object.IsKindPending():
		// Gatekeeper serves the kind a moment after its template is written.
		return "kind_pending"
	default:
		return ""
	}
}

func isType[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// Leaves returns the single errors of a joined error.
func Leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, Leaves(e)...)
	}
	return all
}
