package verify_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

// TestTemplates tests croft's ConstraintTemplates with Gatekeeper's own gator. The cases of a
// suite are the attacks that a constraint must refuse and the mirrors that it must allow. Then
// each rule is disabled, and the suite must fail. The unchanged templates must refuse nothing
// if gator passes them no namespace, as Gatekeeper before 3.22 does.
func TestTemplates(t *testing.T) {
	sandbox.Thorough(t) // TestWallsHold tests the same rules on the API server
	gator, err := sandbox.FindTool("gator")
	if err != nil {
		t.Fatal(err)
	}
	platform := newPlatform("ingress")
	platform.Spec.Placement = v1alpha1.PlacementGatekeeper
	scratch, err := verify.NewScratch(platform)
	if err != nil {
		t.Fatal(err)
	}
	parts, by, on := scratch.GetParts()
	attacks := selectFew(scratch.Attacks())
	for _, c := range wall.ListConstrainedPolicies(parts) {
		t.Run(c.Kind, func(t *testing.T) {
			tenants := []*estate.Tenant{by, on}
			s, blind := suite{dir: t.TempDir(), constrained: c}, suite{dir: t.TempDir(), constrained: c, blind: true}
			for _, s := range []*suite{&s, &blind} {
				for _, tenant := range tenants {
					s.writeTemplate(t, parts, tenant, c.Template())
					s.addCases(t, parts, tenant, attacks)
				}
				if out, err := s.runGator(gator); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			for i, rule := range c.Policy.ListRules() {
				// Each suite has only the rule's own cases, since gator compiles the template
				// for each.
				s := suite{dir: t.TempDir(), constrained: c}
				own := slices.DeleteFunc(slices.Clone(attacks), func(a attack.Attack) bool { return a.StoppedBy.Rule != rule.Name })
				for _, tenant := range tenants {
					template := c.Template().(*unstructured.Unstructured)
					disableTemplateRule(template, i)
					s.writeTemplate(t, parts, tenant, template)
					s.addCases(t, parts, tenant, own)
				}
				if out, err := s.runGator(gator); err == nil {
					t.Errorf("rule %s asks nothing, and no case fails:\n%s", rule.Name, out)
				}
			}
		})
	}
}

// selectFew returns at most six attacks of each rule, verb and tenant, two in `make test`, and as
// many mirrors of each kind: gator compiles a template for each case, and the catalogue of
// add-ons alone has a hundred cases, which TestAnnotations evaluates separately.
func selectFew(attacks []attack.Attack) []attack.Attack {
	most := 2
	if sandbox.All() {
		most = 6
	}
	count := map[string]int{}
	return slices.DeleteFunc(attacks, func(a attack.Attack) bool {
		if a.Request == nil {
			return true
		}
		of := fmt.Sprintf("%s %T %s %s %s", a.Attacker, a.Request.Object, a.Request.Verb, a.StoppedBy.Constraint, a.StoppedBy.Rule)
		count[of]++
		return count[of] > most
	})
}

// suite is a directory that gator reads, with the constraint and, for each tenant, the template
// and its cases.
type suite struct {
	dir         string
	constrained admissionpolicy.Constrained
	// blind keeps the template unchanged, without the namespace's annotations.
	blind bool
	tests []any
}

func (s *suite) runGator(gator string) (string, error) {
	out, err := exec.Command(gator, "verify", s.dir).CombinedOutput()
	return string(out), err
}

func (s *suite) writeFile(t *testing.T, file string, content any) {
	t.Helper()
	text, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, file), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeTemplate writes the template for objects of one tenant. gator passes it no namespace with
// annotations or labels, so their values are inserted.
func (s *suite) writeTemplate(t *testing.T, p *estate.Platform, tenant *estate.Tenant, template client.Object) {
	t.Helper()
	var namespace corev1.Namespace
	for _, o := range wall.TenantObjects(p, tenant) {
		if o, ok := o.(*corev1.Namespace); ok && o.Name == tenant.Namespaces[0] {
			namespace = *o
		}
	}
	object := template.DeepCopyObject().(*unstructured.Unstructured).Object
	if !s.blind {
		replaceText(object, "namespaceObject == null || ", "") // a disabled rule does not have it
		if !replaceText(object, "has(namespaceObject.metadata.annotations) ? namespaceObject.metadata.annotations : {}", formatMap(namespace.Annotations)) {
			t.Fatal("the template does not read the namespace's annotations")
		}
		replaceText(object, "namespaceObject.metadata.labels", formatMap(namespace.Labels)) // few templates read them
	}
	s.writeFile(t, "template-"+tenant.Name+".yaml", object)
}

// formatMap returns a map as a CEL expression.
func formatMap(entries map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		all = append(all, fmt.Sprintf("%q: %q", key, entries[key]))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// replaceText replaces a text by another in all values, and reports whether there was any.
func replaceText(in any, before, after string) bool {
	found := false
	switch in := in.(type) {
	case map[string]any:
		for key, value := range in {
			if text, ok := value.(string); ok && strings.Contains(text, before) {
				in[key], found = strings.ReplaceAll(text, before, after), true
			}
			found = replaceText(value, before, after) || found
		}
	case []any:
		for _, value := range in {
			found = replaceText(value, before, after) || found
		}
	}
	return found
}

// addCases adds the cases of one tenant.
func (s *suite) addCases(t *testing.T, p *estate.Platform, tenant *estate.Tenant, attacks []attack.Attack) {
	t.Helper()
	constraint := s.constrained.Constraint().(*unstructured.Unstructured).DeepCopy()
	// gator does not support namespaces with labels.
	unstructured.RemoveNestedField(constraint.Object, "spec", "match", "namespaceSelector")
	s.writeFile(t, "constraint.yaml", constraint.Object)
	var cases []any
	for _, a := range attacks {
		review := s.buildReview(t, p, tenant, a)
		if review == nil {
			continue
		}
		assertion := map[string]any{"violations": "no"}
		if a.Kind == attack.Breach && !s.blind {
			assertion = map[string]any{"violations": "yes", "message": `\[` + a.StoppedBy.Rule + `\]`}
		}
		s.writeFile(t, "case-"+a.Name+".yaml", review)
		cases = append(cases, map[string]any{"name": a.Name, "object": "case-" + a.Name + ".yaml", "assertions": []any{assertion}})
	}
	if len(cases) == 0 {
		return
	}
	s.tests = append(s.tests, map[string]any{"name": tenant.Name, "template": "template-" + tenant.Name + ".yaml", "constraint": "constraint.yaml", "cases": cases})
	s.writeFile(t, "suite.yaml", map[string]any{"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": s.tests})
}

// buildReview returns the API server's review of an attack, or nil if the attack is not a tenant's
// request for one of the constraint's kinds.
func (s *suite) buildReview(t *testing.T, p *estate.Platform, tenant *estate.Tenant, a attack.Attack) map[string]any {
	t.Helper()
	r := a.Request
	// gator supports neither namespaces outside of tenants nor users who are exempt from the
	// rules.
	if a.Attacker != tenant.Name || a.OutsideTenants || r == nil || r.Subresource != "" || a.Kind == attack.Breach && a.StoppedBy.Constraint != s.constrained.Kind {
		return nil
	}
	gvk, err := apiutil.GVKForObject(r.Object, scheme.New())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(s.constrained.MatchedKinds[gvk.Group], gvk.Kind) {
		return nil
	}
	request := map[string]any{
		"uid": a.Name, "namespace": tenant.Namespaces[0], "name": r.Object.GetName(),
		"kind":     map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
		"resource": map[string]any{"group": gvk.Group, "version": gvk.Version, "resource": strings.ToLower(gvk.Kind) + "s"},
	}
	object := applyDefaults(p, tenant, r.Object.DeepCopyObject().(client.Object))
	object.GetObjectKind().SetGroupVersionKind(gvk)
	switch r.Verb {
	case attack.Create:
		request["operation"], request["object"] = "CREATE", object
	case attack.Update:
		request["oldObject"] = object.DeepCopyObject()
		if err := r.Change(object); err != nil {
			t.Fatal(err)
		}
		request["operation"], request["object"] = "UPDATE", object
	default:
		return nil
	}
	return map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
}

// applyDefaults applies the defaults and mutations that precede a constraint, as far as the
// templates read them.
func applyDefaults(p *estate.Platform, tenant *estate.Tenant, o client.Object) client.Object {
	switch o := o.(type) {
	case *corev1.Service:
		if o.Spec.Type == "" {
			o.Spec.Type = corev1.ServiceTypeClusterIP
		}
	case *corev1.Pod:
		if engine, isProbe := o.Labels[v1alpha1.ProbeLabel]; isProbe && engine != string(p.Placement) {
			return o // the mutators do not change it
		}
		if o.Spec.NodeSelector[p.NodePoolKey] == "" {
			if o.Spec.NodeSelector == nil {
				o.Spec.NodeSelector = map[string]string{}
			}
			o.Spec.NodeSelector[p.NodePoolKey] = tenant.Pools[0]
		}
		o.Spec.Tolerations = append(o.Spec.Tolerations, corev1.Toleration{Key: p.NodePoolKey, Operator: corev1.TolerationOpEqual, Value: tenant.Pools[0]})
	}
	return o
}
