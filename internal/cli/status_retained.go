package cli

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/prove/scratch"
)

// retainedNamespace is a namespace that was retained when its tenant was deleted.
type retainedNamespace struct {
	Namespace string `json:"namespace"`
	Tenant    string `json:"tenant"`
	// State is RETAINED, TERMINATING, or SCRATCH for a namespace of a run of verify.
	State string `json:"state"`
	age   string
}

// findRetained returns the namespaces whose label names a Tenant that does not exist.
func findRetained(ctx context.Context, c client.Reader, tenants []v1alpha1.Tenant) ([]retainedNamespace, error) {
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces, client.HasLabels{v1alpha1.TenantLabel}); err != nil {
		return nil, err
	}
	declared := map[string]bool{}
	for _, t := range tenants {
		declared[t.Name] = true
	}
	all := []retainedNamespace{}
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
		all = append(all, retainedNamespace{n.Name, tenant, state, formatAge(n.CreationTimestamp.Time)})
	}
	return all, nil
}

func (a *app) printRetained(s *selection, all []retainedNamespace) {
	if len(all) == 0 || s.hasNames() {
		return
	}
	var rows []row
	for _, r := range all {
		rows = append(rows, row{true, []string{r.Namespace, r.Tenant, r.State, r.age}})
	}
	a.printRows(s, "namespace", []string{"NAMESPACE", "TENANT", "STATE", "AGE"}, rows)
	for _, r := range all {
		if r.State == "RETAINED" {
			printSafely(a.out, "RETAINED namespaces keep their walls, and croft has withdrawn people's access: declare the tenant again to restore it, or delete the namespaces\n")
			return
		}
	}
}
