package apply

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func newEntry(manager string, op metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	e := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: op, Subresource: subresource,
		APIVersion: "networking.k8s.io/v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{},
	}
	e.FieldsV1.SetRawBytes([]byte(fields))
	return e
}

const (
	applied = metav1.ManagedFieldsOperationApply
	updated = metav1.ManagedFieldsOperationUpdate
)

func TestOwnership(t *testing.T) {
	ours := newEntry("croft", applied, "", `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:podSelector":{}}}`)
	for _, test := range []struct {
		name      string
		kind      string
		entries   []metav1.ManagedFieldsEntry
		intruders []string
		foreign   string
	}{
		{"croft alone", "NetworkPolicy", []metav1.ManagedFieldsEntry{ours}, nil, `{}`},
		{
			"a field added", "NetworkPolicy",
			[]metav1.ManagedFieldsEntry{ours, newEntry("kubectl-edit", updated, "", `{"f:spec":{"f:ingress":{}}}`)},
			[]string{"kubectl-edit"}, `{"f:spec":{"f:ingress":{}}}`,
		},
		{
			"an annotation added along", "NetworkPolicy",
			[]metav1.ManagedFieldsEntry{ours, newEntry("kubectl", applied, "", `{"f:metadata":{"f:annotations":{"f:x":{}}},"f:spec":{"f:ingress":{}}}`)},
			[]string{"kubectl"}, `{"f:spec":{"f:ingress":{}}}`,
		},
		{
			"notes and status of controllers", "NodePool",
			[]metav1.ManagedFieldsEntry{
				ours,
				newEntry("karpenter", updated, "", `{"f:metadata":{"f:annotations":{"f:hash":{}}}}`),
				newEntry("karpenter", updated, "status", `{"f:status":{"f:nodes":{}}}`),
			},
			nil, `{}`,
		},
		{
			"the limit that blocks launches", "NodePool",
			[]metav1.ManagedFieldsEntry{
				ours, newEntry("croft-launches", applied, "", `{"f:metadata":{"f:annotations":{"f:croft.dev/refused-launches":{}}},"f:spec":{"f:limits":{"f:croft.dev/launches":{}}}}`),
			},
			nil, `{}`,
		},
		{
			"another limit", "NodePool",
			[]metav1.ManagedFieldsEntry{ours, newEntry("kubectl", applied, "", `{"f:spec":{"f:limits":{"f:cpu":{}}}}`)},
			[]string{"kubectl"}, `{"f:spec":{"f:limits":{"f:cpu":{}}}}`,
		},
		{
			"a subresource with rights of its own", "Deployment",
			[]metav1.ManagedFieldsEntry{ours, newEntry("hpa", updated, "scale", `{"f:spec":{"f:replicas":{}}}`)},
			nil, `{}`,
		},
		{
			"the finalizers of a namespace", "Namespace",
			[]metav1.ManagedFieldsEntry{newEntry("kube-apiserver", updated, "", `{"f:spec":{"f:finalizers":{}}}`)},
			nil, `{}`,
		},
		{
			"croft's name forged", "NetworkPolicy",
			[]metav1.ManagedFieldsEntry{ours, newEntry("croft", updated, "", `{"f:spec":{"f:ingress":{}}}`)},
			[]string{"croft"}, `{"f:spec":{"f:ingress":{}}}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, err := parseOwnership(test.kind, test.entries)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := o.foreign.ToJSON()
			if err != nil {
				t.Fatal(err)
			}
			if string(raw) != test.foreign || !slices.Equal(o.intruders, test.intruders) {
				t.Errorf("foreign = %s by %v, want %s by %v", raw, o.intruders, test.foreign, test.intruders)
			}
		})
	}
}

func TestHasAbandoned(t *testing.T) {
	o, err := parseOwnership("ResourceQuota", []metav1.ManagedFieldsEntry{
		newEntry("croft", applied, "", `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:hard":{"f:cpu":{},"f:pods":{}}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	full := tree{"metadata": tree{"labels": tree{"a": "b"}}, "spec": tree{"hard": tree{"cpu": "1", "pods": "3"}}}
	if o.hasAbandoned(full) {
		t.Error("nothing is abandoned, and yet")
	}
	if !o.hasAbandoned(tree{"metadata": tree{"labels": tree{"a": "b"}}, "spec": tree{"hard": tree{"cpu": "1"}}}) {
		t.Error("pods is no longer desired, but not abandoned")
	}
	if !o.hasAbandoned(tree{"spec": tree{"hard": tree{"cpu": "1", "pods": "3"}}}) {
		t.Error("a label is no longer desired, but not abandoned")
	}
}

func TestMoveForeignFields(t *testing.T) {
	ours := newEntry("croft", applied, "", `{"f:spec":{"f:podSelector":{}}}`)
	edit := newEntry("kubectl-edit", updated, "", `{"f:metadata":{"f:labels":{"f:x":{}}},"f:spec":{"f:ingress":{}}}`)
	add := newEntry("curl", updated, "", `{"f:spec":{"f:egress":{}}}`)
	reports := newEntry("kcm", updated, "status", `{"f:status":{"f:conditions":{}}}`)

	got, err := moveForeignFields("NetworkPolicy", "networking.k8s.io/v1", []metav1.ManagedFieldsEntry{edit, ours, add, reports})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"croft":        `{"f:spec":{"f:egress":{},"f:ingress":{},"f:podSelector":{}}}`,
		"kubectl-edit": `{"f:metadata":{"f:labels":{"f:x":{}}}}`,
		"kcm":          `{"f:status":{"f:conditions":{}}}`,
	}
	if len(got) != len(want) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
	for _, e := range got {
		if !equalFields(t, e.FieldsV1.GetRawBytes(), want[e.Manager]) {
			t.Errorf("%s owns %s, want %s", e.Manager, e.FieldsV1, want[e.Manager])
		}
	}
}

func TestMoveForeignFieldsWithoutOwnEntry(t *testing.T) {
	got, err := moveForeignFields("NetworkPolicy", "networking.k8s.io/v1", []metav1.ManagedFieldsEntry{
		newEntry("kubectl", applied, "", `{"f:spec":{"f:ingress":{}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || !isOurs(got[0]) || got[0].APIVersion != "networking.k8s.io/v1" || got[0].FieldsType != "FieldsV1" {
		t.Errorf("entries = %+v, want one of croft's", got)
	}
}

func equalFields(t *testing.T, got []byte, want string) bool {
	t.Helper()
	parse := func(raw []byte) *fieldpath.Set {
		e := newEntry("", applied, "", string(raw))
		set, err := parseFields(e)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	return parse(got).Equals(parse([]byte(want)))
}
