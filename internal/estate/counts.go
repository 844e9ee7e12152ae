package estate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/manifest"
	"croft.dev/croft/internal/rights"
)

// otherCount is the maximum number of objects of a kind without a number of its own,
// such as each kind of an add-on.
const otherCount = 50

// elevationCount is the quota's name for Elevations.
const elevationCount corev1.ResourceName = "count/elevations.croft.dev"

// ElevationRoom is the maximum number of Elevations of one person in a tenant: a fifth of
// the tenant's, so that no person uses up the room of the others.
func ElevationRoom(t *Tenant) int {
	total, limited := t.Quota[elevationCount]
	if !limited {
		total = BuiltinQuota(&v1alpha1.PlatformSpec{})[elevationCount]
	}
	return max(1, int(total.Value())/5)
}

// BuiltinQuota applies if neither the tenant nor the platform has a quota: more
// objects than a team needs, and fewer than would hurt the control plane. It counts
// every kind that tenants may write, except for Events, which no quota can count. It
// leaves out CPU and memory, since every pod would then have to request them.
//
// Two things bound the numbers: the space in etcd (TenantBytes), and the time of
// kube-controller-manager. At its default of 20 requests a second, one request for each
// of a thousand objects takes it 50 s, in which it does nothing for others.
func BuiltinQuota(p *v1alpha1.PlatformSpec) corev1.ResourceList {
	quota := corev1.ResourceList{}
	set := func(name corev1.ResourceName, most int64) {
		quota[name] = *resource.NewQuantity(most, resource.DecimalSI)
	}
	for name, most := range map[corev1.ResourceName]int64{
		// Without finished ones, and all: a Job's pods stay until it is deleted.
		corev1.ResourcePods:                            500,
		"count/pods":                                   1000,
		corev1.ResourceServices:                        150,
		corev1.ResourceSecrets:                         250,
		corev1.ResourceConfigMaps:                      250,
		corev1.ResourcePersistentVolumeClaims:          100,
		corev1.ResourceReplicationControllers:          25,
		"count/podtemplates":                           25,
		"count/serviceaccounts":                        100,
		"count/controllerrevisions.apps":               500, // the same of StatefulSets and DaemonSets
		"count/deployments.apps":                       100,
		"count/replicasets.apps":                       1200, // ten that are kept, and one, of each Deployment
		"count/statefulsets.apps":                      40,
		"count/daemonsets.apps":                        10,
		"count/jobs.batch":                             400, // four that are kept of each CronJob
		"count/cronjobs.batch":                         100,
		"count/horizontalpodautoscalers.autoscaling":   50,
		"count/poddisruptionbudgets.policy":            150,
		"count/ingresses.networking.k8s.io":            100,
		"count/networkpolicies.networking.k8s.io":      100,
		"count/roles.rbac.authorization.k8s.io":        100,
		"count/rolebindings.rbac.authorization.k8s.io": 100,
		"count/leases.coordination.k8s.io":             250,
		elevationCount:                                 250, // of which one person may have a part: see ElevationRoom
		"count/resourceclaims.resource.k8s.io":         100,
		"count/resourceclaimtemplates.resource.k8s.io": 25,
		"count/certificates.cert-manager.io":           100,
		"count/httproutes.gateway.networking.k8s.io":   100,
	} {
		set(name, most)
	}
	for _, name := range written(p) {
		if _, known := quota[name]; !known {
			set(name, otherCount)
		}
	}
	return quota
}

// written are the kinds that tenants may write, in a quota's format: those of the role
// operator, which has the most.
func written(p *v1alpha1.PlatformSpec) []corev1.ResourceName {
	var all []corev1.ResourceName
	for _, rule := range rights.Of(v1alpha1.RoleOperator, p) {
		if !slices.Contains(rule.Verbs, "create") {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, kind := range rule.Resources {
				switch {
				case strings.Contains(kind, "/"): // a part of another
				case len(rule.ResourceNames) > 0: // Calico's rights to a tier, which are no objects
				case kind == "events": // the API server lets no quota count them
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

// TenantBytes is the most that the objects of a tenant can take of etcd: of each
// kind that its quota counts as many as it may have, each as large as it may be.
// Events are not among them, and neither is what etcd keeps of objects that were
// changed, until the API server has it forget that, after five minutes.
func TenantBytes(t *Tenant) int64 {
	var sum int64
	for name, most := range t.Quota {
		size := *t.Allowances.MaxOtherObjectBytes
		switch name {
		case corev1.ResourceConfigMaps, "count/configmaps":
			size = *t.Allowances.MaxObjectBytes
		case corev1.ResourceSecrets, "count/secrets":
			size = max(*t.Allowances.MaxObjectBytes, *t.Allowances.MaxHelmReleaseBytes)
		case "count/leases.coordination.k8s.io", elevationCount:
			size = MaxNoteBytes
		case corev1.ResourcePods:
			continue // they are among count/pods
		default:
			if !manifest.CountedObjects.Has(string(name)) && !strings.HasPrefix(string(name), "count/") {
				continue
			}
		}
		sum += most.Value() * size
	}
	return sum
}
