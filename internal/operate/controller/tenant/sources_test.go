package tenant

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/walls/wall/network"
)

// TestMultusIsMissing covers a cluster without Multus: the Tenant reports it, and only
// objects that the cluster serves are written.
func TestMultusIsMissing(t *testing.T) {
	granted := &estate.Tenant{Name: "core", Namespaces: []string{"core"}, Networks: []estate.Network{{Name: "n4"}}}
	served := []schema.GroupVersionKind{network.DefinitionKind}
	const want = "networks: this cluster does not know the kind NetworkAttachmentDefinition (k8s.cni.cncf.io/v1): install Multus, or remove the tenant's networks"
	if err := checkNetworkKinds(granted, nil); err == nil || err.Error() != want {
		t.Errorf("a cluster without Multus: %v", err)
	}
	if err := checkNetworkKinds(granted, served); err != nil {
		t.Errorf("a cluster with Multus: %v", err)
	}
	if err := checkNetworkKinds(&estate.Tenant{Name: "core"}, nil); err != nil {
		t.Errorf("a tenant without networks: %v", err)
	}
	definition, other := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	definition.SetGroupVersionKind(network.DefinitionKind)
	other.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "LimitRange"})
	objects := []client.Object{definition, other}
	if n := len(omitUnserved(objects, nil)); n != 1 {
		t.Errorf("of a definition and a LimitRange %d are written without Multus", n)
	}
	if n := len(omitUnserved(objects, served)); n != 2 {
		t.Errorf("of a definition and a LimitRange %d are written with Multus", n)
	}
}
