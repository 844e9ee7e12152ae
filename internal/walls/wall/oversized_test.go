package wall_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// TestUpdateOfOversizedObject updates objects that exceeded a bound before the bound existed.
// Updates of their labels, the removal of finalizers and changes that bring them within the
// bounds are allowed. Every other change is refused.
func TestUpdateOfOversizedObject(t *testing.T) {
	rules := newLongRules(v1alpha1.EgressOpen)
	policies := listPolicies(t, newCalicoPlatform(t))
	object := func(content string, edits ...func(map[string]any)) func(*testing.T) *unstructured.Unstructured {
		return func(t *testing.T) *unstructured.Unstructured {
			u := addMetadata(&unstructured.Unstructured{Object: map[string]any{}})
			u.SetAnnotations(nil)
			u.SetFinalizers(nil)
			for _, part := range strings.Fields(content) {
				switch field, n, _ := strings.Cut(part, "="); field {
				case "peers":
					setField(t, u, []any{map[string]any{"from": makeEntries(t, n, `{"podSelector": {}}`)}}, "spec", "ingress")
				case "hosts":
					setField(t, u, makeEntries(t, n, `{"host": "h%d.shop.example.org"}`), "spec", "rules")
				case "finalizers":
					setField(t, u, makeEntries(t, n, `"example.org/f-%d"`), "metadata", "finalizers")
				case "tolerations":
					setField(t, u, makeEntries(t, n, `{"key": "node.kubernetes.io/c-%d"}`), "spec", "tolerations")
					setField(t, u, makeEntries(t, "1", `{"name": "main", "image": "registry.example.org/shop/app", "imagePullPolicy": "Always"}`), "spec", "containers")
				default:
					t.Fatalf("%s: there is no such field", part)
				}
			}
			for _, edit := range edits {
				edit(u.Object)
			}
			return u
		}
	}
	labelled := func(o map[string]any) { o["metadata"].(map[string]any)["labels"] = map[string]any{"team": "web"} }
	open := func(o map[string]any) {
		from := o["spec"].(map[string]any)["ingress"].([]any)[0].(map[string]any)["from"].([]any)
		from[0] = map[string]any{"ipBlock": map[string]any{"cidr": "0.0.0.0/0"}}
	}
	foreign := func(o map[string]any) {
		o["spec"].(map[string]any)["rules"].([]any)[0] = map[string]any{"host": "was.example.net"}
	}
	classed := func(class string) func(map[string]any) {
		return func(o map[string]any) { o["spec"].(map[string]any)["ingressClassName"] = class }
	}
	other := func(o map[string]any) {
		finalizers := o["metadata"].(map[string]any)["finalizers"].([]any)
		finalizers[0] = "example.org/other"
	}
	for _, c := range []struct {
		name, policy, resource string
		was, is                func(*testing.T) *unstructured.Unstructured
		// by is the rule that refuses the request, or "" if none does.
		by string
	}{
		{"label", "croft-network-floor", "networkpolicies", object("peers=501"), object("peers=501", labelled), ""},
		{"take a finalizer off", "croft-network-floor", "networkpolicies", object("peers=501 finalizers=2"), object("peers=501"), ""},
		{"change an entry", "croft-network-floor", "networkpolicies", object("peers=501"), object("peers=501", open), admissionpolicy.BoundsRule},
		{"lengthen", "croft-network-floor", "networkpolicies", object("peers=501"), object("peers=502"), admissionpolicy.BoundsRule},
		{"shorten to what is too long", "croft-network-floor", "networkpolicies", object("peers=502"), object("peers=501"), admissionpolicy.BoundsRule},
		{"shorten", "croft-network-floor", "networkpolicies", object("peers=501"), object("peers=500"), ""},
		{"shorten, and open", "croft-network-floor", "networkpolicies", object("peers=501"), object("peers=500", open), "ingress-from"},
		{"label, with a host that is not granted any more", "croft-ingresses", "ingresses", object("hosts=251", foreign), object("hosts=251", foreign, labelled), ""},
		{"shorten, and leave the class open", "croft-ingresses", "ingresses", object("hosts=251", classed("x")), object("hosts=250"), "class"},
		{"shorten, with a host that is not granted any more", "croft-ingresses", "ingresses", object("hosts=251", foreign), object("hosts=250", foreign, classed("i")), "hosts"},
		{"take one of too many finalizers off", "croft-finalizers", "configmaps", object("finalizers=60"), object("finalizers=59"), ""},
		{"take the last of too many finalizers off", "croft-finalizers", "configmaps", object("finalizers=51"), object("finalizers=50"), ""},
		{"put a finalizer in the place of one of too many", "croft-finalizers", "configmaps", object("finalizers=60"), object("finalizers=60", other), admissionpolicy.BoundsRule},
		{"take a finalizer off a pod", "croft-pods", "pods", object("tolerations=101 finalizers=2"), object("tolerations=101 finalizers=1"), ""},
		{"put a finalizer in the place of a pod's", "croft-pods", "pods", object("tolerations=101 finalizers=2"), object("tolerations=101 finalizers=1", other), admissionpolicy.BoundsRule},
		{"put a finalizer on a pod", "croft-pods", "pods", object("tolerations=101"), object("tolerations=101 finalizers=1"), admissionpolicy.BoundsRule},
		{"add a toleration", "croft-pods", "pods", object("tolerations=100"), object("tolerations=101"), admissionpolicy.BoundsRule},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := slices.IndexFunc(policies, func(l scopedPolicy) bool { return l.name == c.policy && l.rules != nil })
			l := policies[i]
			l.at[0].Resource = c.resource
			got := l.evaluateRequest(t, l.newRequest(0, c.is(t), c.was(t)), rules)
			if c.by == "" && (len(got.refusals) > 0 || len(got.errs) > 0) || c.by != "" && !got.isRefusedBy(c.by) {
				t.Errorf("%s should refuse it, and this is what came: %v %v", fmt.Sprintf("%q", c.by), got.refusals, got.errs)
			}
		})
	}
}

func setField(t *testing.T, u *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

// makeEntries returns a list of count copies of the sample, with %d replaced by the index.
func makeEntries(t *testing.T, count, sample string) []any {
	t.Helper()
	n, err := strconv.Atoi(count)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]any, n)
	for i := range all {
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(sample, "%d", strconv.Itoa(i))), &all[i]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
