package doctor

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// TestAddresses expects a warning before a range is full, and a problem when it is.
func TestAddresses(t *testing.T) {
	networks := []v1alpha1.SecondaryNetwork{{ObjectMeta: metav1.ObjectMeta{Name: "n4"}, Spec: v1alpha1.SecondaryNetworkSpec{
		Zones: []v1alpha1.SecondaryNetworkZone{{Zone: "us-west-2a", CIDR: "10.0.4.0/24", PodCIDR: "10.0.4.32/27"}},
	}}}
	for used, want := range map[int]Severity{0: "", 28: "", 29: Warning, 31: Warning, 32: Problem} {
		allocations := map[string]any{}
		for i := range used {
			allocations[fmt.Sprint(32+i)] = map[string]any{}
		}
		pool := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"range": "10.0.4.0/24", "allocations": allocations}}}
		s := &Snapshot{Declared: &manifest.Declaration{Networks: networks}, IPPools: []unstructured.Unstructured{pool}}
		found := checkAddresses(s)
		switch {
		case want == "" && len(found) > 0:
			t.Errorf("with %d of 32: %+v", used, found)
		case want == "":
		case len(found) != 1 || found[0].Severity != want || found[0].Fix == "" || found[0].Object != "SecondaryNetwork/n4" ||
			!strings.Contains(found[0].Message, fmt.Sprintf("us-west-2a: %d of 32 addresses", used)):
			t.Errorf("with %d of 32: %+v", used, found)
		}
	}
	if found := checkAddresses(&Snapshot{Declared: &manifest.Declaration{Networks: networks}}); len(found) > 0 {
		t.Errorf("without whereabouts: %+v", found)
	}
}
