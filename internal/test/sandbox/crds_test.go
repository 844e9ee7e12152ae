package sandbox

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

func TestInstallCRDs(t *testing.T) {
	EndToEnd(t)
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	c := Start(t, Options{Components: APIOnly})
	started := time.Now()
	if err := c.InstallCRDs(t.Context(), GatewayAPI, CertManager, Flux, ArgoCD, Gatekeeper, Calico, CalicoStorage, NetworkPolicyAPI, AmazonVPC, KarpenterAWS); err != nil {
		t.Fatal(err)
	}
	t.Logf("installed in %s", time.Since(started))

	// The kinds are served at once, without another wait.
	resources, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	for group, names := range map[schema.GroupVersion][]string{
		{Group: "gateway.networking.k8s.io", Version: "v1"}:      {"gateways", "gatewayclasses", "httproutes", "grpcroutes", "tlsroutes", "referencegrants"},
		{Group: "cert-manager.io", Version: "v1"}:                {"certificates", "certificaterequests", "issuers", "clusterissuers"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1"}:       {"gitrepositories", "ocirepositories", "helmrepositories", "helmcharts", "buckets"},
		{Group: "kustomize.toolkit.fluxcd.io", Version: "v1"}:    {"kustomizations"},
		{Group: "helm.toolkit.fluxcd.io", Version: "v2"}:         {"helmreleases"},
		{Group: "argoproj.io", Version: "v1alpha1"}:              {"applications", "applicationsets", "appprojects"},
		{Group: "mutations.gatekeeper.sh", Version: "v1"}:        {"assign", "assignmetadata", "modifyset"},
		{Group: "templates.gatekeeper.sh", Version: "v1"}:        {"constrainttemplates"},
		{Group: "projectcalico.org", Version: "v3"}:              {"networkpolicies", "globalnetworkpolicies", "tiers"},
		{Group: "crd.projectcalico.org", Version: "v1"}:          {"networkpolicies", "globalnetworkpolicies", "tiers"},
		{Group: "policy.networking.k8s.io", Version: "v1alpha2"}: {"clusternetworkpolicies"},
		{Group: "networking.k8s.aws", Version: "v1alpha1"}:       {"clusternetworkpolicies"},
		{Group: "karpenter.k8s.aws", Version: "v1"}:              {"ec2nodeclasses"},
	} {
		for _, name := range names {
			if _, err := resources.Resource(group.WithResource(name)).List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Errorf("list %s: %v", group.WithResource(name), err)
			}
		}
	}

	if err := c.InstallCRDs(t.Context(), GatewayAPI); err != nil {
		t.Errorf("installed again: %v", err)
	}
	if err := c.InstallCRDs(t.Context(), "istio"); err == nil || !strings.Contains(err.Error(), `"istio"`) {
		t.Errorf("an addon that there is not: got %v, want an error that names it", err)
	}
}

// TestReadCRDsWithoutModule expects the error without the module and without a network
// to name the module.
func TestReadCRDsWithoutModule(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	_, err := readCRDs(context.Background(), []string{CertManager})
	if err == nil || !strings.Contains(err.Error(), "sandbox/addons/go.mod") || !strings.Contains(err.Error(), "github.com/cert-manager/cert-manager") {
		t.Errorf("got %v, want an error that names the module and where its version is", err)
	}
}
