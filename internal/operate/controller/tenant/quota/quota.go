// Package quota divides a tenant's quota among its namespaces, as package quotaplan plans
// it, and keeps the ledger in the Tenant's status.
//
// A share that is granted twice cannot be taken back, so no decision is based on the cache,
// which may be stale. The cache only confirms that nothing has to change. Otherwise the
// Tenant is read from the API server, then its ResourceQuotas. The ledger is written only
// if the Tenant has not changed since, and each ResourceQuota only over the version that
// was read. So if two operators both believe that they lead, at most one succeeds.
//
// Shares follow use and refusals: a namespace gets more if its objects are refused because
// they are larger than the rest of its share. A refusal is an event. Tenants may write
// events, so only events of Kubernetes' controllers count. Where the rule event-source is
// not in force, a forged demand only expresses how a tenant would like its own quota to be
// divided: grants come only from resources that are observed to be free in the same tenant,
// and no other namespace falls below its minimum (package quotaplan).
package quota

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/walls/wall/policy"
)

// Quota divides quotas.
type Quota struct {
	cached client.Client
	live   client.Reader
	clock  clock.WithDelayedExecution

	mu sync.Mutex
	// sharing are the tenants with more than one namespace, by name. Their use is
	// evaluated.
	sharing map[string]*estate.Tenant
	// expected are the tenants whose evaluation is scheduled.
	expected map[string]bool
	// demands are the recent refusals, by namespace and by the refused object.
	demands map[string]map[types.UID]*demand
}

// New returns a Quota. cached reads from an indexed cache, live from the API server.
func New(cached client.Client, live client.Reader, clock clock.WithDelayedExecution) *Quota {
	return &Quota{
		cached: cached, live: live, clock: clock,
		sharing: map[string]*estate.Tenant{}, expected: map[string]bool{}, demands: map[string]map[types.UID]*demand{},
	}
}

// Forget drops the state of a deleted tenant.
func (q *Quota) Forget(tenant string) {
	q.setSharing(tenant, nil)
	forgetMoved(tenant)
}

func (q *Quota) setSharing(name string, tenant *estate.Tenant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if tenant == nil {
		delete(q.sharing, name)
		return
	}
	q.sharing[name] = tenant
}

// Reconcile updates the ledger, and returns the division by which to write objects.
func (q *Quota) Reconcile(ctx context.Context, object *v1alpha1.Tenant, tenant *estate.Tenant) (*Division, error) {
	names, err := q.listMembers(ctx, object, tenant)
	if err != nil {
		return nil, err
	}
	if len(tenant.Quota) == 0 || len(names) == 1 && len(tenant.Namespaces) == 1 {
		q.setSharing(tenant.Name, nil)
		return q.reconcileSingle(ctx, object, tenant)
	}
	q.setSharing(tenant.Name, tenant)

	seen, err := q.observeQuotas(ctx, q.cached, object, tenant, names)
	if err != nil {
		return nil, err
	}
	if seen.isSettled() {
		return seen.buildDivision(), nil
	}
	return q.divideQuota(ctx, object, tenant)
}

// reconcileSingle returns the division of a tenant with one namespace.
func (q *Quota) reconcileSingle(ctx context.Context, object *v1alpha1.Tenant, tenant *estate.Tenant) (*Division, error) {
	if len(object.Status.Shares) > 0 {
		if err := q.writeLedger(ctx, object.DeepCopy(), nil); err != nil {
			return nil, err
		}
	}
	d := &Division{Tenant: tenant}
	for _, namespace := range tenant.Namespaces {
		if len(tenant.Quota) == 0 {
			break
		}
		live, err := getQuota(ctx, q.cached, namespace)
		if err != nil {
			return nil, err
		}
		d.countNamespace(namespace, live)
	}
	return d, nil
}

// divideQuota decides by the API server's state. It reads the Tenant first: if another operator
// writes the ledger later, this one's write conflicts.
func (q *Quota) divideQuota(ctx context.Context, object *v1alpha1.Tenant, tenant *estate.Tenant) (*Division, error) {
	live, err := q.readTenant(ctx, object)
	if err != nil {
		return nil, err
	}
	names, err := q.listMembers(ctx, live, tenant)
	if err != nil {
		return nil, err
	}
	seen, err := q.observeQuotas(ctx, q.live, live, tenant, names)
	if err != nil {
		return nil, err
	}
	switch {
	case seen.isReplanned():
		if err := q.writeLedger(ctx, live, seen.buildLedger()); err != nil {
			return nil, err
		}
		seen.countMoved()
	case !seen.isSettled():
		// The next write contains the ledger's current or previous shares. The versions of
		// the ResourceQuotas are only valid if they were read before the ledger.
		again, err := q.readTenant(ctx, object)
		if err != nil {
			return nil, err
		}
		if again.ResourceVersion != live.ResourceVersion {
			return nil, newConflict(object.Name)
		}
	}
	return seen.buildDivision(), nil
}

// readTenant reads a Tenant from the API server. It returns a conflict if the spec has changed;
// then the Tenant is about to be reconciled again.
func (q *Quota) readTenant(ctx context.Context, object *v1alpha1.Tenant) (*v1alpha1.Tenant, error) {
	live := &v1alpha1.Tenant{}
	if err := q.live.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return nil, fmt.Errorf("read Tenant %s: %w", object.Name, err)
	}
	if live.UID != object.UID || live.Generation != object.Generation {
		return nil, newConflict(object.Name)
	}
	return live, nil
}

func newConflict(name string) error {
	return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("tenants").GroupResource(), name,
		fmt.Errorf("it was changed while its quota was divided"))
}

// writeLedger writes the ledger, if the Tenant has not changed since it was read.
func (q *Quota) writeLedger(ctx context.Context, tenant *v1alpha1.Tenant, ledger []v1alpha1.QuotaShare) error {
	before := tenant.DeepCopy()
	tenant.Status.Shares = ledger
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := q.cached.Status().Patch(ctx, tenant, patch); err != nil {
		return fmt.Errorf("write the shares of Tenant %s: %w", tenant.Name, err)
	}
	return nil
}

// listMembers returns the namespaces with a share: first the declared ones that belong to the
// tenant, then existing ones that are no longer declared.
func (q *Quota) listMembers(ctx context.Context, object *v1alpha1.Tenant, tenant *estate.Tenant) ([]string, error) {
	var mine corev1.NamespaceList
	if err := q.cached.List(ctx, &mine, client.MatchingFields{watch.NamespacesByTenant: tenant.Name}); err != nil {
		return nil, fmt.Errorf("list namespaces of tenant %s: %w", tenant.Name, err)
	}
	var known []string
	for i := range mine.Items {
		known = append(known, mine.Items[i].Name)
	}
	for _, entry := range object.Status.Shares {
		known = append(known, entry.Namespace)
	}
	var names []string
	for _, name := range tenant.Namespaces {
		if !slices.Contains(known, name) {
			// A namespace that does not exist will be created. A namespace of another owner
			// gets no share.
			err := q.cached.Get(ctx, types.NamespacedName{Name: name}, &corev1.Namespace{})
			if err == nil {
				continue
			}
			if !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("read Namespace %s: %w", name, err)
			}
		}
		names = append(names, name)
	}
	slices.Sort(known)
	for _, name := range slices.Compact(known) {
		if !slices.Contains(tenant.Namespaces, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// getQuota returns croft's ResourceQuota of a namespace, or nil.
func getQuota(ctx context.Context, reader client.Reader, namespace string) (*corev1.ResourceQuota, error) {
	live := &corev1.ResourceQuota{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: policy.Name}, live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ResourceQuota %s/%s: %w", namespace, policy.Name, err)
	}
	return live, nil
}
