package policy

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/attack"
)

// flux is what Flux would do on the tenant's behalf, where the cluster has it.
func (s scene) flux() []attack.Attack {
	const kustomize, helm, source = "kustomize.toolkit.fluxcd.io/v1", "helm.toolkit.fluxcd.io/v2", "source.toolkit.fluxcd.io/v1"
	kustomization := func(name string, edit func(map[string]any)) *unstructured.Unstructured {
		spec := map[string]any{"interval": "1m", "prune": true, "serviceAccountName": "flux", "sourceRef": map[string]any{"kind": "GitRepository", "name": "app"}}
		edit(spec)
		return attack.Custom(kustomize, "Kustomization", s.own, "croft-"+name, spec)
	}
	release := func(name string, edit func(map[string]any)) client.Object {
		spec := map[string]any{"interval": "1m", "serviceAccountName": "flux", "chartRef": map[string]any{"kind": "OCIRepository", "name": "app"}}
		edit(spec)
		return attack.Custom(helm, "HelmRelease", s.own, "croft-"+name, spec)
	}
	ref := func(kind string) map[string]any {
		return map[string]any{"kind": kind, "name": "app", "namespace": s.other}
	}
	by := func(rule string) attack.Stopper { return attack.ByPolicy(FluxPolicy, rule) }
	repository := func(name string, spec map[string]any) *unstructured.Unstructured {
		return attack.Custom(source, "OCIRepository", s.own, "croft-"+name, spec)
	}
	none := func(map[string]any) {}
	return attack.Because("Flux applies with the rights of the cluster's administrator unless it is told whose to use", []string{"https://fluxcd.io/flux/installation/configuration/multitenancy/"},
		attack.Creating("apply-as-flux", "have Flux apply manifests with its own rights", by(ServiceAccountRule), kustomization("apply-as-flux", func(m map[string]any) { delete(m, "serviceAccountName") })),
		attack.Creating("install-as-flux", "have Flux install a chart with its own rights", by(ServiceAccountRule), release("install-as-flux", func(m map[string]any) { delete(m, "serviceAccountName") })),
		attack.Creating("apply-by-kubeconfig", "have Flux apply manifests by a kubeconfig", by(KubeConfigRule), kustomization("apply-by-kubeconfig", func(m map[string]any) {
			m["kubeConfig"] = map[string]any{"secretRef": map[string]any{"name": "kubeconfig"}}
		})),
		attack.Creating("apply-other-source", "have Flux apply another tenant's source", by(SourceNamespaceRule), kustomization("apply-other-source", func(m map[string]any) { m["sourceRef"] = ref("GitRepository") })),
		attack.Creating("install-other-source", "have Flux install another tenant's chart", by(SourceNamespaceRule), release("install-other-source", func(m map[string]any) { m["chartRef"] = ref("OCIRepository") })),
		attack.Creating("fetch-as-platform", "have Flux fetch with the platform's cloud identity", attack.ByPolicy(FluxSourcesPolicy, ProviderRule),
			repository("fetch-as-platform", map[string]any{"interval": "1m", "url": "oci://registry.example.com/other/app", "provider": "aws"})),
		attack.Changing("apply-as-flux-later", "have Flux apply manifests with its own rights, by a Kustomization that is there", by(ServiceAccountRule),
			kustomization("apply-as-flux-later", none), func(u *unstructured.Unstructured) {
				unstructured.RemoveNestedField(u.Object, "spec", "serviceAccountName")
			}),
		attack.Changing("fetch-as-platform-later", "have Flux fetch with the platform's cloud identity, by a source that is there", attack.ByPolicy(FluxSourcesPolicy, ProviderRule),
			repository("fetch-as-platform-later", map[string]any{"interval": "1m", "url": "oci://registry.example.com/other/app"}),
			func(u *unstructured.Unstructured) { set(u, "aws", "spec", "provider") }),
		attack.Creating("apply-by-flux", "have Flux apply manifests as a service account", attack.Nobody, kustomization("apply-by-flux", none)),
		attack.Creating("install-by-flux", "have Flux install a chart as a service account", attack.Nobody, release("install-by-flux", none)),
		attack.Creating("fetch-by-flux", "have Flux fetch with a secret", attack.Nobody, repository("fetch-by-flux", map[string]any{"interval": "1m", "url": "oci://registry.example.com/own/app"})),
	)
}
