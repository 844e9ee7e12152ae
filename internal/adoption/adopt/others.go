package adopt

import (
	"context"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/policy"
)

// tryOthers writes a copy of every object that a rule applies to into the scratch namespace, as
// a dry run.
func (a *Adoption) tryOthers(ctx context.Context, s scratch) ([]Refusal, error) {
	var all []Refusal
	for _, kind := range a.listRuledKinds() {
		for _, namespace := range a.tenant.Namespaces {
			objects, err := listObjects(ctx, a.client, kind, client.InNamespace(namespace))
			if err != nil {
				return nil, err
			}
			for i := range objects {
				o := &objects[i]
				if hasController(o) || o.GetLabels()[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy {
					continue
				}
				err := a.client.Create(ctx, sanitizeObject(o, s.Name), client.DryRunAll)
				if apierrors.IsForbidden(err) && strings.Contains(err.Error(), " denied ") {
					all = append(all, Refusal{apply.RefOf(o).String(), a.replaceScratchName(extractMessage(err), s.Name)})
				}
			}
		}
	}
	return all, nil
}

// listObjects returns the objects of a kind, or none if the cluster does not serve it or the caller
// may not list it.
func listObjects(ctx context.Context, c client.Reader, kind schema.GroupVersionKind, opts ...client.ListOption) ([]unstructured.Unstructured, error) {
	var found unstructured.UnstructuredList
	found.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := c.List(ctx, &found, opts...)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil, nil
	}
	return found.Items, err
}

// listRuledKinds returns the kinds that croft's policies match on create, from the policies'
// matchConstraints. Pods are tried by their controllers' templates.
func (a *Adoption) listRuledKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, o := range wall.PlatformObjects(&a.estate.Platform) {
		policy, ok := o.(*admissionv1.ValidatingAdmissionPolicy)
		if !ok {
			continue
		}
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			if !slices.Contains(rule.Operations, admissionv1.Create) {
				continue
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					if kind, ok := a.findKind(group, resource); ok && !slices.Contains(kinds, kind) {
						kinds = append(kinds, kind)
					}
				}
			}
		}
	}
	return kinds
}

func (a *Adoption) findKind(group, resource string) (schema.GroupVersionKind, bool) {
	if strings.ContainsAny(resource, "*/") || slices.Contains([]string{"pods", "bindings", "namespaces"}, resource) {
		return schema.GroupVersionKind{}, false
	}
	mapper := a.client.RESTMapper()
	kind, err := mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: resource})
	if err != nil {
		return kind, false // the cluster does not serve it
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return kind, err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// sanitizeObject returns an object as an author would write it, without the fields that the cluster
// set.
func sanitizeObject(o *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	clean := stripServerFields(o)
	clean.SetNamespace(namespace)
	switch o.GetKind() {
	case "Service":
		for _, given := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies", "ipFamilyPolicy"} {
			if given != "clusterIP" || getString(o, "spec", "clusterIP") != corev1.ClusterIPNone {
				unstructured.RemoveNestedField(clean.Object, "spec", given)
			}
		}
		ports, _, _ := unstructured.NestedSlice(clean.Object, "spec", "ports")
		for _, port := range ports {
			if port, ok := port.(map[string]any); ok {
				delete(port, "nodePort")
			}
		}
		if len(ports) > 0 {
			_ = unstructured.SetNestedSlice(clean.Object, ports, "spec", "ports")
		}
	case "PersistentVolumeClaim":
		if o.GetAnnotations()["pv.kubernetes.io/bind-completed"] != "" {
			unstructured.RemoveNestedField(clean.Object, "spec", "volumeName")
			annotations := clean.GetAnnotations()
			maps.DeleteFunc(annotations, func(key, _ string) bool { return slices.Contains(policy.BindingAnnotations, key) })
			if len(annotations) == 0 {
				annotations = nil
			}
			clean.SetAnnotations(annotations)
		}
	}
	return clean
}

// stripServerFields returns an object without fields that only a server can set, so that it can be applied
// again.
func stripServerFields(o *unstructured.Unstructured) *unstructured.Unstructured {
	clean := o.DeepCopy()
	delete(clean.Object, "status")
	metadata := map[string]any{"name": o.GetName()}
	if o.GetNamespace() != "" {
		metadata["namespace"] = o.GetNamespace()
	}
	for _, field := range []string{"labels", "annotations", "finalizers"} {
		if value, ok, _ := unstructured.NestedFieldCopy(o.Object, "metadata", field); ok {
			metadata[field] = value
		}
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	clean.Object["metadata"] = metadata
	return clean
}

func getString(o *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}
