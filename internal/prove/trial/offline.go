package trial

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/evaluator"
	"croft.dev/croft/internal/walls/wall"
)

// offline evaluates objects with an estate, without a cluster.
type offline struct {
	evaluator *evaluator.Evaluator
	estate    *estate.Estate
	tenant    *estate.Tenant
	// class is the storage class that a claim without one gets.
	class string
	// declining are the service accounts whose pods get no token without a request, as namespace/name.
	declining map[string]bool
}

func newOffline(e *estate.Estate, tenant *estate.Tenant, class string) (backend, error) {
	created, err := evaluator.NewLazy(wall.Objects(e))
	if err != nil {
		return nil, err
	}
	return &offline{evaluator: created, estate: e, tenant: tenant, class: cmp.Or(class, findStorageClass(tenant))}, nil
}

// findStorageClass returns a storage class that a tenant may use, since the cluster's default is
// unknown.
func findStorageClass(tenant *estate.Tenant) string {
	for _, class := range tenant.Allowances.StorageClasses {
		if class != "*" && class != "" {
			return class
		}
	}
	return "default"
}

func (j *offline) create(ctx context.Context, object *unstructured.Unstructured, requester user.Info, controller bool) (evaluator.Answer, error) {
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		j.setStorageClass(object)
	case schema.GroupKind{Kind: "Pod"}:
		j.declineToken(object)
	}
	return j.evaluator.Evaluate(ctx, evaluator.Request{
		User: requester, Verb: "create", Resource: evaluator.FindResource(object.GroupVersionKind()),
		Namespace: object.GetNamespace(), Name: object.GetName(), Object: object, Authorized: controller,
	})
}

func (*offline) explainRBAC(kind schema.GroupVersionKind, d evaluator.Denial) string {
	switch {
	case d.DeniedBy != rbac || scheme.Scheme.Recognizes(kind):
		return ""
	case scheme.Scheme.IsGroupRegistered(kind.Group):
		return fmt.Sprintf(": there is no kind %s in %s: correct apiVersion or kind", kind.Kind, kind.GroupVersion())
	default:
		return ": tenants may write kinds of add-ons that platform.addons names"
	}
}

// explainUnschedulable compares the pod with the pool on which it is placed.
func (j *offline) explainUnschedulable(object *unstructured.Unstructured) string {
	var pod corev1.Pod
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod) != nil {
		return ""
	}
	key := j.estate.Platform.NodePoolKey
	pool := j.estate.FindPool(cmp.Or(pod.Spec.NodeSelector[key], j.tenant.Pools[0]))
	if pool == nil {
		return "" // a rule refuses other pools
	}
	return pool.ExplainUnschedulable(key, &pod.Spec)
}

// setStorageClass sets the default class in a claim without a class, as the API server's plugin
// DefaultStorageClass does.
func (j *offline) setStorageClass(claim *unstructured.Unstructured) {
	if _, beta := claim.GetAnnotations()[corev1.BetaStorageClassAnnotation]; beta {
		return
	}
	if _, named, _ := unstructured.NestedFieldNoCopy(claim.Object, "spec", "storageClassName"); !named {
		_ = unstructured.SetNestedField(claim.Object, j.class, "spec", "storageClassName")
	}
}

// declineToken declines the token in a pod whose service account does. The evaluator does not read service
// accounts.
func (j *offline) declineToken(pod *unstructured.Unstructured) {
	const field = "automountServiceAccountToken"
	account, _, _ := unstructured.NestedString(pod.Object, "spec", "serviceAccountName")
	_, decides, _ := unstructured.NestedFieldNoCopy(pod.Object, "spec", field)
	if !decides && j.declining[pod.GetNamespace()+"/"+cmp.Or(account, "default")] {
		_ = unstructured.SetNestedField(pod.Object, false, "spec", field)
	}
}

// with applies Roles and their bindings, and the settings of service accounts, to the evaluation of the next
// objects.
func (j *offline) with(object *unstructured.Unstructured) (backend, error) {
	next := *j
	if object.GroupVersionKind().GroupKind() == serviceAccount {
		token, found, _ := unstructured.NestedBool(object.Object, "automountServiceAccountToken")
		next.declining = map[string]bool{}
		maps.Copy(next.declining, j.declining)
		next.declining[object.GetNamespace()+"/"+object.GetName()] = found && !token
		return &next, nil
	}
	o, err := scheme.Scheme.New(object.GroupVersionKind())
	if err != nil {
		return j, nil //nolint:nilerr // of a version that this croft does not know: judged, and not learnt from
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, o); err != nil {
		return nil, err
	}
	granted, ok := o.(client.Object)
	if !ok {
		return j, nil
	}
	next.evaluator, err = j.evaluator.With(granted)
	return &next, err
}

func (*offline) clusterWide(kind schema.GroupVersionKind) bool { return clusterWide[kind.GroupKind()] }

// clusterWide are cluster-scoped kinds that teams try to create.
var clusterWide = map[schema.GroupKind]bool{
	{Kind: "Namespace"}: true, {Kind: "Node"}: true, {Kind: "PersistentVolume"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: true, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}: true, {Group: "scheduling.k8s.io", Kind: "PriorityClass"}: true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true, {Group: "networking.k8s.io", Kind: "IngressClass"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   true,
}

func (j *offline) unknown(manifests []Manifest) []string {
	all := []string{
		"the current usage of the quota, and so whether all objects fit into it",
		"refusals by the API server's own validation, and by other policies and webhooks",
	}
	if j.tenant.Allowances.ServiceAccountToken == "OnRequest" {
		all = append(all, "whether existing service accounts decline their token: pods without automountServiceAccountToken are refused")
	}
	kinds := map[string]bool{}
	for _, m := range manifests {
		if kind := m.Object.GroupVersionKind(); !scheme.Scheme.Recognizes(kind) {
			kinds[kind.GroupKind().String()] = true
		}
	}
	if len(kinds) > 0 {
		all = append(all, fmt.Sprintf("whether the cluster serves these kinds, and the rules of their add-ons: %s", strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")))
	}
	return all
}
