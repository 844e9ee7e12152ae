package doctor

import (
	"context"
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"croft.dev/croft/internal/addons"
)

// addonsKnown reports add-ons that are not in the catalogue. policy.unknownAnnotations
// covers the annotations that they read. Add-ons whose kinds the Platform gives to tenants
// have been reviewed by the author of the Platform.
func addonsKnown(s *Snapshot) []Finding {
	declared := map[string]bool{}
	for _, a := range s.platform().Addons {
		declared[a.APIGroup] = true
	}
	var groups []string
	for _, d := range s.Definitions {
		if g := d.Spec.Group; d.DeletionTimestamp == nil && addons.Installing(g) == "" && !declared[g] && !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	slices.Sort(groups)
	var all []Finding
	for _, g := range groups {
		all = append(all, of("unknown-addon", Warning, "", fmt.Sprintf("API group %s is of no add-on that croft knows", g)))
	}
	for _, c := range s.IngressClasses {
		if addons.Installing(c.Spec.Controller) == "" {
			all = append(all, of("unknown-addon", Warning, "IngressClass/"+c.Name, fmt.Sprintf("controller %s is of no add-on that croft knows", c.Spec.Controller)))
		}
	}
	return all
}

func (g *gatherer) ingressClasses(ctx context.Context) error {
	var list networkingv1.IngressClassList
	err := g.list(ctx, readIngressClasses, &list)
	g.IngressClasses = withoutDeleted(list.Items)
	return err
}
