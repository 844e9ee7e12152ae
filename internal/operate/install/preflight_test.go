package install

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/internal/operate/apply"
)

// TestPreflightOfServer covers the kinds that an API server serves, and its version.
func TestPreflightOfServer(t *testing.T) {
	serving := func(kinds ...[]schema.GroupVersionKind) meta.RESTMapper {
		m := meta.NewDefaultRESTMapper(nil)
		for _, kind := range slices.Concat(kinds...) {
			m.Add(kind, meta.RESTScopeRoot)
		}
		return m
	}
	pools := apply.PoolKinds
	for name, test := range map[string]struct {
		got      Finding
		state    State
		wantText string
	}{
		"1.36":                 {checkVersion("v1.36.3"), Good, "v1.36.3"},
		"EKS' notation":        {checkVersion("v1.31.2-eks-7f9249a"), Good, ""},
		"1.29":                 {checkVersion("v1.29.9"), Problem, "croft needs Kubernetes 1.30"},
		"no version":           {checkVersion(""), Problem, "croft needs"},
		"native":               {checkPlacement(serving(apply.PlatformKinds, apply.NativePlatformKinds)), Good, ""},
		"Gatekeeper":           {checkPlacement(serving(apply.PlatformKinds, apply.GatekeeperMutatorKinds)), Warning, "set platform.placement to Gatekeeper"},
		"neither":              {checkPlacement(serving(apply.PlatformKinds)), Problem, "install Gatekeeper"},
		"no policies":          {checkPlacement(serving(apply.NativePlatformKinds)), Problem, "ValidatingAdmissionPolicy"},
		"Karpenter on AWS":     {checkKarpenter(serving(pools[:1], pools[2:])), Good, "NodePool, EC2NodeClass"},
		"Karpenter on another": {checkKarpenter(serving(pools[:1])), Warning, "platform.nodeClass.ref"},
		"no Karpenter":         {checkKarpenter(serving(pools[1:])), Problem, "install Karpenter"},
	} {
		if test.got.State != test.state || !strings.Contains(test.got.Message, test.wantText) {
			t.Errorf("%s: %+v, want %s and %q", name, test.got, test.state, test.wantText)
		}
	}
}
