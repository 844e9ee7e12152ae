package estate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/rights"
)

// otherCount is the maximum number of objects of a kind without its own number, such as each
// kind of an add-on.
const otherCount = 50

// elevationCount is the quota's name for Elevations.
const elevationCount corev1.ResourceName = "count/elevations.croft.dev"

// MaxElevationsPerPerson returns the maximum number of Elevations of one user in a tenant: a fifth of
// the tenant's, so that no user exhausts the quota of the others.
func MaxElevationsPerPerson(t *Tenant) int {
	total, limited := t.Quota[elevationCount]
	if !limited {
		total = BuiltinQuota(&v1alpha1.PlatformSpec{})[elevationCount]
	}
	return max(1, int(total.Value())/5)
}

// BuiltinQuota returns the quota that applies if neither the tenant nor the platform has one:
// more objects than a team needs, and fewer than would harm the control plane. It counts every
// kind that tenants may write, except for Events, which no quota can count. It omits CPU and
// memory, since every pod would then have to request them.
//
// Two resources bound the numbers: the space in etcd (estatetest.MaxTenantBytes), and the time of
// kube-controller-manager. At its default of 20 requests a second, one request for each of a
// thousand objects takes 50 s, in which it serves no one else.
func BuiltinQuota(p *v1alpha1.PlatformSpec) corev1.ResourceList {
	quota := corev1.ResourceList{}
	set := func(name corev1.ResourceName, most int64) {
		quota[name] = *resource.NewQuantity(most, resource.DecimalSI)
	}
	for name, most := range map[corev1.ResourceName]int64{
		// pods does not count finished pods, and count/pods counts all: a Job's pods exist
		// until the Job is deleted.
		corev1.ResourcePods:                            500,
		"count/pods":                                   1000,
		corev1.ResourceServices:                        150,
		corev1.ResourceSecrets:                         250,
		corev1.ResourceConfigMaps:                      250,
		corev1.ResourcePersistentVolumeClaims:          100,
		corev1.ResourceReplicationControllers:          25,
		"count/podtemplates":                           25,
		"count/serviceaccounts":                        100,
		"count/controllerrevisions.apps":               500, // the same for StatefulSets and DaemonSets
		"count/deployments.apps":                       100,
		"count/replicasets.apps":                       1200, // for each Deployment the default history of ten, and the current one
		"count/statefulsets.apps":                      40,
		"count/daemonsets.apps":                        10,
		"count/jobs.batch":                             400, // a CronJob keeps four
		"count/cronjobs.batch":                         100,
		"count/horizontalpodautoscalers.autoscaling":   50,
		"count/poddisruptionbudgets.policy":            150,
		"count/ingresses.networking.k8s.io":            100,
		"count/networkpolicies.networking.k8s.io":      100,
		"count/roles.rbac.authorization.k8s.io":        100,
		"count/rolebindings.rbac.authorization.k8s.io": 100,
		"count/leases.coordination.k8s.io":             250,
		elevationCount:                                 250, // ElevationRoom limits the part of one user
		"count/resourceclaims.resource.k8s.io":         100,
		"count/resourceclaimtemplates.resource.k8s.io": 25,
		"count/certificates.cert-manager.io":           100,
		"count/httproutes.gateway.networking.k8s.io":   100,
	} {
		set(name, most)
	}
	for _, name := range listWritableKinds(p) {
		if _, known := quota[name]; !known {
			set(name, otherCount)
		}
	}
	return quota
}

// listWritableKinds returns the kinds that tenants may write, in a quota's format: the kinds of the role
// operator, which has the most rights.
func listWritableKinds(p *v1alpha1.PlatformSpec) []corev1.ResourceName {
	var all []corev1.ResourceName
	for _, rule := range rights.ForRole(v1alpha1.RoleOperator, p) {
		if !slices.Contains(rule.Verbs, "create") {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, kind := range rule.Resources {
				switch {
				case strings.Contains(kind, "/"): // a subresource
				case len(rule.ResourceNames) > 0: // Calico's rights to a tier, which are not objects
				case kind == "events": // the API server does not let a quota count them
				case group != "":
					all = append(all, corev1.ResourceName("count/"+kind+"."+group))
				case manifest.CountedObjects.Has(kind):
					all = append(all, corev1.ResourceName(kind))
				default:
					all = append(all, corev1.ResourceName("count/"+kind))
				}
			}
		}
	}
	return all
}
