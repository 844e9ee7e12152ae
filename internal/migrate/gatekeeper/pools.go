package gatekeeper

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/migrate/draft"
	"croft.dev/croft/internal/migrate/source"
)

// placed is a mutator that places the pods of some namespaces.
type placed struct {
	Mutator
	*placement
	namespaces []string
}

// Pools places the tenants of namespaces on pools. A mutator of the placement of pods that
// cannot be converted is a problem.
func Pools(d *draft.Draft) {
	var selecting, tolerating []placed
	for _, m := range Mutators(d) {
		p := m.placement()
		if p == nil {
			otherMutator(m.Object)
			refusedMutation(d, m)
			continue
		}
		switch s := scopeOf(d, m); {
		case s.nothing != "":
			m.Root().Other("%s: it stays as it is", s.nothing)
		case p.unread != "":
			lose(d, m, m.At("spec", "location"), p.unread)
		case s.why != "":
			lose(d, m, s.unknown, s.why)
		case len(p.terms) > 0:
			selecting = append(selecting, placed{m, p, s.namespaces})
		default:
			tolerating = append(tolerating, placed{m, p, s.namespaces})
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
	for _, o := range slices.Concat(d.Of(draft.MutationsGroup, "AssignMetadata"), d.Of(draft.MutationsGroup, "AssignImage")) {
		otherMutator(o)
	}
	keepWritten(d)
}

// keepWritten accounts for the mutators that croft wrote.
func keepWritten(d *draft.Draft) {
	for _, kind := range []string{"Assign", "ModifySet"} {
		for _, o := range d.Of(draft.MutationsGroup, kind) {
			if draft.Managed(o) {
				d.Platform.Placement = v1alpha1.PlacementGatekeeper
				o.Root().Kept("platform.placement")
			}
		}
	}
}

func otherMutator(o *source.Object) {
	o.Root().NotKept("does not decide where pods run: it stays with Gatekeeper, or becomes a MutatingAdmissionPolicy of yours")
}

// refusedMutation reports a mutator that sets a field of tenants' pods which croft refuses
// unless the tenant is allowed its value: no pod would be admitted.
func refusedMutation(d *draft.Draft, m Mutator) {
	at := m.inPodSpec()
	if len(at) == 0 || scopeOf(d, m).nothing != "" {
		return
	}
	field := at[len(at)-1]
	list := map[string]string{"runtimeClassName": "runtimeClasses", "priorityClassName": "priorityClasses", "imagePullPolicy": "imagePullPolicies"}[field]
	if list == "" || field == "imagePullPolicy" && m.value().Text() == "Always" {
		return
	}
	d.Problem(m.At("spec", "location"), "Gatekeeper gives pods the %s %s, which croft refuses to tenants that are not allowed it: "+
		"add it to policy.%s of their tenants, or to platform.tenantDefaults.policy, or take the mutator away", field, m.value().Text(), list)
}

// lose reports a placement that cannot be converted.
func lose(d *draft.Draft, m Mutator, at source.Field, why string) {
	m.Root().NotKept("places pods, and was not converted: %s", why)
	d.Problem(at, "places pods, and was not converted: %s; write the pool of each tenant into croft.yaml yourself, and take this mutator away once croft runs", why)
}

// Placing returns the mutators that decide where pods run, with the namespaces of the pods as
// far as they are known.
func Placing(d *draft.Draft) map[*source.Object][]string {
	all := map[*source.Object][]string{}
	for _, m := range Mutators(d) {
		if p := m.placement(); p == nil || len(p.terms) > 0 && isEverywhere(d, p.terms) {
			continue
		}
		if s := scopeOf(d, m); s.nothing == "" {
			all[m.Object] = s.namespaces
		}
	}
	return all
}

// Chosen returns the pools on which mutators place namespaces.
func Chosen(d *draft.Draft) []string {
	var all []string
	tolerations := map[string][]corev1.Toleration{}
	for _, m := range Mutators(d) {
		p := m.placement()
		s := scopeOf(d, m)
		if p == nil || p.unread != "" || s.why != "" {
			continue
		}
		for _, namespace := range s.namespaces {
			for _, term := range p.terms {
				all = append(all, d.PoolsFor(resolve(term, namespace))...)
			}
			for _, t := range p.tolerations {
				tolerations[namespace] = append(tolerations[namespace], toleration(t))
			}
		}
	}
	for _, list := range tolerations {
		if pools := toleratedPools(d, list); len(pools) == 1 {
			all = append(all, pools...)
		}
	}
	return draft.Distinct(all)
}
