package manifest

import (
	"fmt"

	"croft.dev/croft/internal/declare/document"
)

// loadObjects replaces the paths of files in the objects of a Tenant or of the Platform's
// tenantDefaults by the manifests in these files. The check of the object reports errors of the list
// itself.
func (r *reader) loadObjects(kind string, spec any) []issue {
	around, at := getMap(spec, "tenantDefaults"), "spec.tenantDefaults.objects"
	if kind == KindTenant {
		around, _ = spec.(map[string]any)
		at = "spec.objects"
	}
	items, ok := around["objects"].([]any)
	if !ok {
		return nil
	}
	var all []any
	var issues []issue
	for i, item := range items {
		path, ok := item.(string)
		if !ok {
			all = append(all, item)
			continue
		}
		manifests, problem := r.readManifests(path)
		if problem != "" {
			issues = append(issues, issue{fmt.Sprintf("%s[%d]", at, i), problem})
		}
		all = append(all, manifests...)
	}
	around["objects"] = all
	return issues
}

// readManifests returns the manifests in a file, or a problem.
func (r *reader) readManifests(path string) ([]any, string) {
	switch {
	case path == "":
		return nil, "must be a manifest, or the path of a file with manifests, relative to this one"
	case r.open == nil:
		return nil, "files can only be read if croft.yaml is a file; write the manifest itself instead of its path"
	}
	text, err := r.open(path)
	if err != nil {
		return nil, err.Error()
	}
	documents, problems := document.Read(path, text)
	switch {
	case len(problems) > 0:
		return nil, problems[0].Error()
	case len(documents) == 0:
		return nil, path + " contains no manifest; write one, or remove the path"
	}
	all := make([]any, len(documents))
	for i := range documents {
		all[i] = documents[i].Content
	}
	return all, ""
}
