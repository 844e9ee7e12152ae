package quota

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/quotaplan"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/wall/policy"
)

// observation is a tenant's ledger and ResourceQuotas as they were read, and the plan that
// follows from them.
type observation struct {
	tenant *estate.Tenant
	spaces []quotaplan.Space
	quotas map[string]*corev1.ResourceQuota
	next   map[string]corev1.ResourceList
}

func (q *Quota) observeQuotas(ctx context.Context, reader client.Reader, object *v1alpha1.Tenant, tenant *estate.Tenant, names []string) (*observation, error) {
	entries := map[string]corev1.ResourceList{}
	for _, entry := range object.Status.Shares {
		entries[entry.Namespace] = entry.Hard
		if entry.Hard == nil {
			entries[entry.Namespace] = corev1.ResourceList{}
		}
	}
	s := &observation{tenant: tenant, quotas: map[string]*corev1.ResourceQuota{}}
	for _, name := range names {
		quota, err := getQuota(ctx, reader, name)
		if err != nil {
			return nil, err
		}
		space := quotaplan.Space{Namespace: name, Share: entries[name], Leaving: !slices.Contains(tenant.Namespaces, name),
			Minimum: tenant.Minimums[name], Demands: q.listDemands(name)}
		mine := quota != nil && quota.Labels[v1alpha1.TenantLabel] == tenant.Name
		if space.Leaving && !mine {
			// It was deleted or released.
			continue
		}
		if quota != nil {
			s.quotas[name] = quota
			space.Spec, space.Hard, space.Used = quota.Spec.Hard, quota.Status.Hard, quota.Status.Used
		}
		s.spaces = append(s.spaces, space)
	}
	s.next = quotaplan.Plan(tenant.Quota, s.spaces)
	return s, nil
}

// isReplanned reports whether the ledger must be written.
func (s *observation) isReplanned() bool {
	return slices.ContainsFunc(s.spaces, func(space quotaplan.Space) bool {
		next, ok := s.next[space.Namespace]
		return ok != (space.Share != nil) || !quotaplan.IsEqual(next, space.Share)
	})
}

// isSettled reports whether no write is needed.
func (s *observation) isSettled() bool { return !s.isReplanned() && len(s.listMoving()) == 0 }

// listMoving returns the namespaces whose ResourceQuotas must be written.
func (s *observation) listMoving() map[string]bool {
	all := map[string]bool{}
	for _, space := range s.spaces {
		if !space.Leaving && !quotaplan.IsEqual(space.Spec, s.next[space.Namespace]) {
			all[space.Namespace] = true
		}
	}
	return all
}

func (s *observation) buildLedger() []v1alpha1.QuotaShare {
	var ledger []v1alpha1.QuotaShare
	for _, space := range s.spaces {
		if hard, ok := s.next[space.Namespace]; ok {
			ledger = append(ledger, v1alpha1.QuotaShare{Namespace: space.Namespace, Hard: hard})
		}
	}
	return ledger
}

func (s *observation) buildDivision() *Division {
	divided := *s.tenant
	d := &Division{Tenant: &divided, versions: map[string]string{}, moving: s.listMoving()}
	// A new ResourceQuota starts at zero and is filled later, so creating it twice is
	// harmless.
	filled := map[string]corev1.ResourceList{}
	for _, name := range s.tenant.Namespaces {
		if quota := s.quotas[name]; quota != nil {
			filled[name] = s.next[name]
			d.versions[name] = quota.ResourceVersion
		}
		d.countNamespace(name, s.quotas[name])
	}
	divided.Shares = quotaplan.CurrentShares(s.tenant.Quota, s.tenant.Namespaces, filled)
	return d
}

// Division is the division of a tenant's quota at one moment.
type Division struct {
	// Tenant is the tenant with its shares.
	Tenant *estate.Tenant
	// Uncounted are the namespaces whose use is not yet counted. There the API server
	// admits everything, as if there were no quota.
	Uncounted []string

	versions map[string]string
	moving   map[string]bool
}

func (d *Division) countNamespace(namespace string, quota *corev1.ResourceQuota) {
	if quota == nil || len(quota.Status.Hard) == 0 {
		d.Uncounted = append(d.Uncounted, namespace)
	}
}

// SelectWritable returns the tenant's objects that can be written: ResourceQuotas with the
// version that was read, and people's access only where the quota is in force. Existing
// access stays.
func (d *Division) SelectWritable(objects []client.Object) []client.Object {
	var ready []client.Object
	for _, o := range objects {
		switch o.GetObjectKind().GroupVersionKind().Kind {
		case "ResourceQuota":
			o.SetResourceVersion(d.versions[o.GetNamespace()])
		case "RoleBinding":
			if slices.Contains(d.Uncounted, o.GetNamespace()) {
				continue
			}
		}
		ready = append(ready, o)
	}
	return ready
}

// OmitMoves omits moves of shares, which are not repairs.
func (d *Division) OmitMoves(changes []apply.Change) []apply.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c apply.Change) bool {
		return c.Kind == "ResourceQuota" && c.Name == policy.Name && c.Action == apply.Configured && d.moving[c.Namespace]
	})
}
