package nodes

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// buildPlacementConstraint returns the placement rules on pods for Gatekeeper to enforce.
func buildPlacementConstraint(p *estate.Platform) admissionpolicy.Constrained {
	return admissionpolicy.Constrained{
		Kind:         "CroftPlacement",
		MatchedKinds: map[string][]string{"": {"Pod"}},
		Policy:       admissionpolicy.CheckPods(buildPodPart(p)),
	}
}

// buildMutators place a tenant's pods if Gatekeeper is the engine, as place does otherwise.
// Gatekeeper can set a field, or skip it if it is set, but cannot compare its value. So in a
// tenant with several pools, a pod that selects another tenant's pool is refused instead of
// moved. Pods tolerate all of the tenant's pools, and their nodeSelector decides.
func buildMutators(poolKey string, t *estate.Tenant) []client.Object {
	var tolerations []any
	for _, pool := range t.Pools {
		tolerations = append(tolerations, map[string]any{"key": poolKey, "operator": "Equal", "value": pool})
	}
	var all []client.Object
	for _, placed := range []struct {
		suffix, group, kind, spec string
		operations                []string
	}{
		// The nodeSelector of an existing pod is immutable.
		{"", "", "Pod", "spec", []string{"CREATE"}},
		{"-daemonset", "apps", "DaemonSet", "spec.template.spec", []string{"CREATE", "UPDATE"}},
	} {
		m := admissionpolicy.Mutator{
			Group: placed.group, Version: "v1", ObjectKind: placed.kind, Operations: placed.operations,
		}
		selector, toleration := m, m
		selector.Kind, selector.Name = "Assign", "pool"+placed.suffix
		selector.Location = placed.spec + `.nodeSelector."` + poolKey + `"`
		selector.Value, selector.OnlyMissing = t.Pools[0], len(t.Pools) > 1
		toleration.Kind, toleration.Name = "ModifySet", "tolerate"+placed.suffix
		toleration.Location, toleration.Values = placed.spec+".tolerations", tolerations
		all = append(all, selector.Object(t.Name, t.Namespaces), toleration.Object(t.Name, t.Namespaces))
	}
	return all
}
