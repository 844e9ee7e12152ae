// Package estatetest computes bounds that estates must keep, for tests.
package estatetest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// MaxTenantBytes returns the maximum size of a tenant's objects in etcd: for each kind in its
// quota the maximum number, each with the maximum size. It includes neither Events nor the old
// versions of changed objects, which etcd keeps until the API server compacts them after five
// minutes.
func MaxTenantBytes(t *estate.Tenant) int64 {
	var sum int64
	for name, most := range t.Quota {
		size := *t.Allowances.MaxOtherObjectBytes
		switch name {
		case corev1.ResourceConfigMaps, "count/configmaps":
			size = *t.Allowances.MaxObjectBytes
		case corev1.ResourceSecrets, "count/secrets":
			size = max(*t.Allowances.MaxObjectBytes, *t.Allowances.MaxHelmReleaseBytes)
		case "count/leases.coordination.k8s.io", "count/elevations.croft.dev", "count/tenantcallers.croft.dev":
			size = estate.MaxNoteBytes
		case corev1.ResourcePods:
			continue // included in count/pods
		default:
			if !manifest.CountedObjects.Has(string(name)) && !strings.HasPrefix(string(name), "count/") {
				continue
			}
		}
		sum += most.Value() * size
	}
	return sum
}
