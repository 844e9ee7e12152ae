package verify_test

import (
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
	"croft.dev/croft/internal/admission"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/sandbox"
	"croft.dev/croft/internal/scheme"
	"croft.dev/croft/internal/verify"
	"croft.dev/croft/internal/wall"
)

// TestTemplates tries croft's ConstraintTemplates with Gatekeeper's own gator: the
// attacks that a constraint must stop, and the mirrors that it must not, are the
// cases of a suite. Then each rule is made to ask nothing, and the suite must fail.
func TestTemplates(t *testing.T) {
	gator, err := sandbox.Tool("gator")
	if err != nil {
		t.Fatal(err)
	}
	platform := platformWith("ingress")
	platform.Spec.Placement = v1alpha1.PlacementGatekeeper
	scratch, err := verify.NewScratch(platform)
	if err != nil {
		t.Fatal(err)
	}
	parts, by, on := scratch.Parts()
	for _, c := range constrained(parts) {
		t.Run(c.Kind, func(t *testing.T) {
			s := suite{dir: t.TempDir(), constrained: c}
			for _, tenant := range []*estate.Tenant{by, on} {
				s.add(t, parts, tenant, scratch.Attacks())
			}
			if out, err := s.verify(gator); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for i, rule := range c.Policy.Rules {
				template := c.Template().(*unstructured.Unstructured)
				askNothing(template, i)
				s.write(t, "template.yaml", template.Object)
				if out, err := s.verify(gator); err == nil {
					t.Errorf("rule %s asks nothing, and no case fails:\n%s", rule.Name, out)
				}
			}
		})
	}
}

// constrained are the policies that Gatekeeper holds too.
func constrained(p *estate.Platform) []admission.Constrained {
	var all []admission.Constrained
	for _, w := range wall.All() {
		if w, ok := w.(interface {
			Constraints(*estate.Platform) []admission.Constrained
		}); ok {
			all = append(all, w.Constraints(p)...)
		}
	}
	return all
}

// suite is a directory that gator reads: one template, a constraint for each
// tenant, and their cases.
type suite struct {
	dir         string
	constrained admission.Constrained
	tests       []any
}

func (s *suite) verify(gator string) (string, error) {
	out, err := exec.Command(gator, "verify", s.dir).CombinedOutput()
	return string(out), err
}

func (s *suite) write(t *testing.T, file string, content any) {
	t.Helper()
	text, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, file), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// add adds the cases of one tenant.
func (s *suite) add(t *testing.T, p *estate.Platform, tenant *estate.Tenant, attacks []attack.Attack) {
	t.Helper()
	constraint := "constraint-" + tenant.Name + ".yaml"
	for _, o := range wall.TenantObjects(p, tenant) {
		if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == s.constrained.Kind {
			// gator knows no namespaces and their labels.
			unstructured.RemoveNestedField(u.Object, "spec", "match", "namespaceSelector")
			s.write(t, constraint, u.Object)
		}
	}
	s.write(t, "template.yaml", s.constrained.Template().(*unstructured.Unstructured).Object)
	var cases []any
	for _, a := range attacks {
		review := s.review(t, p, tenant, a)
		if review == nil {
			continue
		}
		assertion := map[string]any{"violations": "no"}
		if a.Kind == attack.Breach {
			assertion = map[string]any{"violations": "yes", "message": `\[` + a.StoppedBy.Rule + `\]`}
		}
		s.write(t, "case-"+a.Name+".yaml", review)
		cases = append(cases, map[string]any{"name": a.Name, "object": "case-" + a.Name + ".yaml", "assertions": []any{assertion}})
	}
	if len(cases) == 0 {
		return
	}
	s.tests = append(s.tests, map[string]any{"name": tenant.Name, "template": "template.yaml", "constraint": constraint, "cases": cases})
	s.write(t, "suite.yaml", map[string]any{"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": s.tests})
}

// review is what the API server would ask of an attack; nil if the attack is none
// of the tenant's on the constraint.
func (s *suite) review(t *testing.T, p *estate.Platform, tenant *estate.Tenant, a attack.Attack) map[string]any {
	t.Helper()
	r := a.Request
	if a.By != tenant.Name || r == nil || r.Subresource != "" || a.Kind == attack.Breach && a.StoppedBy.Constraint != s.constrained.Kind {
		return nil
	}
	gvk, err := apiutil.GVKForObject(r.Object, scheme.New())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(s.constrained.Matches[gvk.Group], gvk.Kind) {
		return nil
	}
	request := map[string]any{
		"uid": a.Name, "namespace": tenant.Namespaces[0], "name": r.Object.GetName(),
		"kind":     map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
		"resource": map[string]any{"group": gvk.Group, "version": gvk.Version, "resource": strings.ToLower(gvk.Kind) + "s"},
	}
	object := asStored(p, tenant, r.Object.DeepCopyObject().(client.Object))
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

// asStored fills in what the API server and the mutators do before a constraint is
// asked, so far as the templates look at it.
func asStored(p *estate.Platform, tenant *estate.Tenant, o client.Object) client.Object {
	switch o := o.(type) {
	case *corev1.Service:
		if o.Spec.Type == "" {
			o.Spec.Type = corev1.ServiceTypeClusterIP
		}
	case *corev1.Pod:
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
