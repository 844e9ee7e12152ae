package gatekeeper

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// placingMutator is a mutator that places the pods of some namespaces.
type placingMutator struct {
	Mutator
	*placement
	namespaces []string
}

// ReadPools places the tenants of namespaces on pools. A mutator of the placement of pods that
// cannot be converted is a problem.
func ReadPools(d *draft.Draft) {
	var selecting, tolerating []placingMutator
	for _, m := range ListMutators(d) {
		p := m.readPlacement()
		if p == nil {
			accountOther(m.Object)
			reportRefused(d, m)
			continue
		}
		switch s := findScope(d, m); {
		case s.nothing != "":
			m.Root().MarkOther("%s: it stays as it is", s.nothing)
		case p.skipReason != "":
			reportLost(d, m, m.At("spec", "location"), p.skipReason)
		case s.why != "":
			reportLost(d, m, s.unknown, s.why)
		case len(p.terms) > 0:
			selecting = append(selecting, placingMutator{m, p, s.namespaces})
		default:
			tolerating = append(tolerating, placingMutator{m, p, s.namespaces})
		}
	}
	for _, m := range selecting {
		readSelector(d, m)
	}
	for _, m := range tolerating {
		readTolerations(d, m)
	}
	placeByTolerations(d, tolerating)
	for _, m := range selecting {
		keepSelections(d, m)
	}
	for _, o := range slices.Concat(d.List(draft.MutationsGroup, "AssignMetadata"), d.List(draft.MutationsGroup, "AssignImage")) {
		accountOther(o)
	}
	keepWritten(d)
}

// keepWritten accounts for the mutators that croft wrote.
func keepWritten(d *draft.Draft) {
	for _, kind := range []string{"Assign", "ModifySet"} {
		for _, o := range d.List(draft.MutationsGroup, kind) {
			if draft.IsManaged(o) {
				d.Platform.Placement = v1alpha1.PlacementGatekeeper
				o.Root().MarkKept("platform.placement")
			}
		}
	}
}

func accountOther(o *source.Object) {
	o.Root().MarkNotKept("does not select nodes of pods: keep it in Gatekeeper, or replace it by a MutatingAdmissionPolicy of yours")
}

// reportRefused reports a mutator that sets a field of tenants' pods which croft refuses
// unless the tenant is allowed its value: no pod would be admitted.
func reportRefused(d *draft.Draft, m Mutator) {
	at := m.getPodSpecPath()
	if len(at) == 0 || findScope(d, m).nothing != "" {
		return
	}
	field := at[len(at)-1]
	list := map[string]string{"runtimeClassName": "runtimeClasses", "priorityClassName": "priorityClasses", "imagePullPolicy": "imagePullPolicies"}[field]
	if list == "" || field == "imagePullPolicy" && m.value().Text() == "Always" {
		return
	}
	d.ReportProblem(m.At("spec", "location"), "Gatekeeper gives pods the %s %s, which croft refuses unless the tenant's policy allows it: "+
		"add it to policy.%s of the tenants, or to platform.tenantDefaults.policy, or delete the mutator", field, m.value().Text(), list)
}

// reportLost reports a placement that cannot be converted.
func reportLost(d *draft.Draft, m Mutator, at source.Field, reason string) {
	m.Root().MarkNotKept("places pods, and was not converted: %s", reason)
	d.ReportProblem(at, "places pods, and was not converted: %s; write the pool of each tenant into croft.yaml yourself, and delete this mutator when croft runs", reason)
}

// FindPlacing returns the mutators that decide where pods run, with the namespaces of the pods as
// far as they are known.
func FindPlacing(d *draft.Draft) map[*source.Object][]string {
	all := map[*source.Object][]string{}
	for _, m := range ListMutators(d) {
		if p := m.readPlacement(); p == nil || len(p.terms) > 0 && isEverywhere(d, p.terms) {
			continue
		}
		if s := findScope(d, m); s.nothing == "" {
			all[m.Object] = s.namespaces
		}
	}
	return all
}

// ListChosen returns the pools on which mutators place namespaces.
func ListChosen(d *draft.Draft) []string {
	var all []string
	tolerations := map[string][]corev1.Toleration{}
	for _, m := range ListMutators(d) {
		p := m.readPlacement()
		s := findScope(d, m)
		if p == nil || p.skipReason != "" || s.why != "" {
			continue
		}
		for _, namespace := range s.namespaces {
			for _, term := range p.terms {
				all = append(all, d.FindPools(resolveNamespace(term, namespace))...)
			}
			for _, t := range p.tolerations {
				tolerations[namespace] = append(tolerations[namespace], parseToleration(t))
			}
		}
	}
	for _, list := range tolerations {
		if pools := findToleratedPools(d, list); len(pools) == 1 {
			all = append(all, pools...)
		}
	}
	return draft.Distinct(all)
}
