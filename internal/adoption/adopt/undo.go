package adopt

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/rules/gatekeeper"
)

// Undoing restores the previous state of a tenant's namespaces.
type Undoing struct {
	client  client.Client
	applier *apply.Applier
	name    string
	// Record is the recorded state, or nil if there is no record.
	Record *Record
	// Tenant is nil if it is not declared.
	Tenant *v1alpha1.Tenant
	// Namespaces are the tenant's namespaces, and the namespaces that it may adopt.
	Namespaces []corev1.Namespace
}

// NewUndoing reads the state to undo.
func NewUndoing(ctx context.Context, c client.Client, tenant string) (*Undoing, error) {
	u := &Undoing{client: c, applier: apply.New(c), name: tenant}
	var err error
	if u.Record, err = ReadRecord(ctx, c, tenant); err != nil {
		return nil, err
	}
	var live v1alpha1.Tenant
	switch err := c.Get(ctx, client.ObjectKey{Name: tenant}, &live); {
	case err == nil:
		u.Tenant = &live
	case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
		return nil, err
	}
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces); err != nil {
		return nil, err
	}
	for i := range namespaces.Items {
		n := &namespaces.Items[i]
		if n.Labels[v1alpha1.TenantLabel] == tenant || n.Annotations[v1alpha1.AdoptAnnotation] == tenant {
			u.Namespaces = append(u.Namespaces, *n)
		}
	}
	return u, nil
}

// Restore re-creates deleted objects and waits until mutators are in force, while croft still
// places the pods. It does not change existing objects.
func (u *Undoing) Restore(ctx context.Context) error {
	if u.Record == nil {
		return nil
	}
	for _, o := range u.Record.Objects {
		if err := u.applier.Restore(ctx, o); err != nil {
			return err
		}
	}
	for name, marks := range u.Record.Namespaces {
		if err := u.markNamespace(ctx, name, Marks{Annotations: marks.Annotations}); err != nil {
			return err
		}
	}
	for _, o := range u.Record.Objects {
		if o.GroupVersionKind().Group == mutations {
			if err := u.waitEnforced(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// enforcing is the maximum time until Gatekeeper enforces a mutator.
const enforcing = 30 * time.Second

// waitEnforced waits until Gatekeeper reports that a mutator is in force, in all its pods.
func (u *Undoing) waitEnforced(ctx context.Context, o *unstructured.Unstructured) error {
	var seen gatekeeper.Enforcement
	err := wait.PollUntilContextTimeout(ctx, again, enforcing, true, func(ctx context.Context) (bool, error) {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(o.GroupVersionKind())
		if err := u.client.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
			return false, err
		}
		seen = gatekeeper.ReadEnforcement(live)
		return seen.IsEnforced(), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("after %s, %s: is Gatekeeper running? croft still places the pods", enforcing, seen.Message)
	}
	return err
}

// ReleaseTenant deletes the Tenant and releases every namespace, also if croft created it: no namespace
// is deleted that may still be needed.
func (u *Undoing) ReleaseTenant(ctx context.Context) error {
	for i := range u.Namespaces {
		n := &u.Namespaces[i]
		off := map[string]any{v1alpha1.CreatedAnnotation: nil}
		if u.Tenant == nil {
			off[v1alpha1.AdoptAnnotation] = nil
		}
		if err := u.applier.MarkNamespace(ctx, n.Name, nil, off); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if u.Tenant == nil {
		for i := range u.Namespaces {
			if u.Namespaces[i].Labels[v1alpha1.TenantLabel] != u.name {
				continue
			}
			if _, err := u.applier.Release(ctx, &u.Namespaces[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return u.applier.DeleteTenant(ctx, u.Tenant)
}

// Finish restores labels and annotations, and the objects that croft had overwritten. Then it
// deletes the record.
func (u *Undoing) Finish(ctx context.Context) error {
	if u.Record == nil {
		return nil
	}
	for name, marks := range u.Record.Namespaces {
		if err := u.markNamespace(ctx, name, marks); err != nil {
			return err
		}
	}
	if err := u.Restore(ctx); err != nil {
		return err
	}
	return u.applier.Remove(ctx, u.Record.stored)
}

// markNamespace sets labels and annotations on a namespace, if it still exists.
func (u *Undoing) markNamespace(ctx context.Context, namespace string, marks Marks) error {
	return client.IgnoreNotFound(u.applier.MarkNamespace(ctx, namespace, convertToAny(marks.Labels), convertToAny(marks.Annotations)))
}

func convertToAny(texts map[string]string) map[string]any {
	all := make(map[string]any, len(texts))
	for key, value := range texts {
		all[key] = value
	}
	return all
}
