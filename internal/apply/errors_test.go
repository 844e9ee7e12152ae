package apply

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestStaticNodePool expects a Pool to name the remedy where Karpenter refuses to make a
// NodePool of a fixed size one of croft's, and to repeat other refusals.
func TestStaticNodePool(t *testing.T) {
	refused := func(message string) string {
		gvk := schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}
		invalid := apierrors.NewInvalid(gvk.GroupKind(), "gateway", field.ErrorList{field.Invalid(field.NewPath("spec"), "", message)})
		return (&ObjectError{Ref: Ref{gvk, types.NamespacedName{Name: "gateway"}}, Err: invalid}).Error()
	}
	// The message is one of Karpenter's definition of NodePools.
	if got := refused("Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes"); !strings.Contains(got, "another name, such as gateway-dynamic") {
		t.Error(got)
	}
	if got := refused("'weight' is wrong"); !strings.Contains(got, "'weight' is wrong") {
		t.Error(got)
	}
}
