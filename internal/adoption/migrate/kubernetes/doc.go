// Package kubernetes reads Kubernetes' own objects of tenants: the namespaces,
// RoleBindings, ResourceQuotas and LimitRanges.
package kubernetes
