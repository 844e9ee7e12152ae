package adopt

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresources "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Excess is what the tenant uses more of than its quota allows. What runs goes on;
// nothing more is let in until it is less.
type Excess struct {
	Resource string `json:"resource"`
	Used     string `json:"used"`
	Hard     string `json:"hard"`
}

// quota compares what the pods of the tenant ask for with its quota. It knows the
// resources of pods; what else a quota counts shows on the ResourceQuota itself.
func (a *Adoption) quota(ctx context.Context, p *Plan) error {
	if len(a.tenant.Quota) == 0 {
		return nil
	}
	used := corev1.ResourceList{}
	for _, namespace := range a.tenant.Namespaces {
		var pods corev1.PodList
		if err := a.client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			count(used, &pods.Items[i])
		}
	}
	for _, name := range sortedKeys(a.tenant.Quota) {
		hard := a.tenant.Quota[name]
		if have, ok := used[name]; ok && have.Cmp(hard) > 0 {
			p.Quota = append(p.Quota, Excess{string(name), have.String(), hard.String()})
		}
	}
	return nil
}

// count adds up what a pod counts for in a quota.
func count(used corev1.ResourceList, pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	add(used, corev1.ResourcePods, resource.MustParse("1"))
	add(used, "count/pods", resource.MustParse("1"))
	for name, amount := range podresources.PodRequests(pod, podresources.PodResourcesOptions{}) {
		add(used, "requests."+name, amount)
		add(used, name, amount)
	}
	for name, amount := range podresources.PodLimits(pod, podresources.PodResourcesOptions{}) {
		add(used, "limits."+name, amount)
	}
}

func add(used corev1.ResourceList, name corev1.ResourceName, amount resource.Quantity) {
	sum := used[name]
	sum.Add(amount)
	used[name] = sum
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
