package adopt

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
)

// readState returns the owner of a namespace, and the problems to fix before the tenant can have
// it. live is nil if the namespace does not exist.
func (a *Adoption) readState(ctx context.Context, name string, live *corev1.Namespace) (n Namespace, blocking []string, err error) {
	n = Namespace{Name: name, State: Missing}
	if live == nil {
		return n, nil, nil
	}
	if live.DeletionTimestamp != nil {
		blocking = append(blocking, fmt.Sprintf("namespace %s is being deleted: run the command again when it is deleted", name))
	}
	switch owner := live.Labels[v1alpha1.TenantLabel]; owner {
	case "":
		n.State = Free
	case a.tenant.Name:
		n.State = Owned
	default:
		n.State, n.From = Foreign, owner
		reason, err := a.explainRetention(ctx, owner, name)
		if err != nil {
			return n, nil, err
		}
		if reason == "" {
			n.State = Kept
		} else {
			blocking = append(blocking, reason)
		}
	}
	return n, blocking, nil
}

// explainRetention returns why a namespace belongs to another tenant, or "" if that tenant is deleted or no
// longer declares it.
func (a *Adoption) explainRetention(ctx context.Context, owner, namespace string) (string, error) {
	var tenant v1alpha1.Tenant
	err := a.client.Get(ctx, client.ObjectKey{Name: owner}, &tenant)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return "", nil
	case err != nil:
		return "", err
	case tenant.DeletionTimestamp != nil:
		return fmt.Sprintf("namespace %s belongs to tenant %s, which is being deleted: run the command again when the tenant is deleted", namespace, owner), nil
	case slices.Contains(tenant.Spec.Namespaces, namespace) || len(tenant.Spec.Namespaces) == 0 && namespace == owner:
		return fmt.Sprintf("namespace %s belongs to tenant %s: remove it from that tenant first", namespace, owner), nil
	default:
		return "", nil
	}
}

// isKept reports whether a namespace has the label of a tenant other than the one that adopts
// it.
func (a *Adoption) isKept(namespace *corev1.Namespace) bool {
	owner := namespace.Labels[v1alpha1.TenantLabel]
	return owner != "" && owner != a.tenant.Name
}

// recordKept records the walls of the previous tenant, and its labels and annotations on the
// namespace, so that undoing restores them.
func (a *Adoption) recordKept(ctx context.Context, r *Record, namespace *corev1.Namespace) error {
	marks := Marks{Labels: maps.Clone(namespace.Labels), Annotations: maps.Clone(namespace.Annotations)}
	isOwn := func(key, _ string) bool {
		return !strings.HasPrefix(key, "croft.dev/") && key != v1alpha1.ManagedByLabel && !strings.HasPrefix(key, "pod-security.kubernetes.io/")
	}
	maps.DeleteFunc(marks.Labels, isOwn)
	maps.DeleteFunc(marks.Annotations, isOwn)
	r.Namespaces[namespace.Name] = marks
	for _, kind := range slices.Concat(apply.TenantKinds, apply.DialectKinds, apply.OptionalKinds) {
		walls, err := listObjects(ctx, a.client, kind, client.InNamespace(namespace.Name), client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
		if err != nil {
			return err
		}
		for i := range walls {
			r.addObject(&walls[i])
		}
	}
	return nil
}
