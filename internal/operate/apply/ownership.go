package apply

import (
	"bytes"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"croft.dev/croft/api/v1alpha1"
)

// free are the fields of croft's objects that every manager may set: metadata, where tools
// store annotations, and status. Only croft may set the other fields: an added rule opens a
// NetworkPolicy as much as a changed one.
var free = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("status"))

// freeInNamespaces adds spec, whose finalizers the API server sets.
var freeInNamespaces = free.Union(fieldpath.NewSet(fieldpath.MakePathOrDie("spec")))

// freeInNodePools adds the limit that HoldLaunches sets.
var freeInNodePools = free.Union(fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "limits", v1alpha1.HoldLimit)))

func getFreeFields(kind string) *fieldpath.Set {
	switch kind {
	case "Namespace":
		return freeInNamespaces
	case "NodePool":
		return freeInNodePools
	default:
		return free
	}
}

// ownership has the field managers of a live object.
type ownership struct {
	// ours are the fields of croft's last apply, or nil.
	ours *fieldpath.Set
	// foreign are the fields outside free that other managers have set.
	foreign *fieldpath.Set
	// intruders are the sorted names of these managers.
	intruders []string
}

func parseOwnership(kind string, entries []metav1.ManagedFieldsEntry) (ownership, error) {
	o := ownership{foreign: fieldpath.NewSet()}
	for _, entry := range entries {
		// Subresources have separate rights: controllers report the status, and autoscalers
		// set the scale.
		if entry.Subresource != "" {
			continue
		}
		fields, err := parseFields(entry)
		if err != nil {
			return ownership{}, err
		}
		if isOurs(entry) {
			o.ours = fields
			continue
		}
		if taken := fields.RecursiveDifference(getFreeFields(kind)); !taken.Empty() {
			o.foreign = o.foreign.Union(taken)
			o.intruders = append(o.intruders, entry.Manager)
		}
	}
	slices.Sort(o.intruders)
	o.intruders = slices.Compact(o.intruders)
	return o, nil
}

// hasAbandoned reports whether croft applied a field before that it no longer desires. The API
// server removes such a field at the next apply, and only then.
func (o ownership) hasAbandoned(want tree) bool {
	if o.ours == nil {
		return false
	}
	found := false
	// Not Set.All: its iterator panics when the loop ends early.
	o.ours.Iterate(func(path fieldpath.Path) { found = found || !hasField(want, path) && !notes.Has(path) })
	return found
}

// notes are the fields of croft's own bookkeeping. They may remain on an object that
// another tool now applies.
var notes = fieldpath.NewSet(
	fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AppliedAnnotation),
	fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.OwnerAnnotation),
)

// isOurs reports whether an entry is croft's apply. Other writes under croft's name came
// from another client, except for the creation of a namespace, which only sets metadata.
func isOurs(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == v1alpha1.ManagedBy && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// listRelabellers returns the managers that changed desired labels and annotations, which every
// manager may set. It ignores unreadable entries.
func listRelabellers(live client.Object, want tree) []string {
	changed := fieldpath.NewSet()
	metadata, _ := want["metadata"].(tree)
	for field, have := range map[string]map[string]string{"labels": live.GetLabels(), "annotations": live.GetAnnotations()} {
		values, _ := metadata[field].(tree)
		for key, value := range values {
			if have[key] != value {
				changed.Insert(fieldpath.MakePathOrDie("metadata", field, key))
			}
		}
	}
	var managers []string
	for _, entry := range live.GetManagedFields() {
		fields, err := parseFields(entry)
		if err == nil && !isOurs(entry) && !fields.Intersection(changed).Empty() {
			managers = append(managers, entry.Manager)
		}
	}
	return managers
}

// isMadeByCroft reports whether croft has written an object. The label alone is no proof,
// because any client can set it.
func isMadeByCroft(o client.Object) bool {
	return o.GetLabels()[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy &&
		slices.ContainsFunc(o.GetManagedFields(), isOurs)
}

// moveForeignFields moves the foreign fields into croft's entry, so that the next apply, which does
// not contain them, removes them. The owners of free fields do not change.
func moveForeignFields(kind, apiVersion string, entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	owned, err := parseOwnership(kind, entries)
	if err != nil {
		return nil, err
	}
	ours := metav1.ManagedFieldsEntry{
		Manager:    v1alpha1.ManagedBy,
		Operation:  metav1.ManagedFieldsOperationApply,
		APIVersion: apiVersion,
		FieldsType: "FieldsV1",
	}
	var others []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		switch {
		case isOurs(entry):
			ours = entry
			continue
		case entry.Subresource == "":
			fields, err := parseFields(entry)
			if err != nil {
				return nil, err
			}
			left := fields.Difference(owned.foreign)
			if left.Empty() {
				continue
			}
			if entry, err = setFields(entry, left); err != nil {
				return nil, err
			}
		}
		others = append(others, entry)
	}
	all := owned.foreign
	if owned.ours != nil {
		all = all.Union(owned.ours)
	}
	if ours, err = setFields(ours, all); err != nil {
		return nil, err
	}
	return append([]metav1.ManagedFieldsEntry{ours}, others...), nil
}

func parseFields(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	fields := fieldpath.NewSet()
	if entry.FieldsV1 == nil {
		return fields, nil
	}
	if err := fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return nil, fmt.Errorf("fields of manager %s: %w", entry.Manager, err)
	}
	return fields, nil
}

func setFields(entry metav1.ManagedFieldsEntry, fields *fieldpath.Set) (metav1.ManagedFieldsEntry, error) {
	raw, err := fields.ToJSON()
	if err != nil {
		return entry, fmt.Errorf("fields of manager %s: %w", entry.Manager, err)
	}
	entry.FieldsV1 = &metav1.FieldsV1{}
	entry.FieldsV1.SetRawBytes(raw)
	return entry, nil
}
