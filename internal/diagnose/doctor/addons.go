package doctor

import (
	"context"
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"croft.dev/croft/internal/declare/addons"
)

// checkAddons reports add-ons that are not in the catalogue. policy.unknownAnnotations
// covers the annotations that they read. Add-ons whose kinds the Platform gives to tenants
// have been reviewed by the author of the Platform.
func checkAddons(s *Snapshot) []Finding {
	declared := map[string]bool{}
	for _, a := range s.platformSpec().Addons {
		declared[a.APIGroup] = true
	}
	var groups []string
	for _, d := range s.Definitions {
		if g := d.Spec.Group; d.DeletionTimestamp == nil && addons.FindAddon(g) == "" && !declared[g] && !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	slices.Sort(groups)
	var all []Finding
	for _, g := range groups {
		all = append(all, newFinding("unknown-addon", Warning, "", fmt.Sprintf("API group %s belongs to an add-on that croft does not know", g)))
	}
	for _, c := range s.IngressClasses {
		if addons.FindAddon(c.Spec.Controller) == "" {
			all = append(all, newFinding("unknown-addon", Warning, "IngressClass/"+c.Name, fmt.Sprintf("controller %s belongs to an add-on that croft does not know", c.Spec.Controller)))
		}
	}
	return all
}

func (g *gatherer) gatherIngressClasses(ctx context.Context) {
	var list networkingv1.IngressClassList
	g.ReadList(ctx, readIngressClasses, &list)
	g.IngressClasses = dropDeleted(list.Items)
}
