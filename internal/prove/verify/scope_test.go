package verify_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/rules/evaluator"
)

// unnoticed maps mutants of scopes that no attack can detect to the reason. The list may only
// shrink.
var unnoticed = map[string]string{
	"mutation croft-pods: no condition not-done":                                                           spares,
	"mutation croft-placement-daemonsets: no condition within-bounds":                                      spares,
	"mutation croft-pod-settings: no condition not-done":                                                   spares,
	"policy croft-pod-settings: no condition within-bounds":                                                spares,
	"policy croft-pod-trials: no condition within-bounds":                                                  spares,
	"policy croft-annotations: no condition annotated":                                                     spares,
	"policy croft-unknown-annotations: no condition annotated":                                             spares,
	"policy croft-unknown-pod-annotations: no condition annotated":                                         spares,
	"policy croft-finalizers: no condition has-finalizers-or-owners":                                       spares,
	"policy croft-network-floor: objectSelector does not ask for app.kubernetes.io/managed-by NotIn croft": protected,
	"policy croft-calico-floor: objectSelector does not ask for app.kubernetes.io/managed-by NotIn croft":  protected,
	"policy croft-role-bindings: objectSelector does not ask for app.kubernetes.io/managed-by NotIn croft": protected,
	"policy croft-sizes: does not except pods":                                                             "croft-pods measures them itself, but those that controllers make of templates which are measured",
	"policy croft-frozen: looks at all scopes of */scale":                                                  "of the cluster-scoped kinds only NodePools have a scale, and attacks write no NodePool; TestWallsHold/SystemRequests detects it",
	"policy croft-pods: looks at no pods/resize":                                                           "the API server takes CPU and memory alone of a resize, which no rule is about; a later one may take more",
}

// These are common conditions and selectors whose mutants no attack detects.
const (
	spares    = "it spares time: where it does not hold, the policy finds nothing to do"
	protected = "croft-protection decides who writes objects with croft's mark, and the platform is left out by a condition: there is one refusal in the place of two"
)

// TestMutantsOfScopes is like TestMutants, for the scopes of policies and without a cluster:
// each operation, resource, match condition, requirement of a selector and exclusion is removed
// once, and some attack or mirror must detect it.
func TestMutantsOfScopes(t *testing.T) {
	t.Parallel() // while TestMutants waits for its cluster
	started := time.Now()
	l := newOfflineScenes(t)
	objects := l.scenes[0].listPlatformObjects()
	// Mutants of policies on Calico's kinds are detected on platforms that let tenants write
	// them.
	for _, group := range []v1alpha1.CalicoAPIGroup{v1alpha1.CalicoGroup, v1alpha1.CalicoStorageGroup} {
		platform := newPlatform("ingress")
		platform.Spec.Network.Dialect = v1alpha1.DialectCalico
		platform.Spec.Network.Calico = &v1alpha1.CalicoNetwork{APIGroup: group, TenantPolicies: true}
		p := newOfflineProving(t, string(group), platform)
		l.scenes = append(l.scenes, p)
		l.offline.addScene(t, p, func(a attack.Attack) bool {
			return a.Request != nil && strings.HasSuffix(a.Request.Object.GetObjectKind().GroupVersionKind().Group, string(v1alpha1.CalicoGroup))
		})
		for _, o := range p.listPlatformObjects() {
			if !slices.ContainsFunc(objects, func(had client.Object) bool { return isSameObject(had, o) }) {
				objects = append(objects, o)
			}
		}
	}
	mutants := buildScopeMutants(objects)
	var findings []finding
	left := maps.Clone(unnoticed)
	for _, f := range l.offline.runMutants(t.Context(), l.scenes, mutants) {
		reason, excused := left[f.mutant]
		delete(left, f.mutant)
		switch {
		case !excused:
			findings = append(findings, f)
		case f.noticedBy != "":
			t.Errorf("%s is noticed by %s, but listed as not noticed", f.mutant, f.noticedBy)
		default:
			fmt.Printf("not noticed: %s: %s\n", f.mutant, reason)
		}
	}
	for name := range left {
		t.Errorf("%s is listed as not noticed, but is no mutant", name)
	}
	reportFindings(t, findings, time.Since(started))
}

// buildScopeMutants returns mutants of the scopes of policies. It removes each operation and each
// resource of each rule, which an attack must detect, and each match condition, requirement of
// a selector and exclusion, which a mirror must detect. An attack must also detect a condition
// that is always false.
func buildScopeMutants(objects []client.Object) []mutant {
	var all []mutant
	for _, o := range objects {
		s := getScope(o)
		if s == nil {
			continue
		}
		all = append(all, s.buildNarrowed()...)
		all = append(all, s.buildWidened()...)
	}
	return all
}

// scope is the scope of a policy or a binding.
type scope struct {
	object client.Object
	// policy is the policy's name, and binding is set if the object is a binding.
	policy  string
	binding bool
	match   *admissionv1.MatchResources
	// conditions is empty for a binding.
	conditions []admissionv1.MatchCondition
}

// getScope returns nil for objects that are neither a policy nor a binding.
func getScope(o client.Object) *scope {
	s := &scope{object: o, policy: o.GetName()}
	switch o := o.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		s.match, s.conditions = o.Spec.MatchConstraints, o.Spec.MatchConditions
	case *admissionv1.MutatingAdmissionPolicy:
		s.match, s.conditions = o.Spec.MatchConstraints, o.Spec.MatchConditions
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		s.policy, s.binding, s.match = o.Spec.PolicyName, true, o.Spec.MatchResources
	case *admissionv1.MutatingAdmissionPolicyBinding:
		s.policy, s.binding, s.match = o.Spec.PolicyName, true, o.Spec.MatchResources
	default:
		return nil
	}
	if s.match == nil {
		s.match = &admissionv1.MatchResources{}
	}
	return s
}

// changeScope returns a mutation that changes the object's scope.
func (s *scope) changeScope(change func(*scope)) mutation {
	return buildEdit(s.object, func(live client.Object) {
		after := getScope(live)
		change(after)
		switch live := live.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			live.Spec.MatchConditions = after.conditions
		case *admissionv1.MutatingAdmissionPolicy:
			live.Spec.MatchConditions = after.conditions
		}
	})
}

func (s *scope) newMutant(suspects func(attack.Attack) bool, change func(*scope), what string, args ...any) mutant {
	kind := "policy"
	if _, ok := s.object.(*admissionv1.MutatingAdmissionPolicy); ok {
		kind = "mutation"
	}
	if s.binding {
		kind = "binding of " + kind
	}
	return mutant{
		name: fmt.Sprintf("%s %s: ", kind, s.policy) + fmt.Sprintf(what, args...), object: s.policy,
		suspects: suspects, mutate: s.changeScope(change),
	}
}

// isStopped reports whether the policy stops an attack.
func (s *scope) isStopped(a attack.Attack) bool {
	if _, ok := s.object.(*admissionv1.MutatingAdmissionPolicy); ok {
		return selectChangedBy(s.policy, s.object)(a)
	}
	return a.StoppedBy.Policy == s.policy
}

// buildNarrowed returns the mutants with a narrower scope.
func (s *scope) buildNarrowed() []mutant {
	var all []mutant
	for i, c := range s.conditions {
		all = append(all, s.newMutant(s.isStopped, func(after *scope) { after.conditions[i].Expression = "false" }, "condition %s is always false", c.Name))
	}
	for i, rule := range s.match.ResourceRules {
		of := strings.Join(rule.Resources, ", ")
		for _, operation := range rule.Operations {
			all = append(all, s.newMutant(s.isStopped, func(after *scope) {
				r := &after.match.ResourceRules[i]
				r.Operations = removeElement(r.Operations, operation)
			}, "looks at no %s of %s", operation, formatResources(of, rule.APIGroups)))
		}
		for _, resource := range rule.Resources {
			if len(rule.Resources) == 1 && len(rule.Operations) == 1 {
				continue // the mutant without the operation is the same
			}
			all = append(all, s.newMutant(s.isStopped, func(after *scope) {
				r := &after.match.ResourceRules[i]
				r.Resources = removeElement(r.Resources, resource)
			}, "looks at no %s", formatResources(resource, rule.APIGroups)))
		}
	}
	return all
}

// buildWidened returns the mutants with a wider scope.
func (s *scope) buildWidened() []mutant {
	var all []mutant
	// A wider scope of a validating policy makes no attack succeed.
	_, changes := s.object.(*admissionv1.MutatingAdmissionPolicy)
	concerned := func(a attack.Attack) bool { return s.matchesRules(a) && (changes || a.Kind == attack.Mirror) }
	for i, c := range s.conditions {
		all = append(all, s.newMutant(concerned, func(after *scope) { after.conditions = slices.Delete(slices.Clone(after.conditions), i, i+1) }, "no condition %s", c.Name))
	}
	for i, rule := range s.match.ExcludeResourceRules {
		excluded := func(a attack.Attack) bool { return matchesRule(rule.RuleWithOperations, a) }
		of := formatResources(strings.Join(rule.Resources, ", "), rule.APIGroups)
		all = append(all, s.newMutant(excluded, func(after *scope) {
			after.match.ExcludeResourceRules = slices.Delete(slices.Clone(after.match.ExcludeResourceRules), i, i+1)
		}, "does not except %s", of))
	}
	for i, rule := range s.match.ResourceRules {
		if rule.Scope != nil && *rule.Scope != admissionv1.AllScopes {
			all = append(all, s.newMutant(concerned, func(after *scope) {
				*after.match.ResourceRules[i].Scope = admissionv1.AllScopes
			}, "looks at all scopes of %s", formatResources(strings.Join(rule.Resources, ", "), rule.APIGroups)))
		}
	}
	for _, which := range []struct {
		name string
		of   func(*scope) *metav1.LabelSelector
	}{
		{"namespaceSelector", func(s *scope) *metav1.LabelSelector { return s.match.NamespaceSelector }},
		{"objectSelector", func(s *scope) *metav1.LabelSelector { return s.match.ObjectSelector }},
	} {
		selector := cmp.Or(which.of(s), &metav1.LabelSelector{})
		for i, requirement := range selector.MatchExpressions {
			all = append(all, s.newMutant(concerned, func(after *scope) {
				to := which.of(after)
				to.MatchExpressions = slices.Delete(slices.Clone(to.MatchExpressions), i, i+1)
			}, "%s does not ask for %s %s %s", which.name, requirement.Key, requirement.Operator, strings.Join(requirement.Values, ",")))
		}
		for key := range selector.MatchLabels {
			all = append(all, s.newMutant(concerned, func(after *scope) { delete(which.of(after).MatchLabels, key) }, "%s does not ask for %s", which.name, key))
		}
	}
	return all
}

func formatResources(resources string, groups []string) string {
	if group := strings.Join(groups, ", "); group != "" && group != "*" {
		return resources + "." + group
	}
	return resources
}

func removeElement[T comparable](list []T, one T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return v == one })
}

// matchesRules reports whether an attack's request matches the policy's rules, regardless of its
// selectors and conditions.
func (s *scope) matchesRules(a attack.Attack) bool {
	return slices.ContainsFunc(s.match.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool { return matchesRule(r.RuleWithOperations, a) })
}

// operations maps attacks' verbs to admission operations.
var operations = map[attack.Verb]admissionv1.OperationType{
	attack.Create: admissionv1.Create, attack.Update: admissionv1.Update, attack.Patch: admissionv1.Update, attack.Delete: admissionv1.Delete,
}

func matchesRule(r admissionv1.RuleWithOperations, a attack.Attack) bool {
	if a.Request == nil {
		return false
	}
	kind, err := apiutil.GVKForObject(a.Request.Object, kinds())
	if err != nil {
		return false
	}
	resource := evaluator.FindResource(kind)
	path := resource.Resource
	if a.Request.Subresource != "" {
		path += "/" + a.Request.Subresource
	}
	return slices.Contains(r.Operations, operations[a.Request.Verb]) &&
		(slices.Contains(r.APIGroups, "*") || slices.Contains(r.APIGroups, resource.Group)) &&
		(slices.Contains(r.Resources, path) || slices.Contains(r.Resources, "*") && a.Request.Subresource == "")
}
