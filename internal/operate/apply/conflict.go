package apply

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"croft.dev/croft/api/v1alpha1"
)

// Conflict lists the fields of a live object that another field manager has set, and that
// an apply would change or remove.
type Conflict struct {
	Ref
	// Manager is the field manager's name. Helm's name includes the release.
	Manager string
	// Fields are sorted paths such as spec.quota. They are empty if the whole object would
	// be deleted.
	Fields []string
}

// String returns one line for people, such as "Tenant shop: spec.quota, set by
// kubectl-edit".
func (c Conflict) String() string {
	if len(c.Fields) == 0 {
		return fmt.Sprintf("%s, which %s manages", c.Ref, c.Manager)
	}
	return fmt.Sprintf("%s: %s, set by %s", c.Ref, strings.Join(c.Fields, ", "), c.Manager)
}

// FindConflicts returns the fields of a live object that applying the desired one would take
// from other field managers. Fields whose values stay are not among them. An object that
// Helm manages conflicts in every field that changes, because Helm applies the whole
// object. The desired object must have the defaults of its kind, because a defaulted field
// belongs to the manager that created the object.
func FindConflicts(live, desired client.Object) ([]Conflict, error) {
	before, err := makeTree(live)
	if err != nil {
		return nil, err
	}
	after, err := makeTree(desired)
	if err != nil {
		return nil, err
	}
	dropNulls(after)
	delete(after, "status")
	var all []Conflict
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == v1alpha1.ManagedBy || entry.Subresource != "" {
			continue
		}
		fields, err := parseFields(entry)
		if err != nil {
			return nil, err
		}
		paths := listOverwritten(fields, before, after)
		if ownsContent(entry, fields) && isHelm(entry) {
			paths = listChangedSpec(before, after)
		}
		if len(paths) > 0 {
			all = append(all, Conflict{RefOf(desired), describeManager(live, entry), paths})
		}
	}
	return all, nil
}

// listOverwritten returns the owned fields whose values an apply changes or removes. It
// excludes labels and annotations that are not desired, which stay.
func listOverwritten(owned *fieldpath.Set, before, after tree) []string {
	var paths []string
	owned.Leaves().Iterate(func(path fieldpath.Path) {
		have, exists := getField(before, path)
		want, desired := getField(after, path)
		if exists && !isRefined(have, want) && (desired || !free.Has(path[:1])) {
			paths = append(paths, strings.TrimPrefix(path.String(), "."))
		}
	})
	slices.Sort(paths)
	return slices.Compact(paths)
}

// isRefined reports whether a value stays, or whether an empty map gets its first entries,
// which removes nothing.
func isRefined(have, want any) bool {
	h, empty := have.(tree)
	_, filled := want.(tree)
	return reflect.DeepEqual(have, want) || empty && filled && len(h) == 0
}

// listChangedSpec returns the fields of the spec that differ.
func listChangedSpec(before, after tree) []string {
	b, _ := before["spec"].(tree)
	w, _ := after["spec"].(tree)
	var paths []string
	for _, spec := range []tree{b, w} {
		for name := range spec {
			if !reflect.DeepEqual(b[name], w[name]) {
				paths = append(paths, "spec."+name)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// IsHelmManaged reports whether Helm has set an object's content. Even an apply without a
// change would take the ownership from Helm, and make its next upgrade fail.
func IsHelmManaged(live client.Object) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		fields, err := parseFields(entry)
		return err == nil && isHelm(entry) && ownsContent(entry, fields)
	})
}

// FindDeletionConflict returns a conflict if Helm manages an object that is about to be
// deleted.
func FindDeletionConflict(live client.Object) (Conflict, bool) {
	if !IsHelmManaged(live) {
		return Conflict{}, false
	}
	return Conflict{RefOf(live), describeManager(live, metav1.ManagedFieldsEntry{Manager: "helm"}), nil}, true
}

// isHelm reports whether Helm, or a controller that runs it, such as helm-controller, wrote
// the fields.
func isHelm(entry metav1.ManagedFieldsEntry) bool { return strings.HasPrefix(entry.Manager, "helm") }

func ownsContent(entry metav1.ManagedFieldsEntry, fields *fieldpath.Set) bool {
	return entry.Subresource == "" && !fields.RecursiveDifference(free).Empty()
}

func describeManager(live client.Object, entry metav1.ManagedFieldsEntry) string {
	release := live.GetAnnotations()["meta.helm.sh/release-name"]
	if !isHelm(entry) || release == "" {
		return entry.Manager
	}
	return fmt.Sprintf("Helm (release %s in namespace %s)", release, live.GetAnnotations()["meta.helm.sh/release-namespace"])
}
