package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/operate/apply"
)

// leftover is an object that was prepared for an attack and could not be deleted.
type leftover struct {
	apply.Ref
	err error
}

// Error returns a message with the command that deletes the object.
func (l leftover) Error() string {
	place := ""
	if l.Namespace != "" {
		place = " -n " + l.Namespace
	}
	resource := strings.ToLower(l.Kind)
	if l.Group != "" {
		resource += "." + l.Group
	}
	return fmt.Sprintf("%s was prepared for an attack and still exists, since it could not be deleted (%v): run `kubectl delete %s %s%s`",
		l.Ref, l.err, resource, l.Name, place)
}

// Unwrap returns the error of the deletion.
func (l leftover) Unwrap() error { return l.err }

// persistence is the time for which a failing deletion is retried.
const persistence = 3 * time.Second

// removeObject deletes a prepared object. Failures are reported at the end of the run.
func (r *Runner) removeObject(ctx context.Context, o client.Object) {
	if _, ok := o.(*corev1.Binding); ok {
		return // deleted with its pod
	}
	var last error
	_ = wait.PollUntilContextTimeout(ctx, again, persistence, true, func(ctx context.Context) (bool, error) {
		err := r.admin.Delete(ctx, o, client.GracePeriodSeconds(0))
		// Report the API server's last response instead of the timeout.
		var status apierrors.APIStatus
		if err == nil || last == nil || errors.As(err, &status) {
			last = err
		}
		return err == nil || apierrors.IsNotFound(err) || meta.IsNoMatchError(err), nil
	})
	if last == nil || apierrors.IsNotFound(last) || meta.IsNoMatchError(last) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leftovers = append(r.leftovers, leftover{apply.RefOf(o), last})
}

// ReportLeftovers returns an error for each prepared object that still exists, except for objects in
// namespaces that are deleted anyway.
func (r *Runner) ReportLeftovers(deleted ...string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, l := range r.leftovers {
		if !slices.Contains(deleted, l.Namespace) {
			errs = append(errs, l)
		}
	}
	return errors.Join(errs...)
}
