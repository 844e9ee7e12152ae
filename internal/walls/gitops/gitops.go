// Package gitops creates the objects with which Flux or Argo CD applies a tenant's sources:
// as the tenant's own service account, in the tenant's own namespaces.
package gitops

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// Deployer is the service account with which a tenant's sources are applied.
const Deployer = "croft-deployer"

// These are the kinds of Flux that are written for sources.
var (
	GitRepository = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}
	OCIRepository = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "OCIRepository"}
	Kustomization = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
	Receiver      = schema.GroupVersionKind{Group: "notification.toolkit.fluxcd.io", Version: "v1", Kind: "Receiver"}
)

const (
	// driftInterval is the interval at which Flux compares its objects with the cluster. A
	// new revision is applied as soon as the source has it.
	driftInterval = "10m"
	// retryInterval is the time that Flux waits after a failure.
	retryInterval = "1m"
)

// Objects returns the objects that croft's operator writes for a tenant's sources: the
// service account, and with Flux its objects. operator is the name of the ClusterRole of
// the tenant's role operator.
func Objects(p *estate.Platform, t *estate.Tenant, operator string) []client.Object {
	if len(t.Sources) == 0 {
		return nil
	}
	all := buildAccount(t, operator)
	if p.GitOps == v1alpha1.GitOpsArgoCD {
		return all
	}
	for _, s := range t.Sources {
		source := buildRepository(s)
		all = append(all, source, buildKustomization(s, source))
		if s.Webhook != nil {
			all = append(all, buildReceiver(s, source))
		}
	}
	return all
}

// Kinds returns the kinds of Flux that a tenant's sources need.
func Kinds(p *estate.Platform, t *estate.Tenant) []schema.GroupVersionKind {
	if p.GitOps == v1alpha1.GitOpsArgoCD {
		return nil
	}
	var all []schema.GroupVersionKind
	need := func(kind schema.GroupVersionKind) {
		if !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	for _, s := range t.Sources {
		if s.Git != "" {
			need(GitRepository)
		} else {
			need(OCIRepository)
		}
		need(Kustomization)
		if s.Webhook != nil {
			need(Receiver)
		}
	}
	return all
}

// buildAccount returns the service account in each namespace with a source, and the RoleBindings
// that grant it the role operator in all of the tenant's namespaces.
func buildAccount(t *estate.Tenant, operator string) []client.Object {
	var accounts, bindings []client.Object
	var subjects []rbacv1.Subject
	for _, namespace := range t.Namespaces {
		if !hasSource(t, namespace) {
			continue
		}
		accounts = append(accounts, &corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Deployer},
			// Flux and Argo CD impersonate the account, and no pod should run with it.
			AutomountServiceAccountToken: ptr.To(false),
		})
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: Deployer})
	}
	for _, namespace := range t.Namespaces {
		bindings = append(bindings, &rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Deployer},
			Subjects:   subjects,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: operator},
		})
	}
	return append(accounts, bindings...)
}

func hasSource(t *estate.Tenant, namespace string) bool {
	return slices.ContainsFunc(t.Sources, func(s estate.Source) bool { return s.Namespace == namespace })
}

func buildRepository(s estate.Source) *unstructured.Unstructured {
	spec := map[string]any{"interval": string(s.Interval)}
	kind := GitRepository
	if s.Git != "" {
		spec["url"] = s.Git
		if s.Tag != "" {
			spec["ref"] = map[string]any{"tag": s.Tag}
		} else {
			spec["ref"] = map[string]any{"branch": s.Branch}
		}
	} else {
		kind = OCIRepository
		spec["url"], spec["ref"] = s.OCI, map[string]any{"tag": s.Tag}
	}
	if s.SecretRef != nil {
		spec["secretRef"] = map[string]any{"name": s.SecretRef.Name}
	}
	return buildObject(kind, s, spec)
}

// buildKustomization applies a source. It deletes objects that are removed from the source. It
// deletes none when it is itself deleted, since croft does not delete tenants' workloads.
func buildKustomization(s estate.Source, source *unstructured.Unstructured) *unstructured.Unstructured {
	return buildObject(Kustomization, s, map[string]any{
		"serviceAccountName": Deployer,
		"sourceRef":          buildSourceRef(source),
		"path":               s.Path,
		"targetNamespace":    s.Namespace,
		"prune":              true,
		"deletionPolicy":     "Orphan",
		"wait":               true,
		"interval":           driftInterval,
		"retryInterval":      retryInterval,
		"timeout":            string(s.Timeout),
	})
}

func buildReceiver(s estate.Source, source *unstructured.Unstructured) *unstructured.Unstructured {
	return buildObject(Receiver, s, map[string]any{
		"type":      s.Webhook.Type,
		"secretRef": map[string]any{"name": s.Webhook.SecretRef.Name},
		"resources": []any{buildSourceRef(source)},
	})
}

// buildSourceRef returns a reference to a source in the same namespace.
func buildSourceRef(source *unstructured.Unstructured) map[string]any {
	return map[string]any{"kind": source.GetKind(), "name": source.GetName()}
}

func buildObject(kind schema.GroupVersionKind, s estate.Source, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(s.Namespace)
	o.SetName(Name(s.Name))
	return o
}

// Name returns the name of Flux's objects for a source.
func Name(source string) string { return "croft-" + source }
