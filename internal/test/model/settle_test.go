package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/quotaplan"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/wall"
)

// quiet is the time without writes after which the operator is idle.
const quiet = time.Second

// settleAndCheck waits until the operator has applied everything, and evaluates the invariants of
// all versions up to then.
func (w *world) settleAndCheck(ctx context.Context, whole bool) (*violation, error) {
	if err := w.endFaults(); err != nil {
		return nil, err
	}
	var difference string
	// Not with the context of the poll, so that the last difference is not a request that ran out of time.
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, w.getPatience(), true, func(context.Context) (bool, error) {
		difference = w.findDifference(ctx, whole)
		return difference == "", nil
	}); err != nil {
		// An earlier violation may be the cause.
		if v, err := w.history.checkInvariants(ctx); v != nil || err != nil {
			return v, err
		}
		return &violation{family: familyRender, text: fmt.Sprintf("after %s, %s", w.getPatience(), difference)}, nil
	}
	if writes := w.awaitQuiet(ctx, quiet); len(writes) > 0 {
		return &violation{family: familySteady, text: "the operator still writes: " + strings.Join(writes, ", ")}, nil
	}
	return w.history.checkInvariants(ctx)
}

// getPatience returns the time for the operator to apply everything. It is shorter with a
// planted bug, which may leave a difference forever.
func (w *world) getPatience() time.Duration {
	if w.faults.bug != nil {
		return deadline / 3
	}
	return deadline
}

// awaitIdle waits until the operator has reported on the current spec of each tenant, and has then
// written nothing for some time. Unlike settle, it does not end faults, and expects no tenant to be Ready.
func (w *world) awaitIdle(ctx context.Context, idle time.Duration) error {
	var unreported string
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, w.getPatience(), true, func(context.Context) (bool, error) {
		unreported = w.findUnreported(ctx)
		return unreported == "", nil
	}); err != nil {
		return errors.New(unreported)
	}
	if writes := w.awaitQuiet(ctx, idle); len(writes) > 0 {
		return fmt.Errorf("the operator still writes: %s", strings.Join(writes, ", "))
	}
	return nil
}

// findUnreported returns a tenant whose status is not about its current spec, or "".
func (w *world) findUnreported(ctx context.Context) string {
	var tenants v1alpha1.TenantList
	if err := w.Client.List(ctx, &tenants); err != nil {
		return err.Error()
	}
	for i := range tenants.Items {
		t := &tenants.Items[i]
		ready := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.ObservedGeneration != t.Generation {
			return fmt.Sprintf("the operator has not reported on tenant %s: %+v", t.Name, ready)
		}
	}
	return ""
}

// awaitQuiet waits until the operator has written nothing for some time. It returns the last writes
// if it does not stop.
func (w *world) awaitQuiet(ctx context.Context, quiet time.Duration) []string {
	since, last := time.Now(), w.Writes.Count()
	var writes []string
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, deadline/3, true, func(context.Context) (bool, error) {
		fresh := slices.DeleteFunc(w.Writes.ListSince(last), isRoutine)
		if len(fresh) > 0 {
			since, last, writes = time.Now(), w.Writes.Count(), fresh
		}
		return time.Since(since) >= quiet, nil
	}); err != nil {
		return writes
	}
	return nil
}

// isRoutine reports whether a write is one of an idle operator: its heartbeat, and probes of walls,
// which are dry runs.
func isRoutine(write string) bool {
	return strings.Contains(write, "dryRun=All") || strings.Contains(write, "/leases") || strings.Contains(write, "/"+v1alpha1.SystemNamespace+"/")
}

// cluster is the state of a cluster that is compared with the declared state.
type cluster struct {
	platforms  v1alpha1.PlatformList
	pools      v1alpha1.PoolList
	tenants    v1alpha1.TenantList
	namespaces corev1.NamespaceList
	// made are croft's objects in namespaces.
	made []client.Object
}

func (w *world) readCluster(ctx context.Context) (*cluster, error) {
	c := &cluster{}
	for _, list := range []client.ObjectList{&c.platforms, &c.pools, &c.tenants, &c.namespaces} {
		if err := w.Client.List(ctx, list); err != nil {
			return nil, err
		}
	}
	for _, list := range []client.ObjectList{
		&rbacv1.RoleBindingList{}, &networkingv1.NetworkPolicyList{}, &corev1.ResourceQuotaList{}, &corev1.LimitRangeList{}, &v1alpha1.TenantRulesList{},
	} {
		if err := w.Client.List(ctx, list, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}, client.HasLabels{v1alpha1.TenantLabel}); err != nil {
			return nil, err
		}
		if err := meta.EachListItem(list, func(o runtimeObject) error {
			if o, ok := o.(client.Object); ok {
				c.made = append(c.made, o)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// findDifference returns a difference between the cluster and the declared state, or "".
func (w *world) findDifference(ctx context.Context, whole bool) string {
	c, err := w.readCluster(ctx)
	if err != nil {
		return err.Error()
	}
	e, _ := estate.Build(&manifest.Declaration{Platforms: c.platforms.Items, Pools: c.pools.Items, Tenants: c.tenants.Items, Now: w.clock.Now()})
	desired, difference := c.compareTenants(e)
	if difference != "" {
		return difference
	}
	for _, p := range e.Pools {
		desired = append(desired, wall.PoolObjects(&e.Platform, p)...)
	}
	if whole {
		desired = append(desired, wall.PlatformObjects(&e.Platform)...)
	}
	// A dry run of each object would take too long.
	surveyed, err := apply.New(w.Client).Survey(ctx, apply.SurveyOptions{}, desired...)
	if err != nil {
		return err.Error()
	}
	for _, s := range surveyed {
		if s.State != apply.Matches {
			return fmt.Sprintf("%s %s", s.Ref, s.State)
		}
	}
	return ""
}

// compareTenants returns the objects of all valid tenants, and a difference that can be found
// without comparing them with the cluster's: a condition, an owner, a share, or an object that
// should not exist.
func (c *cluster) compareTenants(e *estate.Estate) (desired []client.Object, difference string) {
	namespaces := map[string]*corev1.Namespace{}
	for i := range c.namespaces.Items {
		namespaces[c.namespaces.Items[i].Name] = &c.namespaces.Items[i]
	}
	// owned are the namespaces of valid tenants. Those of others keep their walls.
	owned, exists := map[string]string{}, map[string]bool{}
	for i := range c.tenants.Items {
		live := &c.tenants.Items[i]
		exists[live.Name] = true
		t := e.FindTenant(live.Name)
		want := v1alpha1.ReasonReady
		switch {
		case live.DeletionTimestamp != nil:
			return nil, "tenant " + live.Name + " is being deleted"
		case t == nil:
			want = v1alpha1.ReasonInvalid
		default:
			for _, name := range t.Namespaces {
				if namespaces[name] == nil {
					return nil, fmt.Sprintf("namespace %s of tenant %s does not exist", name, t.Name)
				}
				if err := apply.CheckClaim(namespaces[name], t.Name); err != nil {
					want = v1alpha1.ReasonNamespaceNotOwned
					continue
				}
				owned[name] = t.Name
			}
		}
		ready := meta.FindStatusCondition(live.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.ObservedGeneration != live.Generation || ready.Reason != want {
			return nil, fmt.Sprintf("tenant %s is not %s: %+v", live.Name, want, ready)
		}
		if t != nil {
			objects, why := c.buildObjects(e, t, live, owned)
			if why != "" {
				return nil, why
			}
			desired = append(desired, objects...)
		}
	}
	return desired, c.findSurplus(e, desired, namespaces, owned, exists)
}

// buildObjects returns the walls of a tenant in its own namespaces, with its current shares.
func (c *cluster) buildObjects(e *estate.Estate, t *estate.Tenant, live *v1alpha1.Tenant, owned map[string]string) ([]client.Object, string) {
	divided := *t
	if len(live.Status.Shares) > 0 {
		ledger := map[string]corev1.ResourceList{}
		for _, share := range live.Status.Shares {
			ledger[share.Namespace] = share.Hard
		}
		divided.Shares = quotaplan.CurrentShares(t.Quota, t.Namespaces, ledger)
	} else if len(t.Namespaces) > 1 && slices.ContainsFunc(t.Namespaces, func(name string) bool { return owned[name] == t.Name }) {
		return nil, fmt.Sprintf("tenant %s has no shares", t.Name)
	}
	var objects []client.Object
	for _, o := range wall.TenantObjects(&e.Platform, &divided) {
		namespace := o.GetNamespace()
		if o.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
			namespace = o.GetName()
		}
		if owned[namespace] != t.Name {
			continue
		}
		objects = append(objects, o)
	}
	for _, o := range c.made {
		quota, ok := o.(*corev1.ResourceQuota)
		if !ok || owned[quota.Namespace] != t.Name || quota.Name != "croft" {
			continue
		}
		if want := divided.Shares[quota.Namespace]; !quotaplan.IsEqual(want, quota.Spec.Hard) || !quotaplan.IsEqual(want, quota.Status.Hard) {
			return nil, fmt.Sprintf("the share of %s is %v, and the quota has %v, of which %v is in force", quota.Namespace, want, quota.Spec.Hard, quota.Status.Hard)
		}
	}
	return objects, ""
}

// findSurplus returns an object that should not exist, or "".
func (c *cluster) findSurplus(e *estate.Estate, desired []client.Object, namespaces map[string]*corev1.Namespace, owned map[string]string, exists map[string]bool) string {
	kept := map[ref]bool{}
	for _, o := range desired {
		kept[newRef(o)] = true
	}
	for _, n := range namespaces {
		if n.DeletionTimestamp != nil {
			return fmt.Sprintf("namespace %s is being deleted", n.Name)
		}
	}
	for _, o := range c.made {
		tenant := o.GetLabels()[v1alpha1.TenantLabel]
		_, isAccess := o.(*rbacv1.RoleBinding)
		// An invalid tenant keeps the walls and the access of its last valid spec.
		isKept := exists[tenant] && e.FindTenant(tenant) == nil || !isAccess
		if !kept[newRef(o)] && (owned[o.GetNamespace()] != "" || !isKept) {
			return fmt.Sprintf("%s of tenant %s should not exist", newRef(o), tenant)
		}
	}
	return ""
}
