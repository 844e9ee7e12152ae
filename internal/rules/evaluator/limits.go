package evaluator

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fillResources sets the requests of a pod's containers that follow from their limits, and
// then the defaults of the namespace's LimitRanges. It corresponds to SetDefaults_Pod and the
// plugin LimitRanger of k8s.io/kubernetes.
func fillResources(pod *unstructured.Unstructured, limits []*corev1.LimitRange) {
	spec := ensureObject(pod.Object, "spec")
	for _, list := range []string{"containers", "initContainers"} {
		containers, _ := spec[list].([]any)
		for _, c := range containers {
			c, ok := c.(map[string]any)
			if !ok {
				continue
			}
			resources := ensureObject(c, "resources")
			if own, ok := resources["limits"].(map[string]any); ok {
				for name, quantity := range own {
					setIfMissing(ensureObject(resources, "requests"), name, quantity)
				}
			}
			for _, l := range limits {
				fillFromLimitRange(resources, l)
			}
		}
	}
}

func fillFromLimitRange(resources map[string]any, l *corev1.LimitRange) {
	for _, item := range l.Spec.Limits {
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		limits := mergeLists(item.Default, item.Max)
		for field, defaults := range map[string]corev1.ResourceList{"limits": limits, "requests": mergeLists(item.DefaultRequest, limits, item.Min)} {
			for name, quantity := range defaults {
				setIfMissing(ensureObject(resources, field), string(name), quantity.String())
			}
		}
	}
}

// mergeLists merges lists. For each resource, the quantity of the first list that has it is used.
func mergeLists(lists ...corev1.ResourceList) corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, list := range lists {
		for name, quantity := range list {
			if _, ok := all[name]; !ok {
				all[name] = quantity
			}
		}
	}
	return all
}
