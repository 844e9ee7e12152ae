package apply

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestStaticNodePool fails if the error does not contain the remedy when Karpenter refuses
// to turn a NodePool of fixed size into one of croft's, or if it does not repeat other
// refusals.
func TestStaticNodePool(t *testing.T) {
	refused := func(message string) string {
		gvk := schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}
		invalid := apierrors.NewInvalid(gvk.GroupKind(), "gateway", field.ErrorList{field.Invalid(field.NewPath("spec"), "", message)})
		return (&ObjectError{Ref: Ref{gvk, types.NamespacedName{Name: "gateway"}}, Err: invalid}).Error()
	}
	// The message is from Karpenter's CRD of NodePools.
	if got := refused("Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes"); !strings.Contains(got, "another name, such as gateway-dynamic") {
		t.Error(got)
	}
	if got := refused("'weight' is wrong"); !strings.Contains(got, "'weight' is wrong") {
		t.Error(got)
	}
}
