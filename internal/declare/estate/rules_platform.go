package estate

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/manifest"
)

// checkOnePlatform requires exactly one Platform.
func checkOnePlatform(w *checker) {
	if _, refused := w.FindRefused(manifest.ID{Kind: manifest.KindPlatform, Name: v1alpha1.PlatformName}); len(w.Platforms) == 0 && !refused && !w.IsIncomplete() {
		w.problems = append(w.problems, document.Problem{
			Kind: manifest.KindPlatform, Name: v1alpha1.PlatformName,
			Message: "is missing; declare the cluster's platform with its clusterName and nodeClass",
		})
	}
	for i, o := range w.objects[manifest.KindPlatform] {
		if i > 0 {
			w.refuse(o, nil, "a cluster has one platform, and it is declared already%s; keep one of them", w.FormatLocation(w.objects[manifest.KindPlatform][0]))
		}
	}
}

// checkAdmins refuses the built-in groups of Kubernetes that contain all users, or
// machines. system:masters may do everything anyway.
func checkAdmins(p *v1alpha1.PlatformSpec) []finding {
	var all []finding
	for _, list := range []struct {
		field  string
		groups []string
	}{{"admins", p.Admins}, {"auditors", p.Auditors}} {
		var tools []string
		hint := ""
		if list.field == "admins" {
			tools, hint = listToolGroups(p), ", or system:serviceaccounts:NAMESPACE of a namespace in network.platformNamespaces"
		}
		for i, group := range list.groups {
			if strings.HasPrefix(group, "system:") && group != "system:masters" && !slices.Contains(tools, group) {
				all = append(all, makeFinding(field.NewPath("spec", list.field).Index(i),
					"%s is a group of Kubernetes, and its members are not the platform's %s; name a group of your identity provider%s", group, list.field, hint)...)
			}
		}
	}
	return append(all, checkClassReaders(p)...)
}

// listToolGroups returns the groups of the service accounts in the platform's namespaces, such as the
// service accounts of Flux or of a backup tool. No tenant can have such a namespace. Kubernetes'
// own namespaces are left out: their controllers write objects on behalf of tenants.
func listToolGroups(p *v1alpha1.PlatformSpec) []string {
	var all []string
	for _, namespace := range p.Network.PlatformNamespaces {
		if namespace != metav1.NamespaceDefault && !strings.HasPrefix(namespace, "kube-") {
			all = append(all, "system:serviceaccounts:"+namespace)
		}
	}
	return all
}

// checkClassReaders refuses the built-in groups of Kubernetes, except for the group of all
// authenticated users.
func checkClassReaders(p *v1alpha1.PlatformSpec) []finding {
	var all []finding
	for i, group := range p.ClassReaders {
		if strings.HasPrefix(group, "system:") && group != "system:authenticated" {
			all = append(all, makeFinding(field.NewPath("spec", "classReaders").Index(i),
				"%s is a group of Kubernetes; name a group of your identity provider, or system:authenticated for all users with an account", group)...)
		}
	}
	return all
}

// checkPoolKey refuses a key for nodes that has another meaning already.
func checkPoolKey(p *v1alpha1.PlatformSpec) []finding {
	if !isLabel(p.NodePoolKey) {
		return makeFinding(field.NewPath("spec", "nodePoolKey"), "%q is not a label; write one such as %s", p.NodePoolKey, v1alpha1.DefaultNodePoolKey)
	}
	if findKeyOwner(p.NodePoolKey) == "" && !hasKarpenterDomain(p.NodePoolKey) && !karpenterv1.WellKnownLabels.Has(normalizeLabel(p.NodePoolKey)) {
		return nil
	}
	return makeFinding(field.NewPath("spec", "nodePoolKey"), "the label %s already has another purpose; choose one of your own, such as %s",
		p.NodePoolKey, v1alpha1.DefaultNodePoolKey)
}

// checkTolerations refuses a toleration for the taints of all pools.
func checkTolerations(p *v1alpha1.PlatformSpec) []finding {
	i := slices.Index(p.Tolerations, p.NodePoolKey)
	if i < 0 {
		return nil
	}
	return makeFinding(field.NewPath("spec", "tolerations").Index(i), "%s is the nodePoolKey, and croft adds the toleration of a pod's own pool; remove it", p.NodePoolKey)
}

func checkTenantDefaults(p *v1alpha1.PlatformSpec) []finding {
	at := field.NewPath("spec", "tenantDefaults")
	return checkResources(at.Child("quota"), p.TenantDefaults.Quota, at.Child("limits"), p.TenantDefaults.Limits)
}
