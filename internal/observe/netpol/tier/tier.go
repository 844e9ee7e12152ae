// Package tier decides about connections by policies that are evaluated in order: tiers in
// their order, in each tier its policies in their order, and in each policy its rules. The
// first rule that matches decides, as in Calico and in the network policy API. The sibling
// packages convert policies of both into this form.
//
// With incomplete knowledge, unknown facts must not count as protection. So a rule that may
// match, such as one by a service account, is assumed to match if it allows, and not to match
// if it denies.
package tier

import (
	"cmp"
	"net/netip"
	"slices"
)

// Pod is one end of a connection, if that end is a pod.
type Pod struct {
	Namespace               string
	NamespaceLabels, Labels map[string]string
}

// End is a pod, or, if Pod is nil, an address that belongs to no pod. Pods have an address,
// too.
type End struct {
	Pod     *Pod
	Address netip.Addr
}

// Connection is the connection to evaluate. Its port has a number or a name.
type Connection struct {
	From, To End
	Port     int
	PortName string
	// Protocol is TCP, UDP or SCTP.
	Protocol string
}

// Direction selects the end whose policies are evaluated.
type Direction string

const (
	// Ingress is evaluated at the destination.
	Ingress Direction = "ingress"
	// Egress is evaluated at the source.
	Egress Direction = "egress"
)

// NearPod returns the pod whose policies are evaluated. It is nil for an address.
func (c *Connection) NearPod(d Direction) *Pod {
	if d == Ingress {
		return c.To.Pod
	}
	return c.From.Pod
}

// FarEnd returns the other end.
func (c *Connection) FarEnd(d Direction) End {
	if d == Ingress {
		return c.From
	}
	return c.To
}

// Match is the result of a condition on a connection.
type Match int

const (
	// No means that the condition is false.
	No Match = iota
	// Maybe means that the result depends on unknown facts.
	Maybe
	// Yes means that the condition is true.
	Yes
)

// FromBool converts a bool to a Match.
func FromBool(yes bool) Match {
	if yes {
		return Yes
	}
	return No
}

// MatchAll returns the result of several conditions that must all be true.
func MatchAll(matches ...Match) Match { return slices.Min(append(matches, Yes)) }

// MatchAny returns the result of several conditions of which one is enough.
func MatchAny(matches ...Match) Match { return slices.Max(append(matches, No)) }

// Action is the action of a rule.
type Action string

const (
	// Allow allows the connection.
	Allow Action = "Allow"
	// Deny denies the connection.
	Deny Action = "Deny"
	// Pass leaves the decision to the next tier.
	Pass Action = "Pass"
)

// Policy decides about connections of the pods that it selects.
type Policy struct {
	// Name is the name for messages.
	Name string
	// Order determines the order of evaluation. The lowest is the first.
	Order float64
	// Evaluate returns whether the policy selects the near pod, and its decision. "" leaves the
	// decision to the next policy.
	Evaluate func(*Connection, Direction) (selects Match, decides Action)
}

// Tier has policies that are evaluated before the next tier's policies.
type Tier struct {
	Order    float64
	Policies []*Policy
	// Tied is set if the order of policies with equal Order is undefined. Otherwise their
	// names decide.
	Tied bool
	// Denies is set if the tier denies connections that no policy decides, provided that any
	// of its policies selects the pod.
	Denies bool
}

// Decision is the result for a connection in one direction.
type Decision struct {
	Allowed bool
	// DecidedBy is the policy that decided, or "" if no policy decided.
	DecidedBy string
	// Selecting are the evaluated policies that select the pod.
	Selecting []string
}

// SortTiers sorts tiers and their policies by the order of their evaluation.
func SortTiers(tiers []Tier) {
	slices.SortStableFunc(tiers, func(a, b Tier) int { return cmp.Compare(a.Order, b.Order) })
	for _, t := range tiers {
		slices.SortStableFunc(t.Policies, func(a, b *Policy) int {
			return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Name, b.Name))
		})
	}
}

// Decide evaluates sorted tiers. A connection that no policy decides is allowed, like
// connections between pods without policies.
func Decide(tiers []Tier, c *Connection, d Direction) Decision {
	decision := Decision{Allowed: true}
	for _, t := range tiers {
		action, by, selected := t.evaluate(c, d, &decision)
		switch {
		case action == Allow:
			decision.DecidedBy = by
			return decision
		case action == Deny:
			decision.Allowed, decision.DecidedBy = false, by
			return decision
		case action == "" && selected && t.Denies:
			decision.Allowed = false
			return decision
		}
	}
	return decision
}

// evaluate evaluates one tier's policies until one decides.
func (t Tier) evaluate(c *Connection, d Direction, decision *Decision) (action Action, by string, selected bool) {
	for i := 0; i < len(t.Policies); {
		end := i + 1
		for t.Tied && end < len(t.Policies) && t.Policies[end].Order == t.Policies[i].Order {
			end++
		}
		for _, p := range t.Policies[i:end] {
			selects, decides := p.Evaluate(c, d)
			if selects == No {
				continue
			}
			decision.Selecting = append(decision.Selecting, p.Name)
			selected = selected || selects == Yes
			if selects == Maybe && decides == Deny {
				continue
			}
			// If several policies have the same order, the most permissive decision counts.
			if openness[decides] > openness[action] {
				action, by = decides, p.Name
			}
		}
		if action != "" {
			return action, by, selected
		}
		i = end
	}
	return "", "", selected
}

var openness = map[Action]int{Deny: 1, Pass: 2, Allow: 3}

// FirstMatching returns the action of the first matching rule.
func FirstMatching[T any](rules []T, action func(T) Action, matches func(T) Match) Action {
	for _, r := range rules {
		does := action(r)
		if does == "" {
			continue
		}
		if m := matches(r); m == Yes || m == Maybe && does != Deny {
			return does
		}
	}
	return ""
}
