package platform

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/api/v1alpha1"
)

// TestCheckGatekeeper fails if a cluster without Gatekeeper, or without its webhooks, can place pods.
func TestCheckGatekeeper(t *testing.T) {
	mutations := schema.GroupVersion{Group: "mutations.gatekeeper.sh", Version: "v1"}
	templates := schema.GroupVersionKind{Group: "templates.gatekeeper.sh", Version: "v1", Kind: "ConstraintTemplate"}
	all := []schema.GroupVersionKind{mutations.WithKind("Assign"), mutations.WithKind("ModifySet"), templates}
	for name, test := range map[string]struct {
		served           []schema.GroupVersionKind
		reason, wantText string
	}{
		"not installed":     {nil, v1alpha1.ReasonEngineMissing, "install Gatekeeper"},
		"without mutation":  {[]schema.GroupVersionKind{templates}, v1alpha1.ReasonEngineMissing, "does not serve mutations.gatekeeper.sh/v1 Assign"},
		"without templates": {all[:2], v1alpha1.ReasonEngineMissing, "does not serve templates.gatekeeper.sh/v1 ConstraintTemplate"},
		"without webhooks":  {all, v1alpha1.ReasonEngineUnsafe, "enable mutation"},
	} {
		cluster := newServingClient(test.served)
		reason, message, err := (&Controller{client: cluster, live: cluster}).checkGatekeeper(t.Context())
		if err != nil || reason != test.reason || !strings.Contains(message, test.wantText) {
			t.Errorf("%s: %s %q, %v; want %s with %q", name, reason, message, err, test.reason, test.wantText)
		}
	}
}
