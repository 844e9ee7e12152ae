package cli

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/scratch"
)

// retained is a namespace that was retained when its tenant was deleted.
type retained struct {
	Namespace string `json:"namespace"`
	Tenant    string `json:"tenant"`
	// State is RETAINED, TERMINATING, or SCRATCH for a namespace of a run of verify.
	State string `json:"state"`
	age   string
}

// retainedOf returns the namespaces whose label names a Tenant that does not exist.
func retainedOf(ctx context.Context, c client.Reader, tenants []v1alpha1.Tenant) ([]retained, error) {
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces, client.HasLabels{v1alpha1.TenantLabel}); err != nil {
		return nil, err
	}
	declared := map[string]bool{}
	for _, t := range tenants {
		declared[t.Name] = true
	}
	all := []retained{}
	for i := range namespaces.Items {
		n := &namespaces.Items[i]
		tenant := n.Labels[v1alpha1.TenantLabel]
		if declared[tenant] {
			continue
		}
		state := "RETAINED"
		switch {
		case n.DeletionTimestamp != nil:
			state = "TERMINATING"
		case scratch.RunOf(tenant) != "":
			state = "SCRATCH"
		}
		all = append(all, retained{n.Name, tenant, state, age(n.CreationTimestamp.Time)})
	}
	return all, nil
}

func (a *app) printRetained(s *selection, all []retained) {
	if len(all) == 0 || s.named() {
		return
	}
	var rows []row
	for _, r := range all {
		rows = append(rows, row{true, []string{r.Namespace, r.Tenant, r.State, r.age}})
	}
	a.rows(s, "namespace", []string{"NAMESPACE", "OF TENANT", "STATE", "AGE"}, rows)
	for _, r := range all {
		if r.State == "RETAINED" {
			say(a.out, "namespaces that are RETAINED keep their walls, and lose the access that croft gave: declare the tenant again to have them back, or delete them\n")
			return
		}
	}
}
