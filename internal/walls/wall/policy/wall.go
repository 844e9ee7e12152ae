// Package policy is the wall of all rules outside of the other three walls: rules on the
// content of objects, on their number and size, and on the protection of croft's own objects.
package policy

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// Wall is the policy wall.
type Wall struct{}

// Name implements wall.Wall.
func (Wall) Name() string { return "policy" }

// Policies returns the policies on objects other than pods.
func (Wall) Policies(p *estate.Platform) []admissionpolicy.Validating {
	read := func(name string) admissionpolicy.Validating { return buildPolicy(p, name) }
	return []admissionpolicy.Validating{
		read("croft-termination"), read("croft-disruption-budgets"), read("croft-volume-claims"),
		read("croft-device-claims"),
		read("croft-services"), read("croft-endpoints"),
		read("croft-ingresses"), read("croft-routes"), read("croft-gateways"),
		read("croft-references"), read("croft-certificates"),
		read("croft-issuers"), read("croft-annotations"), read("croft-unknown-annotations"),
		read("croft-unknown-pod-annotations"), read("croft-protection"), read("croft-namespaces"),
		read("croft-role-bindings"), read("croft-roles"),
		read("croft-accounts"), read("croft-events"), read("croft-finalizers"),
		read("croft-flux"), read("croft-flux-sources"), read("croft-argocd"),
		read("croft-sizes"), read("croft-autoscalers"), read("croft-frozen"),
	}
}

// Platform returns the policies. Their size does not depend on the tenants.
func (w Wall) Platform(p *estate.Platform) []client.Object {
	var all []client.Object
	for _, policy := range w.Policies(p) {
		all = append(all, policy.Objects()...)
	}
	if p.Placement == v1alpha1.PlacementGatekeeper {
		for _, c := range buildConstraints(p) {
			all = append(all, c.Template(), c.Constraint())
		}
	}
	return all
}

// Pods returns the rules on pods apart from placement.
func (Wall) Pods(p *estate.Platform) admissionpolicy.Pods { return buildPodPart(p) }

// Constraints returns the rules that Gatekeeper enforces, too.
func (Wall) Constraints(p *estate.Platform) []admissionpolicy.Constrained {
	return buildConstraints(p)
}

// Pool returns nothing.
func (Wall) Pool(*estate.Platform, *estate.Pool) []client.Object { return nil }

// Tenant returns the tenant's namespaces with their rules, quota, limits and declared objects.
func (Wall) Tenant(p *estate.Platform, t *estate.Tenant) []client.Object {
	var all []client.Object
	for _, name := range t.Namespaces {
		all = append(all, buildNamespace(t, name), buildTenantRules(p, t, name), buildLimitRange(t, name))
		if len(t.Quota) > 0 {
			all = append(all, buildQuota(t, name))
		}
		all = append(all, t.BuildObjects(name)...)
	}
	if p.Placement == v1alpha1.PlacementGatekeeper {
		all = append(all, buildPullPolicyMutators(t)...)
	}
	return all
}
