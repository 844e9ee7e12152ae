package apply

import (
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"croft.dev/croft/api/v1alpha1"
)

// tree is an object as plain JSON values.
type tree = map[string]any

// makeTree converts an object by way of JSON. Apimachinery's converter is faster, but ignores
// custom marshalling: it would convert Karpenter's durations to bytes.
func makeTree(o client.Object) (tree, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	t := tree{}
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	return t, nil
}

// buildPatch converts a wall's object to the patch for the API server. It omits status, nulls
// and metadata that only the API server sets, so that croft owns only fields that it sets.
func buildPatch(o client.Object) (tree, error) {
	t, err := makeTree(o)
	if err != nil {
		return nil, err
	}
	gvk := o.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		return nil, fmt.Errorf("%T has no TypeMeta", o)
	}
	t["apiVersion"], t["kind"] = gvk.ToAPIVersionAndKind()
	delete(t, "status")
	if metadata, ok := t["metadata"].(tree); ok {
		kept := tree{}
		for _, field := range []string{"name", "namespace", "labels", "annotations"} {
			if v, ok := metadata[field]; ok {
				kept[field] = v
			}
		}
		t["metadata"] = kept
	}
	dropNulls(t)
	if tenant := o.GetLabels()[v1alpha1.TenantLabel]; gvk.Kind == "Namespace" && tenant != "" {
		annotateTree(t, v1alpha1.OwnerAnnotation, tenant)
	}
	return t, signTree(t)
}

func dropNulls(v any) {
	switch v := v.(type) {
	case tree:
		for k, child := range v {
			if child == nil {
				delete(v, k)
				continue
			}
			dropNulls(child)
		}
	case []any:
		for _, child := range v {
			dropNulls(child)
		}
	}
}

// isSettled reports whether a live object already has all desired fields, and none that croft
// applied before and no longer desires. It ignores free fields, and other managers' labels
// and annotations. Ownership covers other additions.
func isSettled(live client.Object, want tree) (bool, error) {
	t, err := makeTree(live)
	if err != nil {
		return false, err
	}
	dropNulls(t)
	return isMetadataSettled(t, want) && isContentSettled(t, want), nil
}

// isMetadataSettled ignores the signature, which isContentSettled compares where necessary.
func isMetadataSettled(live, want tree) bool {
	metadata, _ := want["metadata"].(tree)
	annotations, signed := metadata["annotations"].(tree)
	if signed {
		annotations = maps.Clone(annotations)
		delete(annotations, v1alpha1.AppliedAnnotation)
		metadata = maps.Clone(metadata)
		metadata["annotations"] = annotations
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	return containsValues(live["metadata"], metadata)
}

// isContentSettled accepts a live object's extra fields only if they existed, or were set by
// a default, when croft last applied the same content.
func isContentSettled(live, want tree) bool {
	kind, _ := want["kind"].(string)
	exceeds := false
	for field, v := range getContent(live) {
		desired, ok := want[field]
		exceeds = exceeds || (!ok || !containsValues(desired, v)) && !getFreeFields(kind).Has(fieldpath.MakePathOrDie(field))
	}
	for field, v := range getContent(want) {
		if !containsValues(live[field], v) {
			return false
		}
	}
	signed := getSignature(want) // "" if another tool than croft applies it
	return !exceeds || signed == "" || getSignature(live) == signed
}

// containsValues reports whether have contains all values of want. Lists must have the same length,
// because another element changes their meaning. Maps may have more keys, because the API
// server adds defaults.
func containsValues(have, want any) bool {
	switch want := want.(type) {
	case tree:
		have, ok := have.(tree)
		if !ok {
			return false
		}
		for k, v := range want {
			h, ok := have[k]
			if !ok || !containsValues(h, v) {
				return false
			}
		}
		return true
	case []any:
		have, ok := have.([]any)
		if !ok || len(have) != len(want) {
			return false
		}
		for i := range want {
			if !containsValues(have[i], want[i]) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(have, want)
	}
}

// hasField reports whether a tree has the field at path.
func hasField(t tree, path fieldpath.Path) bool {
	_, ok := getField(t, path)
	return ok
}

// getField returns the field at path.
func getField(t tree, path fieldpath.Path) (any, bool) {
	var at any = t
	for _, step := range path {
		next, ok := descendPath(at, step)
		if !ok {
			return nil, false
		}
		at = next
	}
	return at, true
}

// descendPath follows one step of a path: into a field, or into an element of a list that is
// identified by its keys, its value or its index.
func descendPath(at any, step fieldpath.PathElement) (any, bool) {
	if step.FieldName != nil {
		fields, _ := at.(tree)
		v, ok := fields[*step.FieldName]
		return v, ok
	}
	list, _ := at.([]any)
	if i := findElement(list, step); i >= 0 {
		return list[i], true
	}
	return nil, false
}

// findElement returns the index of the element that a step leads to, or -1. A key that is
// missing in an element matches, because the API server has added it.
func findElement(list []any, step fieldpath.PathElement) int {
	for i, element := range list {
		switch {
		case step.Index != nil:
			if i == *step.Index {
				return i
			}
		case step.Value != nil:
			if value.Equals(value.NewValueInterface(element), *step.Value) {
				return i
			}
		case step.Key != nil:
			fields, ok := element.(tree)
			if ok && hasKeys(fields, *step.Key) {
				return i
			}
		}
	}
	return -1
}

func hasKeys(fields tree, keys value.FieldList) bool {
	for _, key := range keys {
		if v, ok := fields[key.Name]; ok && !value.Equals(value.NewValueInterface(v), key.Value) {
			return false
		}
	}
	return true
}

// wrapTree wraps a tree for the client. It shares the tree, which the client overwrites with
// the API server's response. Pass a copy.
func wrapTree(t tree) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: t}
}
