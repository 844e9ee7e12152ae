package apply

import (
	"fmt"
	"slices"

	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NoEngine is the message if no engine can place pods. NoEngineFix is the remedy in it.
const (
	NoEngine    = "this API server does not serve MutatingAdmissionPolicy, which places pods: " + NoEngineFix
	NoEngineFix = "use Kubernetes 1.36; or 1.34 or 1.35 with " +
		"--feature-gates=MutatingAdmissionPolicy=true and --runtime-config=admissionregistration.k8s.io/v1beta1=true; " +
		"or install Gatekeeper, and set platform.placement to Gatekeeper"
)

// ServedKind returns a kind in the version that the cluster serves. Kubernetes 1.34 and
// 1.35 serve the NativePlatformKinds as v1beta1, with the same fields, if the feature gate
// MutatingAdmissionPolicy and that version are enabled (KEP-3962). Kinds that the cluster
// does not serve are returned unchanged.
func ServedKind(m meta.RESTMapper, kind schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	if !slices.Contains(NativePlatformKinds, kind) {
		return kind, nil
	}
	for _, version := range []string{kind.Version, admissionv1beta1.SchemeGroupVersion.Version} {
		_, err := m.RESTMapping(kind.GroupKind(), version)
		if err == nil {
			return kind.GroupKind().WithVersion(version), nil
		}
		if !meta.IsNoMatchError(err) {
			return kind, fmt.Errorf("look up %s: %w", kind.Kind, err)
		}
	}
	return kind, nil
}

// ServesNative reports whether the API server can be the placement engine: whether it
// serves all NativePlatformKinds.
func ServesNative(m meta.RESTMapper) (bool, error) {
	for _, kind := range NativePlatformKinds {
		served, err := ServedKind(m, kind)
		if err != nil {
			return false, err
		}
		if _, err := m.RESTMapping(served.GroupKind(), served.Version); err != nil {
			return false, ignoreNoMatch(err)
		}
	}
	return true, nil
}

func ignoreNoMatch(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// convertToServed returns objects in the version that the cluster serves.
func (a *Applier) convertToServed(objects []client.Object) ([]client.Object, error) {
	all := make([]client.Object, len(objects))
	for i, o := range objects {
		kind := o.GetObjectKind().GroupVersionKind()
		served, err := ServedKind(a.client.RESTMapper(), kind)
		if err != nil {
			return nil, err
		}
		if all[i] = o; served == kind {
			continue
		}
		if all[i], err = a.convertObject(o, served); err != nil {
			return nil, &ObjectError{Ref: RefOf(o), Err: err}
		}
	}
	return all, nil
}

// convertObject converts an object to a kind with the same fields.
func (a *Applier) convertObject(o client.Object, kind schema.GroupVersionKind) (client.Object, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	made, err := a.client.Scheme().New(kind)
	if err != nil {
		return nil, err
	}
	typed, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", made)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, typed); err != nil {
		return nil, err
	}
	typed.GetObjectKind().SetGroupVersionKind(kind)
	return typed, nil
}
