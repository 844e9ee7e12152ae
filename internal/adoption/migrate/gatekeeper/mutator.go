package gatekeeper

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// Mutator is a Gatekeeper Assign or ModifySet.
type Mutator struct{ *source.Object }

// ListMutators returns the mutators in the input, in its order, Assigns first. It leaves out
// croft's own mutators: the TenantRules contain their placements.
func ListMutators(d *draft.Draft) []Mutator {
	var all []Mutator
	for _, o := range append(d.List(draft.MutationsGroup, "Assign"), d.List(draft.MutationsGroup, "ModifySet")...) {
		if !draft.IsManaged(o) {
			all = append(all, Mutator{o})
		}
	}
	return all
}

// placement is the part of a mutator's change that decides where pods run.
type placement struct {
	// terms are alternative selections of nodes.
	terms [][]draft.Selection
	// tolerations are added to the pods.
	tolerations []source.Field
	// skipReason is the reason why migrate cannot convert it.
	skipReason string
}

// readPlacement reads a mutator. It returns nil if the mutator does not decide where pods run.
func (m Mutator) readPlacement() *placement {
	at := m.getPodSpecPath()
	if len(at) == 0 {
		return nil
	}
	switch at[0] {
	case "nodeSelector":
		return m.parseNodeSelector(at[1:])
	case "affinity":
		return m.parseAffinity(at[1:])
	case "tolerations":
		return m.parseTolerations(at[1:])
	case "nodeName", "schedulerName":
		return &placement{skipReason: "croft refuses " + at[0] + " to tenants' pods"}
	}
	return nil
}

func (m Mutator) value() source.Field { return m.At("spec", "parameters", "assign", "value") }

// parseNodeSelector reads an Assign of spec.nodeSelector, or of one entry of it.
func (m Mutator) parseNodeSelector(at []string) *placement {
	value, from := m.value(), m.At("spec", "parameters", "assign", "fromMetadata", "field")
	var term []draft.Selection
	switch {
	case m.Kind != "Assign" || len(at) > 1:
	case len(at) == 0:
		for _, f := range value.Fields() {
			term = append(term, draft.NewSelection(f.Key(), f.Text(), f))
		}
	case value.Text() != "":
		term = append(term, draft.NewSelection(at[0], value.Text(), value))
	case from.Text() == "namespace":
		s := draft.NewSelection(at[0], "", from)
		s.ByNamespace = true
		term = append(term, s)
	}
	if len(term) == 0 {
		return &placement{skipReason: "the nodeSelector that it sets depends on more than the namespace"}
	}
	return &placement{terms: [][]draft.Selection{term}}
}

// parseAffinity reads required node affinity. Pod affinity does not choose a pool.
func (m Mutator) parseAffinity(at []string) *placement {
	value := m.value()
	path := []string{"nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"}
	for i, key := range path {
		switch {
		case i >= len(at) && key == "nodeAffinity" && !value.At(key).Found():
			return nil
		case i >= len(at):
			value = value.At(key)
		case at[i] != key && i == 0:
			return nil
		case at[i] != key:
			return &placement{skipReason: "pods only prefer the nodes that it names, and croft binds pods to their pool"}
		}
	}
	terms := value.Items()
	if m.Kind == "ModifySet" {
		terms = m.At("spec", "parameters", "values", "fromList").Items()
	}
	p := &placement{}
	for _, t := range terms {
		var term []draft.Selection
		for _, e := range t.At("matchExpressions").Items() {
			s, ok := draft.ParseSelection(e)
			if !ok {
				return &placement{skipReason: "its node affinity is not valid"}
			}
			term = append(term, s)
		}
		if len(term) == 0 || t.At("matchFields").Found() {
			return &placement{skipReason: "it does not select nodes by their labels"}
		}
		p.terms = append(p.terms, term)
	}
	switch {
	case len(p.terms) == 0 || len(at) > len(path):
		p.skipReason = "the node affinity that it sets cannot be read"
	case slices.ContainsFunc(p.terms, choosesPools) && slices.ContainsFunc(p.terms, func(t []draft.Selection) bool { return !choosesPools(t) }):
		p.skipReason = "one of its alternatives allows nodes of any pool"
	}
	return p
}

func choosesPools(term []draft.Selection) bool {
	return slices.ContainsFunc(term, draft.Selection.ChoosesPools)
}

// parseTolerations reads an Assign or a ModifySet of tolerations.
func (m Mutator) parseTolerations(at []string) *placement {
	p := &placement{}
	switch value := m.value(); {
	case m.Kind == "ModifySet" && m.At("spec", "parameters", "operation").Text() == "prune":
		p.skipReason = "croft refuses pods with tolerations of other pools, and does not remove tolerations"
	case m.Kind == "ModifySet" && len(at) == 0:
		p.tolerations = m.At("spec", "parameters", "values", "fromList").Items()
	case m.Kind == "Assign" && len(value.Items()) > 0 && len(at) == 0:
		p.tolerations = value.Items()
	case m.Kind == "Assign" && len(at) <= 1 && len(value.Fields()) > 0:
		p.tolerations = []source.Field{value}
	}
	if p.skipReason == "" && len(p.tolerations) == 0 {
		p.skipReason = "the tolerations that it sets cannot be read"
	}
	return p
}

// ListKeys returns the labels and taints by which the mutator selects nodes. The value is a weight
// for the choice of the pools' key.
func (m Mutator) ListKeys() map[string]int {
	keys := map[string]int{}
	p := m.readPlacement()
	if p == nil {
		return keys
	}
	for _, term := range p.terms {
		for _, s := range term {
			if s.ChoosesPools() {
				keys[s.Key] += 2
			}
		}
	}
	for _, t := range p.tolerations {
		if t.At("value").Text() != "" {
			keys[t.At("key").Text()]++
		}
	}
	return keys
}

// resolveNamespace sets the values of selections that depend on the pods' namespace.
func resolveNamespace(term []draft.Selection, namespace string) []draft.Selection {
	term = slices.Clone(term)
	for i := range term {
		if term[i].ByNamespace {
			term[i].Values = []string{namespace}
		}
	}
	return term
}

func parseToleration(f source.Field) corev1.Toleration {
	return corev1.Toleration{
		Key: f.At("key").Text(), Operator: corev1.TolerationOperator(f.At("operator").Text()),
		Value: f.At("value").Text(), Effect: corev1.TaintEffect(f.At("effect").Text()),
	}
}
