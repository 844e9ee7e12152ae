package gatekeeper

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	return u
}

const (
	assign     = "apiVersion: mutations.gatekeeper.sh/v1\nkind: Assign\n"
	template   = "apiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\n"
	constraint = "apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: CroftServices\n"
	meta       = "metadata: {name: a, uid: u, generation: 2}\nstatus:\n  byPod:\n"
)

func TestReadEnforcement(t *testing.T) {
	for name, tc := range map[string]struct {
		object   string
		pods     int
		wantText string // empty if it is enforced
	}{
		"no pod has reported": {object: assign + "metadata: {name: a, generation: 1}", wantText: "Assign/a: no pod of Gatekeeper"},
		"a mutator": {
			object: assign + meta + "  - {id: one, mutatorUID: u, enforced: true, observedGeneration: 2, operations: [mutation-webhook, webhook]}",
			pods:   1,
		},
		"a mutator, by two of three": {
			object: assign + meta + `
  - {id: one, mutatorUID: u, enforced: true, observedGeneration: 2, operations: [mutation-webhook]}
  - {id: two, mutatorUID: u, enforced: true, observedGeneration: 2, operations: [mutation-webhook]}
  - {id: three, mutatorUID: u, enforced: true, observedGeneration: 1, operations: [mutation-webhook]}`,
			pods: 3, wantText: "of 3 pods of Gatekeeper that have reported it, three has observed generation 1, and not yet 2",
		},
		"only the audit has reported": {
			object:   assign + meta + "  - {id: audit, mutatorUID: u, enforced: true, observedGeneration: 2, operations: [audit, mutation-status]}",
			wantText: "no pod",
		},
		"the audit lags behind": {
			object: assign + meta + `
  - {id: audit, mutatorUID: u, observedGeneration: 1, operations: [audit, mutation-status]}
  - {id: one, mutatorUID: u, enforced: true, observedGeneration: 2, operations: [mutation-webhook]}`,
			pods: 1,
		},
		"an old release does not report what its pods do": {
			object: assign + meta + "  - {id: one, mutatorUID: u, enforced: true, observedGeneration: 2}",
			pods:   1,
		},
		"a conflict, whose generation is the old one": {
			object: assign + meta + "  - {id: one, mutatorUID: u, enforced: false, observedGeneration: 1, operations: [mutation-webhook], errors: [{type: ErrConflictingSchema, message: with another}]}",
			pods:   1, wantText: "one reports: ErrConflictingSchema: with another",
		},
		"not enforced, without a reason": {
			object: assign + meta + "  - {id: one, mutatorUID: u, observedGeneration: 2, operations: [mutation-webhook]}",
			pods:   1, wantText: "does not enforce it yet",
		},
		"of one that was deleted": {
			object: assign + meta + "  - {id: one, mutatorUID: before, enforced: true, observedGeneration: 2, operations: [mutation-webhook]}",
			pods:   1, wantText: "an earlier object of this name",
		},
		"a constraint": {
			object: constraint + meta + "  - {id: one, constraintUID: u, enforced: true, observedGeneration: 2, operations: [webhook]}",
			pods:   1,
		},
		"a constraint of which no policy was made": {
			object: constraint + meta + "  - {id: one, constraintUID: u, enforced: true, observedGeneration: 2, operations: [webhook], errors: [{code: '', message: cannot generate ValidatingAdmissionPolicyBinding}]}",
			pods:   1,
		},
		"a constraint that is refused": {
			object: constraint + meta + "  - {id: one, constraintUID: u, observedGeneration: 2, operations: [webhook], errors: [{code: '', message: could not cache constraint}]}",
			pods:   1, wantText: "one reports: could not cache constraint",
		},
		"a constraint, where only mutation is answered": {
			object:   constraint + meta + "  - {id: one, constraintUID: u, enforced: true, observedGeneration: 2, operations: [mutation-webhook]}",
			wantText: "no pod",
		},
		"a template": {
			object: template + meta + "  - {id: one, templateUID: u, observedGeneration: 2, operations: [webhook]}",
			pods:   1,
		},
		"a template with an error": {
			object: template + meta + "  - {id: one, templateUID: u, observedGeneration: 2, operations: [webhook], errors: [{code: ingest_error, message: no such thing}]}",
			pods:   1, wantText: "ingest_error: no such thing",
		},
		"a template of an earlier generation": {
			object: template + meta + "  - {id: one, templateUID: u, observedGeneration: 1, operations: [webhook]}",
			pods:   1, wantText: "has observed generation 1, and not yet 2",
		},
		"a status of another kind": {object: assign + "metadata: {name: a}\nstatus: {byPod: many}", wantText: "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ReadEnforcement(parseObject(t, tc.object))
			if len(got.Webhooks) != tc.pods || got.IsEnforced() != (tc.wantText == "") || !strings.Contains(got.Message, tc.wantText) {
				t.Errorf("got %d pods, %q; want %d, %q", len(got.Webhooks), got.Message, tc.pods, tc.wantText)
			}
		})
	}
}

func TestParseExclusions(t *testing.T) {
	if got, err := ParseExclusions(nil); got != nil || err != nil {
		t.Errorf("no Config: got %v, %v", got, err)
	}
	got, err := ParseExclusions(parseObject(t, "kind: Config\nmetadata: {name: config}\nspec: {match: [{excludedNamespaces: [kube-*], processes: ['*']}], sync: {}}"))
	if err != nil || len(got) != 1 || got[0].Namespaces[0] != "kube-*" || got[0].Processes[0] != "*" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := ParseExclusions(parseObject(t, "kind: Config\nmetadata: {name: config}\nspec: {match: none}")); err == nil || !strings.Contains(err.Error(), "Config config") {
		t.Errorf("got %v, want an error that names the object", err)
	}
}

// FuzzStatus fails if a status by other writers causes a panic.
func FuzzStatus(f *testing.F) {
	f.Add(`{"kind": "Assign", "metadata": {"generation": 1}, "status": {"byPod": [{"id": "a", "observedGeneration": 1.5, "errors": [null]}]}}`)
	f.Add(`{"apiVersion": "templates.gatekeeper.sh/v1", "status": {"byPod": [{"operations": ["webhook"], "enforced": "yes"}]}}`)
	f.Add(`{"spec": {"match": [{"processes": [1]}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		u := &unstructured.Unstructured{}
		if u.UnmarshalJSON([]byte(text)) != nil {
			t.Skip()
		}
		if e := ReadEnforcement(u); e.IsEnforced() && len(e.Webhooks) == 0 {
			t.Errorf("enforced without a webhook: %s", text)
		}
		_, _ = ParseExclusions(u)
	})
}
