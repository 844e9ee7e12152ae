package admission

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UpdatesSuffix ends the name of a policy's second binding.
const UpdatesSuffix = "-updates"

// binding is how a policy is put into force.
type binding struct {
	name     string
	paramRef *admissionv1.ParamRef
	// matches narrows the policy's own choice; nil for all of it.
	matches *admissionv1.MatchResources
}

// bindings puts a policy into force. Without TenantRules nothing may be created.
// What is there already may be updated and deleted without them, by a binding of
// its own: a namespace that is being deleted loses its TenantRules before its
// last pods, claims and load balancers, and whoever takes the finalizers off
// these must not be denied, or the namespace would stay for ever.
func bindings(policy string, resources []Resource, ruleless bool) []binding {
	if ruleless {
		return []binding{{name: policy}}
	}
	first, later := split(resources)
	if len(later) == 0 {
		return []binding{{name: policy, paramRef: paramRef(admissionv1.DenyAction)}}
	}
	all := []binding{{policy + UpdatesSuffix, paramRef(admissionv1.AllowAction), narrowed(later)}}
	if len(first) > 0 {
		all = append(all, binding{policy, paramRef(admissionv1.DenyAction), narrowed(first)})
	}
	return all
}

// split parts what is asked of the living from what is asked of the dying.
// Nobody needs a subresource that policies look at to take an object away.
func split(resources []Resource) (first, later []Resource) {
	for _, r := range resources {
		subresource := slices.ContainsFunc(r.Resources, func(name string) bool { return strings.Contains(name, "/") })
		var now, then []admissionv1.OperationType
		for _, o := range r.Operations {
			if !subresource && (o == admissionv1.Update || o == admissionv1.Delete) {
				then = append(then, o)
			} else {
				now = append(now, o)
			}
		}
		if len(now) > 0 {
			first = append(first, Resource{r.Group, r.Version, r.Resources, now})
		}
		if len(then) > 0 {
			later = append(later, Resource{r.Group, r.Version, r.Resources, then})
		}
	}
	return first, later
}

func narrowed(resources []Resource) *admissionv1.MatchResources {
	equivalent := admissionv1.Equivalent
	return &admissionv1.MatchResources{
		MatchPolicy:       &equivalent,
		NamespaceSelector: &metav1.LabelSelector{},
		ObjectSelector:    &metav1.LabelSelector{},
		ResourceRules:     resourceRules(resources),
	}
}
