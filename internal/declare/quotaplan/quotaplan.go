// Package quotaplan divides a tenant's quota among its namespaces.
//
// Kubernetes enforces a quota within one namespace only. So each of a tenant's namespaces has a
// ResourceQuota with a share of the tenant's quota, and the shares follow use and refused
// demands: first the share of one namespace is lowered, and when the lower share is observed to
// be in force, other namespaces get the difference. Everything here is a pure function.
package quotaplan

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// Space is a namespace that has, or is to get, a share.
type Space struct {
	Namespace string
	// Leaving means that the tenant may no longer use the namespace: it keeps its present share
	// as long as it exists, and its share is not raised.
	Leaving bool
	// Share is the namespace's entry in the ledger, or nil if there is none.
	Share corev1.ResourceList
	// Spec is the ResourceQuota's spec.hard; Hard and Used are from its status. They are nil as
	// long as it does not exist.
	Spec, Hard, Used corev1.ResourceList
	// Minimum is the lower limit of the share, regardless of others' use.
	Minimum corev1.ResourceList
	// Demands are the shares that the refused objects need. They may be forged.
	Demands []corev1.ResourceList
}

// DivideEvenly divides a quota into equal shares, apart from minimums, which is as good as any division
// as long as the use is unknown. A single namespace gets the whole quota.
func DivideEvenly(total corev1.ResourceList, namespaces []string, minimums map[string]corev1.ResourceList) map[string]corev1.ResourceList {
	if len(total) == 0 {
		return nil
	}
	shares := map[string]corev1.ResourceList{}
	if len(namespaces) == 1 {
		shares[namespaces[0]] = total
		return shares
	}
	var spaces []Space
	for _, namespace := range namespaces {
		shares[namespace] = corev1.ResourceList{}
		spaces = append(spaces, Space{Namespace: namespace, Minimum: minimums[namespace]})
	}
	for name, quantity := range total {
		r := observeHolding(name, quantity, spaces)
		r.divideRoom(r.total)
		for i, h := range r.holders {
			shares[namespaces[i]][name] = r.toQuantity(h.part)
		}
	}
	return shares
}

// CurrentShares returns the namespaces' present shares: those in the ledger, and zero for a
// namespace outside of it, which gets a share when others have given some up.
func CurrentShares(total corev1.ResourceList, namespaces []string, ledger map[string]corev1.ResourceList) map[string]corev1.ResourceList {
	shares := make(map[string]corev1.ResourceList, len(namespaces))
	for _, namespace := range namespaces {
		share, ok := ledger[namespace]
		if !ok {
			share = makeZeroShare(total)
		}
		shares[namespace] = share
	}
	return shares
}

// makeZeroShare returns a share of zero of each resource in a quota.
func makeZeroShare(total corev1.ResourceList) corev1.ResourceList {
	share := corev1.ResourceList{}
	for name, quantity := range total {
		share[name] = newMeasure(name, quantity).toQuantity(0)
	}
	return share
}

// IsEqual reports whether two lists have the same resources and amounts.
func IsEqual(a, b corev1.ResourceList) bool {
	return len(a) == len(b) && maps.EqualFunc(a, b, isEqual)
}
