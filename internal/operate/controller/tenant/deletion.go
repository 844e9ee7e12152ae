package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/terminating"
	"croft.dev/croft/internal/operate/apply"
)

// recheck is how often a tenant that is being deleted is reconciled. The reason why a
// namespace still exists is in the namespace's status, whose changes cause no reconcile.
const recheck = 15 * time.Second

// deletion cleans up after a tenant that is being deleted. It reads from the API server: a
// cache may not show a new object, which nothing would delete later.
type deletion struct {
	live    client.Reader
	applier *apply.Applier
}

// cleanUp revokes people's and Flux's access in all namespaces, closes connections with other
// tenants and, with `deletion: Delete`, deletes the namespaces. It returns the namespaces that are still being deleted, each with
// the reason. The deletion is complete when there are none.
func (d deletion) cleanUp(ctx context.Context, tenant *v1alpha1.Tenant) (leaving []string, changes []apply.Change, err error) {
	changes, err = d.applier.Prune(ctx, apply.OfAccess(tenant.Name), "", nil, slices.Concat(apply.SourceKinds, apply.AccessKinds)...)
	closed, closeErr := d.applier.Prune(ctx, apply.OfAgreements(tenant.Name), "", nil, apply.AgreementKinds...)
	changes, err = append(changes, closed...), errors.Join(err, closeErr)
	var mine corev1.NamespaceList
	if err := d.live.List(ctx, &mine, client.MatchingLabels{v1alpha1.TenantLabel: tenant.Name}); err != nil {
		return nil, changes, fmt.Errorf("list namespaces of tenant %s: %w", tenant.Name, err)
	}
	errs := []error{err}
	for i := range mine.Items {
		labels, err := d.applier.CloseReferences(ctx, &mine.Items[i])
		changes, errs = append(changes, labels...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil || tenant.Spec.Deletion != v1alpha1.DeletionDelete {
		return nil, changes, err
	}
	for i := range mine.Items {
		namespace := &mine.Items[i]
		withdrawn, err := d.applier.Withdraw(ctx, namespace, tenant.Name, v1alpha1.DeletionDelete)
		changes = append(changes, withdrawn...)
		errs = append(errs, err)
		if namespace.Annotations[v1alpha1.CreatedAnnotation] == "true" {
			leaving = append(leaving, describeNamespace(namespace))
		}
	}
	if err := errors.Join(errs...); err != nil || len(leaving) > 0 {
		return leaving, changes, err
	}
	// The tenant's cluster-wide objects go last, after everything else.
	pruned, err := d.applier.Prune(ctx, apply.OfTenant(tenant.Name), "", nil, slices.Concat(apply.ClusterDialectKinds, apply.GatekeeperTenantKinds)...)
	return nil, append(changes, pruned...), err
}

// describeNamespace returns the name of a namespace that is being deleted, with the reason why it
// still exists.
func describeNamespace(n *corev1.Namespace) string {
	reasons := terminating.ExplainNamespace(n)
	if len(reasons) == 0 {
		return n.Name
	}
	return n.Name + " (" + strings.Join(reasons, "; ") + ")"
}
