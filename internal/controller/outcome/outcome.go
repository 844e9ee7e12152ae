// Package outcome decides how a reconciler goes on after something went wrong.
package outcome

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/internal/apply"
)

const (
	// soon is when to try again after a race that is lost now and then.
	soon = time.Second
	// later is when to look again for a kind that the cluster does not know.
	later = 30 * time.Second
)

// Of returns what a reconciler returns. What people have to mend, and what mends
// itself, is no error of croft's: it is in the object's conditions, and does not
// fill the logs. Only what is left is returned as an error, and so retried more
// and more slowly.
func Of(err error) (reconcile.Result, error) {
	var result reconcile.Result
	var unexpected []error
	for _, leaf := range Leaves(err) {
		switch {
		// An event will tell: the namespace is annotated, or gone.
		case is[*apply.NamespaceNotOwnedError](leaf), is[*apply.NamespaceTerminatingError](leaf):
		case apierrors.IsConflict(leaf), apierrors.IsNotFound(leaf), apierrors.IsAlreadyExists(leaf), unmade(leaf):
			result.RequeueAfter = soon
		case meta.IsNoMatchError(leaf):
			if result.RequeueAfter == 0 {
				result.RequeueAfter = later
			}
		case errors.Is(leaf, context.Canceled):
		default:
			unexpected = append(unexpected, leaf)
		}
	}
	if len(unexpected) > 0 {
		return reconcile.Result{}, errors.Join(unexpected...)
	}
	return result, nil
}

// Also adds to what a reconciler is about to return what went wrong after that,
// such as the writing of status in a defer.
func Also(result *reconcile.Result, err *error, more error) {
	again, unexpected := Of(more)
	*err = errors.Join(*err, unexpected)
	if result.RequeueAfter == 0 || again.RequeueAfter != 0 && again.RequeueAfter < result.RequeueAfter {
		result.RequeueAfter = again.RequeueAfter
	}
}

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// unmade is a kind that comes a moment after what was written before it.
func unmade(err error) bool {
	var object *apply.ObjectError
	return errors.As(err, &object) && object.Unmade()
}

// Leaves takes joined errors apart.
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
