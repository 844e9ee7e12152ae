package cli

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/consequence"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/manifest"
)

// findProtected returns the deletions of protected tenants, and the removals of their namespaces, that
// applying the file would request. The API server refuses them, but only after other objects were
// written.
func (p *proposal) findProtected(prune bool) document.Problems {
	var all document.Problems
	for i := range p.live.Tenants {
		t := &p.live.Tenants[i]
		if !t.Spec.Protect {
			continue
		}
		n := slices.IndexFunc(p.file.Tenants, func(f v1alpha1.Tenant) bool { return f.Name == t.Name })
		switch {
		case n < 0 && prune:
			all = append(all, document.Problem{
				Kind: manifest.KindTenant, Name: t.Name, Field: "spec.protect", Live: true,
				Message: "the tenant is protected from deletion: declare it with protect: false, apply the file, and remove the tenant from it afterwards",
			})
		case n >= 0:
			removed := excludeNamed(listDeclaredNamespaces(t), listDeclaredNamespaces(&p.file.Tenants[n]), func(name string) string { return name })
			if len(removed) > 0 {
				all = append(all, p.file.NewProblem(manifest.Object{ID: manifest.ID{Kind: manifest.KindTenant, Name: t.Name}, Index: n}, "spec.namespaces",
					fmt.Sprintf("the tenant is protected in the cluster and keeps its namespaces (%s): apply the file with protect: false and these namespaces, and remove them afterwards", strings.Join(removed, ", "))))
			}
		}
	}
	return all
}

func listDeclaredNamespaces(t *v1alpha1.Tenant) []string {
	if len(t.Spec.Namespaces) > 0 {
		return t.Spec.Namespaces
	}
	return []string{t.Name}
}

// describeProtection describes changes of tenants' protection, for croft diff.
func (p *proposal) describeProtection(prune bool) []consequence.Consequence {
	var all []consequence.Consequence
	protected := sets.New[string]()
	for i := range p.live.Tenants {
		if t := &p.live.Tenants[i]; t.Spec.Protect {
			protected.Insert(t.Name)
		}
	}
	for i := range p.file.Tenants {
		if t := &p.file.Tenants[i]; protected.Has(t.Name) && !t.Spec.Protect {
			all = append(all, consequence.Consequence{
				Kind: consequence.Protection, Object: "Tenant/" + t.Name,
				Message: fmt.Sprintf("tenant %s is no longer protected from deletion", t.Name),
			})
		}
	}
	for _, problem := range p.findProtected(prune) {
		all = append(all, consequence.Consequence{
			Kind: consequence.Protection, Object: "Tenant/" + problem.Name,
			Message: fmt.Sprintf("croft apply refuses the change of tenant %s: %s", problem.Name, problem.Message),
		})
	}
	return all
}

// errProtected returns the error for a command that deletes a protected tenant.
func errProtected(tenants ...v1alpha1.Tenant) error {
	var names []string
	for i := range tenants {
		if tenants[i].Spec.Protect {
			names = append(names, tenants[i].Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("nothing was deleted: spec.protect protects from deletion: tenant %s: set protect: false in croft.yaml, apply it, and repeat this command", strings.Join(names, ", "))
}
