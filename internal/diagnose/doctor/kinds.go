package doctor

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/walls/wall"
)

// checkDefinitions reports kinds that are missing, or older than croft's objects.
func checkDefinitions(s *Snapshot) []Finding {
	if len(s.Definitions) == 0 {
		if _, unread := s.Unreadable[readDefinitions]; unread {
			return nil
		}
	}
	all := findOutdatedKinds(s)
	reported := map[string]bool{}
	objects := listWrittenObjects(s)
	for _, o := range objects {
		for _, f := range findUnknownFields(s, o) {
			if !reported[f.Object+f.Message] {
				reported[f.Object+f.Message] = true
				all = append(all, f)
			}
		}
	}
	if !s.servesKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}) && len(objects) == 0 {
		all = append(all, newMissingKind("NodePool", "karpenter.sh/v1", "install Karpenter 1.0 or later, with its CustomResourceDefinitions"))
	}
	return all
}

func newMissingKind(kind, version, fix string) Finding {
	f := newFinding("old-crds", Problem, "", fmt.Sprintf("the API server does not serve %s %s", version, kind))
	f.Fix = fix
	return f
}

// findOutdatedKinds compares croft's CRDs in the cluster with this version's.
func findOutdatedKinds(s *Snapshot) []Finding {
	var all []Finding
	for _, want := range s.OwnDefinitions {
		installed := s.Definitions[want.Name]
		if installed == nil {
			all = append(all, newMissingKind(want.Spec.Names.Kind, want.Spec.Group+"/"+want.Spec.Versions[0].Name, s.describeKindsFix()))
			continue
		}
		if installed.DeletionTimestamp != nil {
			all = append(all, Finding{
				Severity: Problem, Object: "CustomResourceDefinition/" + want.Name, Message: "it is being deleted, and all objects of its kind with it",
				Fix: "when it is deleted, `croft install` creates it again; then apply the file of the platform again: `croft apply -f FILE`",
			})
			continue
		}
		for _, version := range want.Spec.Versions {
			live := findVersion(installed, version.Name)
			if live == nil {
				all = append(all, newMissingKind(want.Spec.Names.Kind, want.Spec.Group+"/"+version.Name, s.describeKindsFix()))
				continue
			}
			if lacks := findMissingFields(version.Schema.OpenAPIV3Schema, live.Schema.OpenAPIV3Schema, ""); len(lacks) > 0 {
				all = append(all, newOldDefinition(want.Name, lacks))
			}
		}
	}
	return all
}

// describeKindsFix returns the command that writes croft's definitions. Without an operator
// another tool applies them.
func (s *Snapshot) describeKindsFix() string {
	if s.Rendered {
		return "`croft install --export | kubectl apply --server-side -f -`"
	}
	return "`croft install`"
}

func newOldDefinition(name string, fields []string) Finding {
	return newFinding("old-crds", Problem, "CustomResourceDefinition/"+name, "lacks "+formatSome(fields))
}

// many is the maximum number of names in a message.
const many = 4

func formatSome(names []string) string { return wording.FormatFirst(names, many) }

func findVersion(d *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	i := slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name && v.Served })
	if i < 0 {
		return nil
	}
	return &d.Spec.Versions[i]
}

// findMissingFields returns the fields of one schema that the other lacks.
func findMissingFields(want, installed *apiextensionsv1.JSONSchemaProps, path string) []string {
	if want == nil || acceptsAnyField(installed) {
		return nil
	}
	var all []string
	for _, name := range sortKeys(want.Properties) {
		property := want.Properties[name]
		live, ok := installed.Properties[name]
		if !ok {
			all = append(all, joinPath(path, name))
			continue
		}
		all = append(all, findMissingFields(&property, &live, joinPath(path, name))...)
	}
	if want.Items != nil && installed.Items != nil {
		all = append(all, findMissingFields(want.Items.Schema, installed.Items.Schema, path+"[]")...)
	}
	return all
}

// acceptsAnyField reports whether a schema accepts any field.
func acceptsAnyField(s *apiextensionsv1.JSONSchemaProps) bool {
	return s == nil || s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields || s.AdditionalProperties != nil || len(s.Properties) == 0 && s.Items == nil
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// listWrittenObjects returns the objects of other projects' kinds that croft writes.
func listWrittenObjects(s *Snapshot) []client.Object {
	if s.Estate == nil {
		return nil
	}
	var all []client.Object
	for _, pool := range s.Estate.Pools {
		all = append(all, wall.PoolObjects(&s.Estate.Platform, pool)...)
	}
	return all
}

// findUnknownFields reports the fields of an object that its definition lacks: the API server refuses
// or drops them.
func findUnknownFields(s *Snapshot, o client.Object) []Finding {
	gvk := o.GetObjectKind().GroupVersionKind()
	for name, d := range s.Definitions {
		if d.Spec.Group != gvk.Group || d.Spec.Names.Kind != gvk.Kind {
			continue
		}
		live := findVersion(d, gvk.Version)
		if live == nil {
			break
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil || live.Schema == nil {
			return nil
		}
		spec := live.Schema.OpenAPIV3Schema.Properties["spec"]
		if fields := listUnknownFields(content["spec"], &spec, "spec"); len(fields) > 0 {
			return []Finding{newOldDefinition(name, fields)}
		}
		return nil
	}
	return []Finding{newMissingKind(gvk.Kind, gvk.GroupVersion().String(), "install the Karpenter provider that has this kind, in a version that serves it, with its CustomResourceDefinitions")}
}

// listUnknownFields returns the fields of a value that a schema lacks.
func listUnknownFields(value any, installed *apiextensionsv1.JSONSchemaProps, path string) []string {
	if acceptsAnyField(installed) {
		return nil
	}
	var all []string
	switch value := value.(type) {
	case map[string]any:
		for _, name := range sortKeys(value) {
			property, ok := installed.Properties[name]
			if !ok {
				all = append(all, joinPath(path, name))
				continue
			}
			all = append(all, listUnknownFields(value[name], &property, joinPath(path, name))...)
		}
	case []any:
		if installed.Items == nil {
			return nil
		}
		for _, entry := range value {
			for _, field := range listUnknownFields(entry, installed.Items.Schema, path+"[]") {
				if !slices.Contains(all, field) {
					all = append(all, field)
				}
			}
		}
	}
	return all
}

func sortKeys[M ~map[K]V, K ~string, V any](m M) []K { return slices.Sorted(maps.Keys(m)) }

// sortUnique sorts names and removes duplicates.
func sortUnique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
