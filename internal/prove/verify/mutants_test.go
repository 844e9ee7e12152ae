package verify_test

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/admissionpolicy/policytest"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/policy"
)

// buildRuleMutants returns mutants of the policies that deny or warn: each rule is made to allow
// everything, and each binding is deleted.
//
// Conditions that narrow a policy's scope are not changed: without them a policy is only
// stricter for the platform. TestMutantsOfScopes covers them.
func (l *lab) buildRuleMutants(objects []client.Object) []mutant {
	var all []mutant
	for _, o := range objects {
		switch o := o.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			for _, rule := range listRules(o) {
				all = append(all, mutant{
					name: fmt.Sprintf("policy %s: rule %s asks nothing", o.Name, rule), object: o.Name,
					suspects: func(a attack.Attack) bool { return a.StoppedBy.Policy == o.Name && a.StoppedBy.Rule == rule },
					mutate:   buildEdit(o, func(live client.Object) { disablePolicyRule(live.(*admissionv1.ValidatingAdmissionPolicy), rule) }),
				})
			}
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			all = append(all, mutant{
				name: fmt.Sprintf("policy %s: binding %s deleted", o.Spec.PolicyName, o.Name), object: o.Spec.PolicyName,
				suspects: func(a attack.Attack) bool { return a.StoppedBy.Policy == o.Spec.PolicyName }, mutate: buildDeletion(o),
			})
		}
	}
	return all
}

// buildPolicyMutants returns mutants of the mutating policies: each part is made to change nothing,
// and each binding is deleted.
func (l *lab) buildPolicyMutants(objects []client.Object) []mutant {
	var all []mutant
	for _, o := range objects {
		switch o := o.(type) {
		case *admissionv1.MutatingAdmissionPolicy:
			for i, part := range splitPatches(getExpression(o)) {
				all = append(all, mutant{
					name: fmt.Sprintf("mutation %s: part %d changes nothing", o.Name, i+1), object: "mutations", // one at a time: the effect of one mutant must not detect another
					suspects: selectChangedBy(o.Name, o), mutate: disablePart(o, part),
				})
			}
		case *admissionv1.MutatingAdmissionPolicyBinding:
			all = append(all, mutant{
				name: fmt.Sprintf("mutation %s: binding %s deleted", o.Spec.PolicyName, o.Name), object: "mutations",
				suspects: selectChangedBy(o.Spec.PolicyName, o), mutate: buildDeletion(o),
			})
		}
	}
	return all
}

func getExpression(o *admissionv1.MutatingAdmissionPolicy) string {
	expression := o.Spec.Mutations[0].JSONPatch.Expression
	if patch, ok := strings.CutPrefix(expression, admissionpolicy.RulelessUpdate); ok {
		return strings.TrimSuffix(patch, ")")
	}
	return expression
}

// splitPatches returns the parts of a sum of lists of patches, recursively.
func splitPatches(expression string) []string {
	var parts []string
	depth, start, quoted := 0, 0, false
	for i, c := range expression {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("([{", c):
			depth++
		case strings.ContainsRune(")]}", c):
			depth--
		case c == '+' && depth == 0:
			parts, start = append(parts, strings.TrimSpace(expression[start:i])), i+1
		}
	}
	parts = append(parts, strings.TrimSpace(expression[start:]))
	if len(parts) > 1 {
		var all []string
		for _, p := range parts {
			all = append(all, splitPatches(p)...)
		}
		return all
	}
	if inner, ok := strings.CutPrefix(parts[0], "("); ok && strings.HasSuffix(inner, ")") {
		if within := splitPatches(inner[:len(inner)-1]); len(within) > 1 {
			return within
		}
	}
	return parts
}

// disablePart makes a part of a policy change nothing. The filter gives the empty list the type of
// a list of patches.
func disablePart(o *admissionv1.MutatingAdmissionPolicy, part string) mutation {
	return buildEdit(o, func(live client.Object) {
		patch := live.(*admissionv1.MutatingAdmissionPolicy).Spec.Mutations[0].JSONPatch
		patch.Expression = strings.Replace(patch.Expression, part, `[JSONPatch{op: "test", path: "/"}].filter(p, false)`, 1)
	})
}

func listRules(p *admissionv1.ValidatingAdmissionPolicy) []string {
	var all []string
	for _, v := range p.Spec.Validations {
		for _, asked := range admissionpolicy.ParseRules(v) {
			all = append(all, asked.Rule)
		}
	}
	return all
}

// disablePolicyRule makes a rule of a policy allow everything.
func disablePolicyRule(p *admissionv1.ValidatingAdmissionPolicy, rule string) {
	for i := range p.Spec.Validations {
		v := &p.Spec.Validations[i]
		if slices.ContainsFunc(admissionpolicy.ParseRules(*v), func(a admissionpolicy.ParsedRule) bool { return a.Rule == rule }) {
			policytest.WaiveRule(v, rule)
		}
	}
}

// selectChangedBy selects the attacks that a mutating policy makes harmless, and the mirrors of its
// walls.
func selectChangedBy(policy string, o client.Object) func(attack.Attack) bool {
	walls := wall.FindNames(o)
	return func(a attack.Attack) bool {
		return a.StoppedBy.Name == attack.ByMutation(policy).Name ||
			a.Kind == attack.Mirror && slices.Contains(walls, a.Wall) && a.Request != nil
	}
}

// buildTenantMutants returns mutants of the objects in the first namespace of each tenant. An
// object of both tenants is mutated for the stricter one: the other tenant has only the attacks
// that the first cannot try.
func (l *lab) buildTenantMutants(s *proving) []mutant {
	first := l.buildMutantsOf(s, s.by, s.on)
	return append(first, slices.DeleteFunc(l.buildMutantsOf(s, s.on, s.by), func(m mutant) bool {
		return slices.ContainsFunc(first, func(f mutant) bool { return f.what == m.what })
	})...)
}

func (l *lab) buildMutantsOf(s *proving, t, other *estate.Tenant) []mutant {
	var all []mutant
	for _, o := range s.listTenantObjects(t) {
		if cmp.Or(o.GetNamespace(), o.GetName()) != t.Namespaces[0] {
			continue
		}
		switch o := o.(type) {
		case *corev1.Namespace:
			all = append(all, l.buildLabelMutants(s, o)...)
		case *corev1.ResourceQuota:
			all = append(all, l.buildQuotaMutants(s, o)...)
		case *corev1.LimitRange:
			all = append(all, l.buildLimitMutants(s, o)...)
		case *v1alpha1.TenantRules:
			all = append(all, l.buildTenantRulesMutants(s, o, other)...)
		}
	}
	for i := range all {
		about := all[i].suspects
		all[i].object = t.Name
		all[i].suspects = func(a attack.Attack) bool { return a.Attacker == t.Name && about(a) }
	}
	return all
}

func (s *proving) newMutant(o client.Object, what string) mutant {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	return mutant{name: fmt.Sprintf("%s: %s", kind, what), what: kind + " " + what, object: s.name, scenes: []*proving{s}}
}

const podSecurity = "pod-security.kubernetes.io/"

func (l *lab) buildLabelMutants(s *proving, o *corev1.Namespace) []mutant {
	type edit struct{ key, value string }
	edits := []edit{{v1alpha1.TenantLabel, ""}}
	for _, mode := range []string{"enforce", "warn"} {
		level := o.Labels[podSecurity+mode]
		for _, weaker := range []string{"", "privileged", "baseline"} {
			// Without the label for warnings, Kubernetes warns of violations of the enforced
			// level.
			if level != weaker && (mode == "enforce" || weaker != "") {
				edits = append(edits, edit{podSecurity + mode, weaker})
			}
		}
	}
	var all []mutant
	for _, e := range edits {
		m := s.newMutant(o, fmt.Sprintf("label %s=%s instead of %s", e.key, e.value, o.Labels[e.key]))
		if e.key == v1alpha1.TenantLabel {
			m = s.newMutant(o, "without label "+e.key)
		}
		m.suspects = func(a attack.Attack) bool {
			if e.key == v1alpha1.TenantLabel {
				return a.StoppedBy.Policy != "" && a.StoppedBy.IsRefusal != nil
			}
			return strings.Contains(strings.ToLower(a.StoppedBy.Name), "pod security")
		}
		m.mutate = buildEdit(o, func(live client.Object) {
			labels := live.GetLabels()
			if labels[e.key] = e.value; e.value == "" {
				delete(labels, e.key)
			}
		})
		all = append(all, m)
	}
	return all
}

func (l *lab) buildQuotaMutants(s *proving, o *corev1.ResourceQuota) []mutant {
	byQuota := func(a attack.Attack) bool { return a.StoppedBy.Name == attack.ByQuota.Name }
	whole := s.newMutant(o, "deleted")
	whole.suspects, whole.mutate = byQuota, buildDeletion(o)
	all := []mutant{whole}
	for _, name := range slices.Sorted(maps.Keys(o.Spec.Hard)) {
		m := s.newMutant(o, "does not limit "+string(name))
		m.suspects = byQuota
		m.mutate = buildEdit(o, func(live client.Object) { delete(live.(*corev1.ResourceQuota).Spec.Hard, name) })
		all = append(all, m)
	}
	return all
}

func (l *lab) buildLimitMutants(s *proving, o *corev1.LimitRange) []mutant {
	aboutLimits := func(a attack.Attack) bool {
		return strings.Contains(a.StoppedBy.Name, "LimitRange") || a.Kind == attack.Mirror && a.Wall == "policy" && a.Request != nil
	}
	whole := s.newMutant(o, "deleted")
	whole.suspects, whole.mutate = aboutLimits, buildDeletion(o)
	all := []mutant{whole}
	// Limits and requests of a resource are removed together: each makes the other redundant.
	names := map[corev1.ResourceName]bool{}
	for _, item := range o.Spec.Limits {
		for _, list := range []corev1.ResourceList{item.Default, item.DefaultRequest, item.Max, item.Min} {
			for name := range list {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		m := s.newMutant(o, "omits "+string(name))
		m.suspects = aboutLimits
		m.mutate = buildEdit(o, func(live client.Object) {
			for _, item := range live.(*corev1.LimitRange).Spec.Limits {
				for _, list := range []corev1.ResourceList{item.Default, item.DefaultRequest, item.Max, item.Min} {
					delete(list, name)
				}
			}
		})
		all = append(all, m)
	}
	return all
}

// wider maps lists of TenantRules to values that they exclude, if these are neither the other
// tenant's values nor the star.
var wider = map[string][]any{
	"allowCIDRs":        {"0.0.0.0/0", "::/0"},
	"serviceTypes":      {"NodePort", "LoadBalancer", "ExternalName"},
	"imagePullPolicies": {"IfNotPresent", "Never"},
	"trial":             {"images", "runtimeClass"},
	"issuerTypes":       {"acme", "vault", "venafi"},
	"subjects":          {"Group:*", "User:*"},
}

// buildTenantRulesMutants returns mutants that widen a field of the TenantRules in the namespace's
// annotations, where policies read it. A field that is as wide as possible in one scene is
// narrower in another.
func (l *lab) buildTenantRulesMutants(s *proving, o *v1alpha1.TenantRules, another *estate.Tenant) []mutant {
	own, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		l.t.Fatal(err)
	}
	others, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.findTenantRules(another))
	if err != nil {
		l.t.Fatal(err)
	}
	spec, other := own["spec"].(map[string]any), others["spec"].(map[string]any)
	namespace := s.findNamespace(o)
	var all []mutant
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		if field == "allowCIDRs" && spec["egress"] == string(v1alpha1.EgressOpen) {
			continue // they apply to Restricted egress only
		}
		if !policy.HasEffect(field, spec) {
			continue
		}
		trial, _ := spec["trial"].([]any)
		if _, isForced := spec["runtimeClassForce"]; field == "runtimeClasses" && isForced && !slices.Contains(trial, any("runtimeClass")) {
			continue // pods with another class than the forced one are refused anyway
		}
		widened := widenValue(field, spec[field], other[field], another.Namespaces[0])
		if widened == nil {
			continue
		}
		m := s.newMutant(o, field+" widened")
		readers := s.listReaders(field)
		m.suspects = func(a attack.Attack) bool { return a.Request != nil && slices.Contains(readers, a.StoppedBy.Policy) }
		content := maps.Clone(spec)
		content[field] = widened
		var wide v1alpha1.TenantRulesSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &wide); err != nil {
			l.t.Fatal(err)
		}
		m.mutate = buildEdit(namespace, func(live client.Object) {
			admissionpolicy.AnnotateNamespace(live, wide)
			if widened == "" {
				annotations := live.GetAnnotations()
				delete(annotations, v1alpha1.RulesAnnotationPrefix+field)
				live.SetAnnotations(annotations)
			}
		})
		all = append(all, m)
	}
	return all
}

// listReaders returns the policies that read a field of TenantRules, so that it can change their
// decision.
func (s *proving) listReaders(field string) []string {
	if s.texts == nil {
		s.texts = map[string]string{}
		for _, o := range s.listPlatformObjects() {
			switch p := o.(type) {
			case *admissionv1.ValidatingAdmissionPolicy:
				s.texts[p.Name] += p.Spec.String()
			case *admissionv1.MutatingAdmissionPolicy:
				s.texts[p.Name] += p.Spec.String()
			}
		}
	}
	read := regexp.MustCompile(regexp.QuoteMeta(v1alpha1.RulesAnnotationPrefix+field) + `\b`)
	return slices.DeleteFunc(slices.Collect(maps.Keys(s.texts)), func(name string) bool { return !read.MatchString(s.texts[name]) })
}

// isOptional reports whether a field of TenantRules is text without which nothing is required: an enforced setting.
func isOptional(field string) bool {
	_, written := admissionpolicy.BuildAnnotations(v1alpha1.TenantRulesSpec{})[v1alpha1.RulesAnnotationPrefix+field]
	return !written
}

func widenValue(field string, value, others any, other string) any {
	switch value := value.(type) {
	case bool:
		if value {
			return nil
		}
		return true
	case int64:
		return value * 1000
	case string:
		switch {
		case field == "tenant":
			return others
		case isOptional(field):
			if value == "Any" {
				return nil
			}
			return ""
		case field == "maxVolumeSize":
			return "1Pi"
		case field == "unknownAnnotations":
			if value == string(v1alpha1.UnknownAllow) {
				return nil
			}
			return string(v1alpha1.UnknownAllow)
		case value == string(v1alpha1.EgressOpen):
			return nil
		default:
			return string(v1alpha1.EgressOpen)
		}
	case []any:
		more, ok := wider[field]
		switch {
		case ok:
		case field == "platformNamespaces":
			more = []any{other}
		case field == "pools", field == "namespaces", field == "domains", field == "networks":
			more = others.([]any)
		default:
			more = []any{"*"}
		}
		more = slices.DeleteFunc(slices.Clone(more), func(v any) bool { return slices.Contains(value, v) })
		if len(more) == 0 {
			return nil
		}
		return append(slices.Clone(value), more...)
	default:
		return nil
	}
}

// buildDeepMutants returns mutants of rules that no request reaches because of a mutating policy:
// such a rule must refuse when that policy is removed, and the removal of both must be
// detected. The policies have the same name.
func (l *lab) buildDeepMutants(objects []client.Object) []mutant {
	var all []mutant
	for _, o := range objects {
		changing, ok := o.(*admissionv1.MutatingAdmissionPolicy)
		if !ok {
			continue
		}
		changed := func(a attack.Attack) bool { return a.StoppedBy.Name == attack.ByMutation(changing.Name).Name }
		if len(l.selectAttacks(l.scenes[0], changed)) == 0 {
			continue
		}
		var nothing []mutation
		for _, part := range splitPatches(getExpression(changing)) {
			nothing = append(nothing, disablePart(changing, part))
		}
		for _, o := range objects {
			checking, ok := o.(*admissionv1.ValidatingAdmissionPolicy)
			if !ok || checking.Name != changing.Name {
				continue
			}
			for _, rule := range listRules(checking) {
				stops := func(a attack.Attack) bool { return a.StoppedBy.Policy == checking.Name && a.StoppedBy.Rule == rule }
				if slices.ContainsFunc(l.scenes, func(s *proving) bool { return len(l.selectAttacks(s, stops)) > 0 }) {
					continue
				}
				m := mutant{name: fmt.Sprintf("policy %s: rule %s asks nothing", checking.Name, rule), object: "deep", buried: &hiddenRule{
					before: nothing, attacks: changed, refusal: "'" + checking.Name + "' denied request: " + admissionpolicy.RefusalPrefix(rule),
					rule: buildEdit(checking, func(live client.Object) { disablePolicyRule(live.(*admissionv1.ValidatingAdmissionPolicy), rule) }),
				}}
				m.scenes = l.scenes[:1]
				all = append(all, m)
			}
		}
	}
	return all
}

// hasNamespaceEgress reports whether a policy limits egress to one namespace of another tenant.
func hasNamespaceEgress(np *networkingv1.NetworkPolicy) bool {
	return slices.ContainsFunc(np.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
		return rule.To[0].NamespaceSelector.MatchLabels[corev1.LabelMetadataName] != ""
	})
}

// buildNetworkMutants returns mutants of the tenants' NetworkPolicies, by name. Another policy may
// make one redundant in some scenes, so it is changed in all scenes and in all of the tenant's
// namespaces at once.
func (l *lab) buildNetworkMutants() []mutant {
	type change struct {
		what string
		do   func(*networkingv1.NetworkPolicy) bool
	}
	// widened change a policy for connections to which two tenants agreed.
	widened := map[string]func(*networkingv1.NetworkPolicy) bool{
		"selects every pod": func(np *networkingv1.NetworkPolicy) bool { np.Spec.PodSelector = metav1.LabelSelector{}; return true },
		"allows every port": func(np *networkingv1.NetworkPolicy) bool {
			for i := range np.Spec.Ingress {
				np.Spec.Ingress[i].Ports = nil
			}
			for i := range np.Spec.Egress {
				np.Spec.Egress[i].Ports = nil
			}
			return true
		},
		"allows every namespace of the other tenant": func(np *networkingv1.NetworkPolicy) bool {
			for i := range np.Spec.Egress {
				delete(np.Spec.Egress[i].To[0].NamespaceSelector.MatchLabels, corev1.LabelMetadataName)
			}
			return true
		},
		"allows every pod of the other tenant": func(np *networkingv1.NetworkPolicy) bool {
			for i := range np.Spec.Ingress {
				np.Spec.Ingress[i].From[0].PodSelector = nil
			}
			for i := range np.Spec.Egress {
				np.Spec.Egress[i].To[0].PodSelector = nil
			}
			return true
		},
	}
	changes := map[string]map[string]change{}
	var names []string
	for _, s := range l.scenes {
		for _, o := range s.scratch.Objects() {
			np, ok := o.(*networkingv1.NetworkPolicy)
			if !ok {
				continue
			}
			if changes[np.Name] == nil {
				changes[np.Name] = map[string]change{"deleted": {what: "deleted"}}
				names = append(names, np.Name)
			}
			for _, direction := range np.Spec.PolicyTypes {
				what := "lets everything through, " + string(direction)
				changes[np.Name][what] = change{what, func(np *networkingv1.NetworkPolicy) bool {
					if direction == networkingv1.PolicyTypeIngress {
						np.Spec.Ingress = append(np.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{})
					} else {
						np.Spec.Egress = append(np.Spec.Egress, networkingv1.NetworkPolicyEgressRule{})
					}
					return true
				}}
			}
			if np.Labels[v1alpha1.ConsentLabel] != "" {
				for what, widen := range widened {
					if what == "allows every namespace of the other tenant" && !hasNamespaceEgress(np) {
						continue
					}
					changes[np.Name][what] = change{what, widen}
				}
			}
			for _, rule := range np.Spec.Egress {
				for i, peer := range rule.To {
					if peer.IPBlock == nil {
						continue
					}
					for _, except := range peer.IPBlock.Except {
						what := "does not except " + except
						changes[np.Name][what] = change{what, func(np *networkingv1.NetworkPolicy) bool {
							for _, rule := range np.Spec.Egress {
								if i < len(rule.To) && rule.To[i].IPBlock != nil {
									rule.To[i].IPBlock.Except = slices.DeleteFunc(rule.To[i].IPBlock.Except, func(e string) bool { return e == except })
								}
							}
							return true
						}}
					}
				}
			}
		}
	}
	var all []mutant
	for _, name := range names {
		for _, what := range slices.Sorted(maps.Keys(changes[name])) {
			c := changes[name][what]
			var each []mutation
			for _, s := range l.scenes {
				for _, o := range s.scratch.Objects() {
					np, ok := o.(*networkingv1.NetworkPolicy)
					switch {
					case !ok || np.Name != name:
					case c.do == nil:
						each = append(each, buildDeletion(np))
					default:
						each = append(each, buildEdit(np, func(live client.Object) { c.do(live.(*networkingv1.NetworkPolicy)) }))
					}
				}
			}
			all = append(all, mutant{
				name: "NetworkPolicy " + name + ": " + what, object: "network",
				suspects: func(a attack.Attack) bool { return a.Flow != nil || a.Pairs != nil },
				mutate:   slices.Concat(each...),
			})
		}
	}
	return all
}

// buildBindingMutants returns mutants that revoke members' access, or give it to others.
func (l *lab) buildBindingMutants(s *proving) []mutant {
	var all []mutant
	own := map[string]*rbacv1.RoleBinding{}
	for _, o := range s.listTenantObjects(s.by) {
		if b, ok := o.(*rbacv1.RoleBinding); ok && b.Namespace == s.by.Namespaces[0] {
			own[b.Name] = b
			m := s.newMutant(b, b.Name+" deleted")
			m.suspects = func(a attack.Attack) bool { return a.Kind == attack.Mirror && a.Request != nil && a.Wall == "identity" }
			m.mutate = buildDeletion(b)
			all = append(all, m)
		}
	}
	for _, o := range s.listTenantObjects(s.on) {
		if b, ok := o.(*rbacv1.RoleBinding); ok && b.Namespace == s.on.Namespaces[0] {
			m := s.newMutant(b, b.Name+" of the other tenant names this one's people too")
			m.suspects = func(a attack.Attack) bool { return a.Kind == attack.Breach && a.Wall == "identity" }
			m.mutate = buildEdit(b, func(live client.Object) {
				binding := live.(*rbacv1.RoleBinding)
				binding.Subjects = append(binding.Subjects, own[b.Name].Subjects...)
			})
			all = append(all, m)
		}
	}
	return all
}
