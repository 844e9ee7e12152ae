package estate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
)

// notGiven are the API groups that the Platform's addons cannot give to tenants, with the
// reason. A group that begins with a dot includes all groups below it. A slash separates a
// group from one of its resources.
var notGiven = []struct {
	why    string
	groups []string
}{
	{"belongs to Kubernetes: the roles viewer and operator grant all rights to it that the walls allow", []string{
		"apps", "batch", "autoscaling", "policy", "extensions", "apiextensions.k8s.io", "apiregistration.k8s.io", "admissionregistration.k8s.io",
		"authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
		"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "metrics.k8s.io", "networking.k8s.io", "node.k8s.io",
		"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
	}},
	{"contains the objects that walls consist of", []string{
		"croft.dev", "karpenter.sh", ".karpenter.sh", "karpenter.k8s.aws", "karpenter.kwok.sh", "gatekeeper.sh", ".gatekeeper.sh", "kyverno.io", ".kyverno.io",
	}},
	{"contains network policies or networks that would bypass the network wall", []string{
		"projectcalico.org", "crd.projectcalico.org", "policy.networking.k8s.io", "networking.k8s.aws", "cilium.io", "crd.antrea.io", "k8s.cni.cncf.io",
		"security.istio.io", "crd.k8s.amazonaws.com", "vpcresources.k8s.aws", "k8s.ovn.org", "submariner.io", "multicluster.x-k8s.io",
	}},
	{"contains routes whose hosts croft does not check: tenants write Ingresses and routes of the Gateway API", []string{
		"networking.istio.io", "traefik.io", "traefik.containo.us", "projectcontour.io", "getambassador.io", "configuration.konghq.com",
		"k8s.nginx.org", "appmesh.k8s.aws", "elbv2.k8s.aws", "eks.amazonaws.com", "externaldns.k8s.io", "route.openshift.io", "apisix.apache.org",
		"gateway.envoyproxy.io", "gateway.networking.x-k8s.io",
	}},
	{"has controllers that write any object on request, with rights to the whole cluster", []string{
		"argoproj.io/applications", "argoproj.io/applicationsets", "argoproj.io/appprojects", "operators.coreos.com", "helm.cattle.io", "velero.io", "pkg.crossplane.io", "apiextensions.crossplane.io", "rbac.crossplane.io",
		"cluster.x-k8s.io", ".cluster.x-k8s.io", "services.k8s.aws", ".services.k8s.aws", "rbacmanager.reactiveops.io", "capsule.clastix.io",
		"fluxcd.controlplane.io", "core.oam.dev", "fleet.cattle.io", "authorization.openshift.io",
	}},
	{"is read by Karpenter or the cluster autoscaler, which create nodes for it without applying the rules for pods", []string{"autoscaling.x-k8s.io"}},
	{"is granted already, as far as it is safe", []string{
		"gateway.networking.k8s.io", "cert-manager.io", "acme.cert-manager.io", "source.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io",
		"helm.toolkit.fluxcd.io", "notification.toolkit.fluxcd.io", "image.toolkit.fluxcd.io",
	}},
}

// checkAddons refuses add-ons that would give tenants rights that a wall denies. It does
// not know whether a kind affects only its namespace: docs/reference/addons.md lists the hazards of the known
// kinds.
func checkAddons(p *v1alpha1.PlatformSpec) []finding {
	var all []finding
	for i, addon := range p.Addons {
		at := field.NewPath("spec", "addons").Index(i)
		if why := explainWithheld(addon.APIGroup); why != "" {
			all = append(all, makeFinding(at.Child("apiGroup"), "the API group %s %s; leave it out", addon.APIGroup, why)...)
			continue
		}
		for j, resource := range addon.Resources {
			if why := explainWithheld(addon.APIGroup + "/" + resource); why != "" {
				all = append(all, makeFinding(at.Child("resources").Index(j), "%s of %s %s; leave it out", resource, addon.APIGroup, why)...)
			}
		}
	}
	return all
}

// explainWithheld returns why a group, or a resource of a group, is not given, or "" if it may be.
func explainWithheld(name string) string {
	for _, entry := range notGiven {
		if slices.ContainsFunc(entry.groups, func(g string) bool {
			return name == g || strings.HasPrefix(g, ".") && strings.HasSuffix(name, g)
		}) {
			return entry.why
		}
	}
	return ""
}
