package bootstrap

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEmptyDocumentsAreSkipped(t *testing.T) {
	for content, want := range map[string]int{
		"":                            0,
		"# nothing yet\n":             0,
		"---\n---\nkind: A\n---\n# b": 1,
		"kind: A\n---\nkind: B\n":     2,
	} {
		if got, err := Decode([]byte(content)); len(got) != want || err != nil {
			t.Errorf("%q: got %d objects, %v; want %d", content, len(got), err, want)
		}
	}
}

func TestManifestsAreComplete(t *testing.T) {
	crds, err := readCRDs()
	if err != nil {
		t.Fatal(err)
	}
	others, err := readFS(manifests)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, u := range append(crds, others...) {
		if u.GetAPIVersion() == "" || u.GetKind() == "" || u.GetName() == "" {
			t.Errorf("without kind or name: %v", u.Object)
		}
		names[u.GetKind()+"/"+u.GetName()] = true
		if _, set, _ := unstructured.NestedFieldNoCopy(u.Object, "status"); set {
			t.Errorf("%s is applied with a status", u.GetName())
		}
	}
	for _, want := range []string{
		"CustomResourceDefinition/nodepools.karpenter.sh",
		"CustomResourceDefinition/nodeclaims.karpenter.sh",
		"CustomResourceDefinition/kwoknodeclasses.karpenter.kwok.sh",
		"Namespace/karpenter",
		"ClusterRoleBinding/karpenter",
		"ClusterRoleBinding/kwok-controller",
	} {
		if !names[want] {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestEstablished(t *testing.T) {
	with := func(status string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True"},
			map[string]any{"type": "Established", "status": status},
		}}}}
	}
	if !isEstablished(with("True")) || isEstablished(with("False")) || isEstablished(&unstructured.Unstructured{}) {
		t.Error("the condition is misread")
	}
}
