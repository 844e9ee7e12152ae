package adopt

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	podresources "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Excess is use beyond the tenant's quota. Running pods keep running; nothing more is admitted
// until the use falls below the quota.
type Excess struct {
	Resource string `json:"resource"`
	Used     string `json:"used"`
	Hard     string `json:"hard"`
}

// checkQuota compares the use of the tenant's namespaces with its quota.
func (a *Adoption) checkQuota(ctx context.Context, p *Plan) error {
	if len(a.tenant.Quota) == 0 {
		return nil
	}
	used := corev1.ResourceList{}
	for _, namespace := range a.tenant.Namespaces {
		if err := a.addUse(ctx, used, namespace); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(a.tenant.Quota) {
		hard := a.tenant.Quota[name]
		if usage, ok := used[name]; ok && usage.Cmp(hard) > 0 {
			p.Quota = append(p.Quota, Excess{string(name), usage.String(), hard.String()})
		}
	}
	return nil
}

// addUse adds up a namespace's use of the quota's resources, as Kubernetes counts it. It does not
// count storage of a single class; see the ResourceQuota itself for that.
func (a *Adoption) addUse(ctx context.Context, used corev1.ResourceList, namespace string) error {
	var pods corev1.PodList
	var services corev1.ServiceList
	var claims corev1.PersistentVolumeClaimList
	for _, all := range []client.ObjectList{&pods, &services, &claims} {
		if err := a.client.List(ctx, all, client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	for i := range pods.Items {
		countPod(used, &pods.Items[i])
	}
	for i := range services.Items {
		countService(used, &services.Items[i])
	}
	for i := range claims.Items {
		addQuantity(used, corev1.ResourceRequestsStorage, claims.Items[i].Spec.Resources.Requests[corev1.ResourceStorage])
	}
	for name := range a.tenant.Quota {
		counted, ok := parseCounted(name)
		if !ok {
			continue
		}
		kind, err := a.client.RESTMapper().KindFor(counted.WithVersion(""))
		if err != nil {
			continue // the cluster does not serve it
		}
		var objects metav1.PartialObjectMetadataList
		objects.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := a.client.List(ctx, &objects, client.InNamespace(namespace)); err != nil {
			return err
		}
		addQuantity(used, name, *resource.NewQuantity(int64(len(objects.Items)), resource.DecimalSI))
	}
	return nil
}

// parseCounted returns the resource whose objects a quota counts by a name, or false for other names.
func parseCounted(name corev1.ResourceName) (schema.GroupResource, bool) {
	if counted, ok := strings.CutPrefix(string(name), "count/"); ok {
		return schema.ParseGroupResource(counted), true
	}
	switch name {
	case corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims, corev1.ResourceReplicationControllers,
		corev1.ResourceQuotas, corev1.ResourceSecrets, corev1.ResourceServices:
		return schema.GroupResource{Resource: string(name)}, true
	default:
		return schema.GroupResource{}, false
	}
}

// countPod adds a pod's use of a quota. A finished pod only counts as an object.
func countPod(used corev1.ResourceList, pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	addQuantity(used, corev1.ResourcePods, single)
	for name, amount := range podresources.PodRequests(pod, podresources.PodResourcesOptions{}) {
		addQuantity(used, "requests."+name, amount)
		addQuantity(used, name, amount)
	}
	for name, amount := range podresources.PodLimits(pod, podresources.PodResourcesOptions{}) {
		addQuantity(used, "limits."+name, amount)
	}
}

// countService adds a Service's use of a quota, except for the number of Services.
func countService(used corev1.ResourceList, service *corev1.Service) {
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		addQuantity(used, corev1.ResourceServicesLoadBalancers, single)
	}
	for _, port := range service.Spec.Ports {
		if port.NodePort != 0 {
			addQuantity(used, corev1.ResourceServicesNodePorts, single)
		}
	}
}

var single = resource.MustParse("1")

func addQuantity(used corev1.ResourceList, name corev1.ResourceName, amount resource.Quantity) {
	sum := used[name]
	sum.Add(amount)
	used[name] = sum
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
