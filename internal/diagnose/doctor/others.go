package doctor

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/gatekeeper"
)

// checkOtherMutators reports other components that change tenants' pods. Webhooks run after the API
// server's own mutating policies. croft's rules validate the result, so they cannot be
// bypassed, but pods may be refused because of changes that their team did not make.
func checkOtherMutators(s *Snapshot) []Finding {
	var all []Finding
	for i := range s.Webhooks {
		for _, w := range s.Webhooks[i].Webhooks {
			if w.Name == gatekeeper.MutationWebhook && getPlacement(s) == v1alpha1.PlacementGatekeeper || !changesPods(w.Rules) {
				continue
			}
			if hit := listMatching(s.Namespaces, w.NamespaceSelector); len(hit) > 0 {
				all = append(all, newFinding("foreign-mutation", Warning, "MutatingWebhookConfiguration/"+s.Webhooks[i].Name, fmt.Sprintf("webhook %s changes pods in %s", w.Name, formatSome(hit))))
			}
		}
	}
	for i := range s.Mutations {
		m := &s.Mutations[i]
		if m.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy || m.Spec.MatchConstraints == nil || !changesPods(toPlainRules(m.Spec.MatchConstraints.ResourceRules)) {
			continue
		}
		if hit := listMatching(s.Namespaces, m.Spec.MatchConstraints.NamespaceSelector); len(hit) > 0 {
			all = append(all, newFinding("foreign-mutation", Warning, "MutatingAdmissionPolicy/"+m.Name, "changes pods in "+formatSome(hit)))
		}
	}
	for i := range s.Namespaces {
		all = append(all, findPluginAnnotations(&s.Namespaces[i])...)
	}
	for i := range s.Kyverno {
		if namespace := s.Kyverno[i].GetNamespace(); namespace != "" && !s.isTenantNamespace(namespace) {
			continue // a Policy applies only to its own namespace
		}
		if rule := findMutatingRule(&s.Kyverno[i]); rule != "" {
			all = append(all, newFinding("foreign-mutation", Warning, s.Kyverno[i].GetKind()+"/"+s.Kyverno[i].GetName(), "Kyverno's rule "+rule+" changes pods"))
		}
	}
	return all
}

// plugins maps annotations of namespaces to the admission plugins that change or refuse
// pods because of them. The plugins are off by default, and it cannot be read whether they
// are enabled.
var plugins = map[string]string{
	"scheduler.alpha.kubernetes.io/node-selector":        "PodNodeSelector",
	"scheduler.alpha.kubernetes.io/defaultTolerations":   "PodTolerationRestriction",
	"scheduler.alpha.kubernetes.io/tolerationsWhitelist": "PodTolerationRestriction",
}

func findPluginAnnotations(n *corev1.Namespace) []Finding {
	if n.DeletionTimestamp != nil {
		return nil
	}
	var all []Finding
	for _, key := range sortKeys(plugins) {
		if _, ok := n.Annotations[key]; !ok {
			continue
		}
		f := newFinding("foreign-mutation", Warning, "Namespace/"+n.Name, fmt.Sprintf("it has the annotation %s: where the API server's admission plugin %s is on, pods get its value and are refused, or never fit the nodes of their pool", key, plugins[key]))
		f.Fix = "remove the annotation: the tenant's pools place its pods, and `instances` of a Pool specifies the nodes"
		f.Run = "kubectl annotate namespace " + n.Name + " " + key + "-"
		all = append(all, f)
	}
	return all
}

// listMatching returns the namespaces that a selector matches, or all if it is nil.
func listMatching(namespaces []corev1.Namespace, selector *metav1.LabelSelector) []string {
	if selector == nil {
		selector = &metav1.LabelSelector{}
	}
	matches, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil // the API server has rejected it
	}
	var hit []string
	for _, n := range namespaces {
		if n.DeletionTimestamp == nil && matches.Matches(labels.Set(n.Labels)) {
			hit = append(hit, n.Name)
		}
	}
	return hit
}

func toPlainRules(rules []admissionv1.NamedRuleWithOperations) []admissionv1.RuleWithOperations {
	all := make([]admissionv1.RuleWithOperations, len(rules))
	for i, r := range rules {
		all[i] = r.RuleWithOperations
	}
	return all
}

func changesPods(rules []admissionv1.RuleWithOperations) bool {
	contains := func(list []string, name string) bool {
		return slices.Contains(list, name) || slices.Contains(list, "*") || slices.Contains(list, "*/*")
	}
	return slices.ContainsFunc(rules, func(r admissionv1.RuleWithOperations) bool {
		return contains(r.APIGroups, "") && contains(r.Resources, "pods") &&
			(slices.Contains(r.Operations, admissionv1.Create) || slices.Contains(r.Operations, admissionv1.OperationAll))
	})
}

// findMutatingRule returns the name of a rule of a Kyverno policy that changes pods, or "".
// Kyverno generates the rules for pod controllers, such as Deployments, from the rules for
// pods.
func findMutatingRule(policy *unstructured.Unstructured) string {
	rules, _, _ := unstructured.NestedSlice(policy.Object, "spec", "rules")
	for _, entry := range rules {
		rule, _ := entry.(map[string]any)
		if _, mutates := rule["mutate"]; !mutates {
			continue
		}
		for _, list := range []string{"any", "all"} {
			matches, _, _ := unstructured.NestedSlice(rule, "match", list)
			for _, match := range matches {
				fields, _ := match.(map[string]any)
				kinds, _, _ := unstructured.NestedStringSlice(fields, "resources", "kinds")
				if slices.Contains(kinds, "Pod") || slices.Contains(kinds, "*") || slices.Contains(kinds, "v1/Pod") {
					name, _ := rule["name"].(string)
					return name
				}
			}
		}
	}
	return ""
}
