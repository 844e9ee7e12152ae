package verify_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
	walls "croft.dev/croft/internal/walls/wall/policy"
)

// TestMutantsOfGatekeeper is like TestMutants, for Gatekeeper's objects on a cluster without
// MutatingAdmissionPolicy. The API server's own policies have the same rules and are evaluated
// first. So they are removed, and Gatekeeper must then refuse every attack. An attack must
// detect the removal of each mutator, each constraint, each rule of a template and each rule on
// a namespace. The evaluator must agree with the cluster, except for Gatekeeper's mutations.
func TestMutantsOfGatekeeper(t *testing.T) {
	sandbox.Thorough(t)
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	started := time.Now()
	cluster := sandbox.Start(t, sandbox.Options{
		Components: sandbox.WithControllers, With: []string{sandbox.Gatekeeper}, Without: []string{"MutatingAdmissionPolicy"},
	})
	installKinds(t, cluster)
	platform := newPlatform("ingress")
	platform.Spec.Placement = v1alpha1.PlacementGatekeeper
	l := &lab{t: t, compares: true}
	p := buildProving(t, cluster.Config, "gatekeeper", platform)
	l.addScene(p)
	if t.Failed() {
		return
	}
	fmt.Printf("all attacks are stopped: %.0f s after the start\n", time.Since(started).Seconds())
	l.removeDuplicateRules(p)
	if t.Failed() {
		return
	}
	fmt.Printf("rules that Gatekeeper has too are removed from the policies: %.0f s after the start\n", time.Since(started).Seconds())
	findings := l.runMutants(l.buildGatekeeperMutants(p))
	// These run afterwards: a namespace without its labels and annotations lacks the rules by
	// which every other mutant is detected.
	findings = append(findings, l.runMutants(l.buildMarkMutants(p))...)
	reportFindings(t, findings, time.Since(started))
}

// selectConstrainedBy selects the attacks that a constraint of the kind also refuses.
func selectConstrainedBy(kind string) func(attack.Attack) bool {
	return func(a attack.Attack) bool { return a.StoppedBy.Constraint == kind }
}

func isConstrained(a attack.Attack) bool { return a.StoppedBy.Constraint != "" }

// removeDuplicateRules removes the rules that Gatekeeper also has from the API server's policies,
// and waits until Gatekeeper refuses the attacks on them.
func (l *lab) removeDuplicateRules(p *proving) {
	l.t.Helper()
	twins := map[string][]string{}
	for _, a := range l.selectAttacks(p, isConstrained) {
		twins[a.StoppedBy.Policy] = append(twins[a.StoppedBy.Policy], a.StoppedBy.Rule)
	}
	// This rule alone also refuses a pod that claims to belong to a Node.
	twins[admissionpolicy.PodsPolicy] = append(twins[admissionpolicy.PodsPolicy], walls.OwnersRule)
	for _, o := range p.listPlatformObjects() {
		policy, ok := o.(*admissionv1.ValidatingAdmissionPolicy)
		if !ok {
			continue
		}
		_, err := l.applyMutation(l.t.Context(), buildEdit(policy, func(o client.Object) {
			live := o.(*admissionv1.ValidatingAdmissionPolicy)
			for _, rule := range listRules(live) {
				if slices.Contains(twins[policy.Name], rule) {
					disablePolicyRule(live, rule)
				}
			}
		}))
		if err != nil {
			l.t.Fatal(err)
		}
	}
	left := l.selectAttacks(p, isConstrained)
	var last []verify.Result
	err := wait.PollUntilContextTimeout(l.t.Context(), 500*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = l.runners[p].Run(ctx, left, nil)
		wrong := map[string]bool{}
		for _, r := range last {
			wrong[r.Name] = r.Result != verify.Held || !strings.Contains(r.Message, "validation.gatekeeper.sh")
		}
		left = slices.DeleteFunc(left, func(a attack.Attack) bool { return !wrong[a.Name] })
		return len(left) == 0, err
	})
	if err != nil {
		for _, r := range last {
			l.t.Errorf("%s: Gatekeeper should stop it, but it is %s: %s", r.Name, r.Result, r.Message)
		}
	}
}

// buildGatekeeperMutants returns a mutant of every object that Gatekeeper reads. A tenant's object
// is removed from both tenants at once, since not every attack is tried by both.
func (l *lab) buildGatekeeperMutants(p *proving) []mutant {
	var all []mutant
	each := map[string][]mutation{}
	for _, o := range slices.Concat(p.listPlatformObjects(), p.scratch.Objects()) {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		gvk := u.GroupVersionKind()
		if gvk.Kind == "ConstraintTemplate" {
			all = append(all, l.buildTemplateMutants(p, u)...)
			continue
		}
		m := mutant{name: "mutators " + trimTenant(u) + " deleted", object: "mutators", suspects: isChangedByGatekeeper}
		if gvk.Group == admissionpolicy.ConstraintsGroup {
			m = mutant{name: "constraints " + gvk.Kind + " deleted", object: strings.ToLower(gvk.Kind), suspects: selectConstrainedBy(gvk.Kind)}
		}
		if each[m.name] == nil {
			all = append(all, m)
		}
		each[m.name] = append(each[m.name], buildDeletion(u))
	}
	for i := range all {
		if each[all[i].name] != nil {
			all[i].mutate = slices.Concat(each[all[i].name]...)
		}
	}
	return all
}

// buildMarkMutants returns mutants that remove a label or annotation that Gatekeeper reads from the
// namespaces. Without the label no constraint applies; without an annotation with an allowing
// rule, legitimate requests are refused.
func (l *lab) buildMarkMutants(p *proving) []mutant {
	var templates strings.Builder
	for _, o := range p.listPlatformObjects() {
		if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == "ConstraintTemplate" {
			fmt.Fprintf(&templates, "%v\n", u.Object)
		}
	}
	read := func(key string) bool { return strings.Contains(templates.String(), strconv.Quote(key)) }
	all := []mutant{{name: "namespaces without label " + v1alpha1.PlacementLabel, suspects: isConstrained}}
	each := map[string][]mutation{}
	for _, o := range p.scratch.Objects() {
		namespace, ok := o.(*corev1.Namespace)
		if !ok {
			continue
		}
		unmarked := all[0].name
		each[unmarked] = append(each[unmarked], buildEdit(namespace, func(live client.Object) { delete(live.GetLabels(), v1alpha1.PlacementLabel) }))
		for _, key := range slices.Sorted(maps.Keys(namespace.Annotations)) {
			// The annotation with the tenant is only used in messages. Other annotations are
			// read by the API server's policies only.
			if namespace.Annotations[key] == "" || key == v1alpha1.RulesAnnotationPrefix+"tenant" || !read(key) {
				continue
			}
			if key == v1alpha1.RulesAnnotationPrefix+"runtimeClasses" && namespace.Annotations[v1alpha1.RulesAnnotationPrefix+"runtimeClassForce"] != "" {
				continue // no mirror uses another class than the forced one
			}
			name := "namespaces without annotation " + key
			if each[name] == nil {
				all = append(all, mutant{name: name, suspects: isOwnMirror})
			}
			each[name] = append(each[name], buildEdit(namespace, func(live client.Object) { delete(live.GetAnnotations(), key) }))
		}
	}
	for i := range all {
		all[i].object, all[i].mutate = "namespaces", slices.Concat(each[all[i].name]...)
	}
	return all
}

// isOwnMirror selects the mirrors: requests that a tenant must be able to make.
func isOwnMirror(a attack.Attack) bool {
	return a.Kind == attack.Mirror && a.Request != nil && (a.Wall == "nodes" || a.Wall == "policy")
}

// isChangedByGatekeeper selects the attacks and mirrors to which the mutators apply.
func isChangedByGatekeeper(a attack.Attack) bool {
	return a.Request != nil && (a.Wall == "nodes" || a.Wall == "policy") && !isConstrained(a)
}

// trimTenant returns the name of a tenant's mutator without the tenant.
func trimTenant(o metav1.Object) string {
	return strings.TrimSuffix(o.GetName(), "."+o.GetLabels()[v1alpha1.TenantLabel])
}

// buildTemplateMutants returns mutants in which a rule of a template allows everything.
func (l *lab) buildTemplateMutants(p *proving, template *unstructured.Unstructured) []mutant {
	var all []mutant
	for _, c := range wall.ListConstrainedPolicies(p.platform) {
		if strings.ToLower(c.Kind) != template.GetName() {
			continue
		}
		for i, rule := range c.Policy.ListRules() {
			all = append(all, mutant{
				name: fmt.Sprintf("template %s: rule %s asks nothing", c.Kind, rule.Name), object: template.GetName(),
				suspects: func(a attack.Attack) bool { return a.StoppedBy.Constraint == c.Kind && a.StoppedBy.Rule == rule.Name },
				mutate:   buildEdit(template, func(live client.Object) { disableTemplateRule(live.(*unstructured.Unstructured), i) }),
			})
		}
	}
	return all
}

// disableTemplateRule makes a rule of a template allow everything.
func disableTemplateRule(template *unstructured.Unstructured, rule int) {
	targets, _, _ := unstructured.NestedSlice(template.Object, "spec", "targets")
	code := targets[0].(map[string]any)["code"].([]any)[0].(map[string]any)
	validation := code["source"].(map[string]any)["validations"].([]any)[rule].(map[string]any)
	validation["expression"] = "true"
	delete(validation, "messageExpression")
	if err := unstructured.SetNestedSlice(template.Object, targets, "spec", "targets"); err != nil {
		panic(err)
	}
}
