package draft

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// File is croft.yaml in its compact form.
type File struct {
	Platform          v1alpha1.PlatformSpec                    `json:"platform"`
	Pools             map[string]v1alpha1.PoolSpec             `json:"pools,omitempty"`
	Tenants           map[string]v1alpha1.TenantSpec           `json:"tenants,omitempty"`
	SecondaryNetworks map[string]v1alpha1.SecondaryNetworkSpec `json:"secondaryNetworks,omitempty"`

	// aside are the pools, tenants and fields that are left out, with the reason.
	aside []string
}

// header is the beginning of the written file.
const header = "# Written by croft migrate. Its report lists the result for every field of the input.\n"

// YAML returns the file as YAML. Omitted parts are listed at its top.
func (f *File) YAML() ([]byte, error) {
	content, err := f.buildContent()
	if err != nil {
		return nil, err
	}
	body, err := yaml.Marshal(content)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(header)
	for _, line := range f.aside {
		b.WriteString("# " + strings.ReplaceAll(line, "\n", " ") + "\n")
	}
	b.Write(body)
	return []byte(b.String()), nil
}

// buildContent returns the file without empty members.
func (f *File) buildContent() (map[string]any, error) {
	data, err := yaml.Marshal(f)
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	if err := yaml.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	platform := getMap(content, "platform")
	dropEmpty(getMap(platform, "tenantDefaults"), "policy")
	dropEmpty(platform, "network", "tenantDefaults")
	if class := getMap(platform, "nodeClass"); len(class) == 0 {
		delete(platform, "nodeClass")
	}
	if platform["clusterName"] == "" {
		delete(platform, "clusterName")
	}
	for _, p := range getMap(content, "pools") {
		if pool, ok := p.(map[string]any); ok {
			dropEmpty(pool, "instances")
		}
	}
	for _, t := range getMap(content, "tenants") {
		if tenant, ok := t.(map[string]any); ok {
			dropEmpty(tenant, "network", "policy")
		}
	}
	return content, nil
}

func getMap(content map[string]any, key string) map[string]any {
	inner, _ := content[key].(map[string]any)
	return inner
}

func dropEmpty(content map[string]any, keys ...string) {
	for _, key := range keys {
		if inner, ok := content[key].(map[string]any); ok && len(inner) == 0 {
			delete(content, key)
		}
	}
}

// Declaration parses the file as croft does.
func (f *File) Declaration() (*manifest.Declaration, document.Problems) {
	data, err := f.YAML()
	if err != nil {
		return &manifest.Declaration{}, document.Problems{{File: "croft.yaml", Message: err.Error()}}
	}
	return manifest.Parse("croft.yaml", data)
}

// Problems returns the problems that croft check reports for the file.
func (f *File) Problems() document.Problems {
	d, problems := f.Declaration()
	_, more := estate.Build(d)
	return append(problems, more...)
}

// DropRefused omits objects that croft check would refuse, until only problems of the platform
// remain. It returns the problems that were not reported before.
func (f *File) DropRefused(reported map[string]bool) document.Problems {
	var problems document.Problems
	for {
		var refused document.Problems
		progress := false
		for _, p := range f.Problems() {
			if f.omitObject(p) {
				progress = true
				if p.Kind != "Tenant" || !reported[p.Name] {
					problems = append(problems, relocateProblem(p))
				}
			} else if !reported[p.Path] {
				refused = append(refused, relocateProblem(p))
			}
		}
		if !progress {
			return append(problems, refused...)
		}
	}
}

// relocateProblem removes the file and the line of a problem, since the file is not written yet, and adds
// croft.yaml to its path.
func relocateProblem(p document.Problem) document.Problem {
	p.File, p.Line = "", 0
	p.Path = "croft.yaml: " + p.Path
	return p
}

func (f *File) omitObject(p document.Problem) bool {
	switch p.Kind {
	case "Pool":
		return removeEntry(f, f.Pools, "pool", p)
	case "Tenant":
		return removeEntry(f, f.Tenants, "tenant", p)
	case "SecondaryNetwork":
		return removeEntry(f, f.SecondaryNetworks, "secondary network", p)
	}
	return false
}

func removeEntry[T any](f *File, from map[string]T, kind string, p document.Problem) bool {
	spec, ok := from[p.Name]
	if !ok {
		return false
	}
	delete(from, p.Name)
	data, err := yaml.Marshal(map[string]T{p.Name: spec})
	if err != nil {
		return false
	}
	f.aside = append(f.aside, fmt.Sprintf("left out: %s %s: %s", kind, p.Name, p.Message))
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		f.aside = append(f.aside, "  "+line)
	}
	return true
}

// BuildFile returns the file with the results of all readers.
func (d *Draft) BuildFile() *File {
	f := &File{
		Platform: d.Platform, Pools: map[string]v1alpha1.PoolSpec{},
		Tenants: map[string]v1alpha1.TenantSpec{}, SecondaryNetworks: d.Secondary,
		aside: slices.Clone(d.leftOut),
	}
	for _, name := range slices.Sorted(maps.Keys(d.Pools)) {
		f.Pools[name] = d.Pools[name].Spec
	}
	for _, name := range slices.Sorted(maps.Keys(d.Tenants)) {
		f.Tenants[name] = d.Tenants[name].Spec
	}
	return f
}
