// Package apply writes walls to a cluster. It is the only package that does: controllers
// decide when, walls define the objects, apply decides how.
//
// All writes are server-side applies under one field manager, and only where the cluster
// differs from the desired objects: in steady state, nothing is sent.
package apply

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// Applier writes objects to one cluster.
type Applier struct {
	client client.Client
	// live reads from the API server if client reads from a cache. It is nil if client
	// itself reads from the API server.
	live client.Reader
	// writes is set if the cache follows the cluster. It is nil for other readers.
	writes *writes
}

// New returns an Applier whose client reads from the API server.
func New(c client.Client) *Applier { return &Applier{client: c} }

// NewCached returns an Applier whose client reads from a cache. The cache always lags a
// little, so it only decides that no write is needed: before each write the object is read
// from the API server.
func NewCached(c client.Client, live client.Reader) *Applier { return &Applier{client: c, live: live} }

// NewWatching returns an Applier whose client reads from a cache that watches the cluster. It reads an
// object from the API server only if the cache lacks the Applier's own last write. If another client changes an
// object at the same moment, the cache receives that change, too, and the object is applied again.
func NewWatching(c client.Client, live client.Reader) *Applier {
	return &Applier{client: c, live: live, writes: newWrites()}
}

// Apply writes the given objects to the cluster in order, and returns the outcome of each.
// It continues after a failure, with two exceptions: it writes nothing to a namespace that
// it could not apply, and no RoleBinding of a tenant after another of its objects has
// failed, because people must not get access before the walls are in place. An object with
// a resourceVersion is only written over that version.
//
// The error joins the Err of every Change.
func (a *Applier) Apply(ctx context.Context, objects ...client.Object) ([]Change, error) {
	objects, err := a.convertToServed(objects)
	if err != nil {
		return nil, err
	}
	r := run{Applier: a, closedNamespaces: map[string]bool{}, newNamespaces: map[string]bool{}, failedTenants: map[string]bool{}}
	changes := make([]Change, 0, len(objects))
	var errs []error
	for _, o := range objects {
		if err := ctx.Err(); err != nil {
			return changes, errors.Join(append(errs, err)...)
		}
		change := r.applyNext(ctx, o)
		changes = append(changes, change)
		errs = append(errs, change.Err)
	}
	return changes, errors.Join(errs...)
}

// concurrency is the number of simultaneous requests for objects that do not depend on each other.
const concurrency = 8

// ApplyEach is like Apply for objects that do not depend on each other, such as declared objects of
// one kind. It writes several at a time.
func (a *Applier) ApplyEach(ctx context.Context, objects ...client.Object) ([]Change, error) {
	found, errs := make([][]Change, len(objects)), make([]error, len(objects))
	var group errgroup.Group
	group.SetLimit(concurrency)
	for i, o := range objects {
		group.Go(func() error {
			if ctx.Err() == nil {
				found[i], errs[i] = a.Apply(ctx, o)
			}
			return nil
		})
	}
	_ = group.Wait() // errs has the errors of all objects
	return slices.Concat(found...), errors.Join(errs...)
}

// run is one pass over a list of objects.
type run struct {
	*Applier
	// closedNamespaces are the namespaces to which nothing can be written.
	closedNamespaces map[string]bool
	// newNamespaces are the namespaces that this pass created.
	newNamespaces map[string]bool
	// failedTenants are the tenants with an object that could not be written.
	failedTenants map[string]bool
}

func (r *run) applyNext(ctx context.Context, o client.Object) Change {
	change := Change{Ref: RefOf(o)}
	tenant := o.GetLabels()[v1alpha1.TenantLabel]
	if r.closedNamespaces[change.Namespace] || change.Kind == "RoleBinding" && r.failedTenants[tenant] {
		change.Action = Skipped
		return change
	}

	var err error
	if namespace, ok := o.(*corev1.Namespace); ok && tenant != "" {
		change.Action, change.RevertedManagers, err = r.applyNamespace(ctx, namespace, tenant)
		r.newNamespaces[namespace.Name] = change.Action == Created
	} else {
		change.Action, change.RevertedManagers, err = r.applyObject(ctx, o, r.newNamespaces[change.Namespace])
	}
	if err == nil {
		return change
	}

	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		err = &NamespaceTerminatingError{Namespace: change.Namespace}
		r.closedNamespaces[change.Namespace] = true
	}
	if change.Kind == "Namespace" {
		r.closedNamespaces[change.Name] = true
	}
	// An unavailable namespace does not affect the walls of the tenant's other namespaces.
	if !isUnavailable(err) {
		r.failedTenants[tenant] = true
	}
	change.Action, change.Err = Failed, &ObjectError{Ref: change.Ref, Err: err}
	return change
}

func isUnavailable(err error) bool {
	var notOwned *NamespaceNotOwnedError
	var terminating *NamespaceTerminatingError
	return errors.As(err, &notOwned) || errors.As(err, &terminating)
}
