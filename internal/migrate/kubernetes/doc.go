// Package kubernetes reads what Kubernetes itself has in the namespaces of tenants: the
// namespaces, RoleBindings, ResourceQuotas and LimitRanges.
package kubernetes
