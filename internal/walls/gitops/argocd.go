package gitops

import (
	"cmp"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// These are the kinds of Argo CD that are printed for sources.
var (
	AppProject  = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "AppProject"}
	Application = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}
)

// inCluster is Argo CD's name of the cluster that it runs in.
const inCluster = "https://kubernetes.default.svc"

// ArgoCD returns an AppProject for each tenant with sources, and an Application for each
// source, all in Argo CD's namespace. croft's operator does not write them: a writer of
// Applications there can make Argo CD apply anything.
func ArgoCD(e *estate.Estate, namespace string) []client.Object {
	var all []client.Object
	for _, t := range e.Tenants {
		if len(t.Sources) == 0 {
			continue
		}
		all = append(all, buildAppProject(t, namespace))
		for _, s := range t.Sources {
			all = append(all, buildApplication(t, s, namespace))
		}
	}
	return all
}

// buildAppProject limits a tenant's Applications, regardless of Git's content: it names the
// tenant's repositories and namespaces, and no cluster-scoped kinds. It has no
// sourceNamespaces, so that Applications outside of Argo CD's namespace cannot use it.
func buildAppProject(t *estate.Tenant, namespace string) *unstructured.Unstructured {
	var repositories, destinations, accounts []any
	for _, s := range t.Sources {
		if !slices.Contains(repositories, any(s.Git)) {
			repositories = append(repositories, s.Git)
		}
	}
	for _, ns := range t.Namespaces {
		destinations = append(destinations, map[string]any{"server": inCluster, "namespace": ns})
		// Without a service account for the destination, Argo CD refuses to sync.
		if hasSource(t, ns) {
			accounts = append(accounts, map[string]any{"server": inCluster, "namespace": ns, "defaultServiceAccount": Deployer})
		}
	}
	return buildArgoObject(AppProject, t, namespace, Name(t.Name), map[string]any{
		"description":                "Sources of tenant " + t.Name,
		"sourceRepos":                repositories,
		"destinations":               destinations,
		"clusterResourceWhitelist":   []any{},
		"destinationServiceAccounts": accounts,
	})
}

// buildApplication applies a source. As with Flux, objects removed from the source are deleted,
// and changes in the cluster are reverted. An Application's objects stay when it is
// deleted, since it has no finalizer.
func buildApplication(t *estate.Tenant, s estate.Source, namespace string) *unstructured.Unstructured {
	return buildArgoObject(Application, t, namespace, formatApplicationName(t, s), map[string]any{
		"project": Name(t.Name),
		"source": map[string]any{
			"repoURL":        s.Git,
			"targetRevision": cmp.Or(s.Tag, s.Branch),
			"path":           path.Clean(s.Path),
		},
		"destination": map[string]any{"server": inCluster, "namespace": s.Namespace},
		"syncPolicy": map[string]any{
			"automated":   map[string]any{"prune": true, "selfHeal": true},
			"syncOptions": []any{"CreateNamespace=false", "ServerSideApply=true", "FailOnSharedResource=true"},
			"retry": map[string]any{
				"limit":   int64(5),
				"backoff": map[string]any{"duration": "30s", "factor": int64(2), "maxDuration": "5m"},
			},
		},
	})
}

// formatApplicationName returns a name that is unique among all tenants' Applications: tenants'
// names contain no dots.
func formatApplicationName(t *estate.Tenant, s estate.Source) string {
	return Name(t.Name) + "." + s.Name
}

func buildArgoObject(
	kind schema.GroupVersionKind, t *estate.Tenant, namespace, name string, spec map[string]any,
) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.TenantLabel: t.Name})
	return o
}
