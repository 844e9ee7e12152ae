package estate

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
)

// onePlatform asks for exactly one Platform.
func onePlatform(w *whole) {
	if _, refused := w.refused[identity{kindPlatform, v1alpha1.PlatformName}]; len(w.Platforms) == 0 && !refused && !w.partial {
		w.problems = append(w.problems, Problem{
			Kind: kindPlatform, Name: v1alpha1.PlatformName,
			Message: "there is none; declare the cluster's platform with its clusterName and nodeClass",
		})
	}
	for i, o := range w.objects[kindPlatform] {
		if i > 0 {
			w.refuse(o, nil, "a cluster has one platform, and it is declared already%s; keep one of them", w.where(w.objects[kindPlatform][0]))
		}
	}
}

// adminsArePeople refuses the groups of Kubernetes' own that hold everybody, or
// machines. system:masters may do everything anyway.
func adminsArePeople(p *v1alpha1.PlatformSpec) []finding {
	var all []finding
	for i, group := range p.Admins {
		if strings.HasPrefix(group, "system:") && group != "system:masters" {
			all = append(all, found(field.NewPath("spec", "admins").Index(i),
				"%s is Kubernetes' own group and does not hold the platform's admins; name a group of your identity provider", group)...)
		}
	}
	return all
}

// poolKeyIsFree refuses a key for nodes that means something else already.
func poolKeyIsFree(p *v1alpha1.PlatformSpec) []finding {
	if ownerOfKey(p.NodePoolKey) == "" && !karpenterv1.WellKnownLabels.Has(normal(p.NodePoolKey)) {
		return nil
	}
	return found(field.NewPath("spec", "nodePoolKey"), "the label %s has a meaning already; choose one of your own, such as %s",
		p.NodePoolKey, v1alpha1.DefaultNodePoolKey)
}

func defaultsAreOrdered(p *v1alpha1.PlatformSpec) []finding {
	at := field.NewPath("spec", "tenantDefaults")
	return append(amounts(at.Child("quota"), p.TenantDefaults.Quota), ordered(at.Child("limits"), p.TenantDefaults.Limits)...)
}
