// Package tier decides about connections by policies that are evaluated in order: tiers
// in their order, in each of them policies in theirs, and of each policy its rules. The
// first rule that matches decides, as in Calico and in the network policy API. The
// packages beside it convert policies of either into this form.
//
// A judge with incomplete knowledge must not treat the unknown as a wall. So a rule that
// may match, such as one by a service account, is assumed to match if it allows, and not
// to match if it denies.
package tier

import (
	"cmp"
	"net/netip"
	"slices"
)

// Pod is one end of a connection, where that is a pod.
type Pod struct {
	Namespace               string
	NamespaceLabels, Labels map[string]string
}

// End is a pod, or an address that is none's where Pod is nil. Pods have an address
// too.
type End struct {
	Pod     *Pod
	Address netip.Addr
}

// Connection is the judged connection. Its port has a number or a name.
type Connection struct {
	From, To End
	Port     int
	PortName string
	// Protocol is TCP, UDP or SCTP.
	Protocol string
}

// Direction is the end whose policies are evaluated.
type Direction string

const (
	// Ingress is evaluated at the destination.
	Ingress Direction = "ingress"
	// Egress is evaluated at the source.
	Egress Direction = "egress"
)

// Near is the pod whose policies are evaluated, and Far the other end.
func (c *Connection) Near(d Direction) *Pod {
	if d == Ingress {
		return c.To.Pod
	}
	return c.From.Pod
}

// Far is the other end than Near.
func (c *Connection) Far(d Direction) End {
	if d == Ingress {
		return c.From
	}
	return c.To
}

// Match says whether something is about a connection.
type Match int

const (
	// No says that it is not.
	No Match = iota
	// Maybe says that it depends on unknown facts.
	Maybe
	// Yes says that it is.
	Yes
)

// Is turns an answer into a Match.
func Is(yes bool) Match {
	if yes {
		return Yes
	}
	return No
}

// All is what several that must all match come to.
func All(matches ...Match) Match { return slices.Min(append(matches, Yes)) }

// Any is the result of several matches, one of which is enough.
func Any(matches ...Match) Match { return slices.Max(append(matches, No)) }

// Action is the action of a rule.
type Action string

const (
	// Allow allows a connection.
	Allow Action = "Allow"
	// Deny decides that it is not.
	Deny Action = "Deny"
	// Pass leaves it to the next tier.
	Pass Action = "Pass"
)

// Policy judges connections of the pods that it selects.
type Policy struct {
	// Name is what people know it by.
	Name string
	// Order determines the order of evaluation: the lowest first.
	Order float64
	// Judge returns whether the policy selects the near pod, and its decision, if any:
	// "" leaves it to the next policy.
	Judge func(*Connection, Direction) (selects Match, decides Action)
}

// Tier are policies that are evaluated before those of the next tier.
type Tier struct {
	Order    float64
	Policies []*Policy
	// Tied says that the order among several policies of the same order is undefined.
	// Otherwise their names decide.
	Tied bool
	// Denies connections that no policy decides, if any of the tier's policies selects
	// the pod.
	Denies bool
}

// Decision is what came of a connection in one direction.
type Decision struct {
	Allowed bool
	// By is the policy that decided; "" where that no policy did decided.
	By string
	// Selecting are the evaluated policies that select the pod.
	Selecting []string
}

// Sort sorts tiers and their policies by the order of their evaluation.
func Sort(tiers []Tier) {
	slices.SortStableFunc(tiers, func(a, b Tier) int { return cmp.Compare(a.Order, b.Order) })
	for _, t := range tiers {
		slices.SortStableFunc(t.Policies, func(a, b *Policy) int {
			return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Name, b.Name))
		})
	}
}

// Decide evaluates sorted tiers. Undecided connections are allowed, as between pods
// without policies.
func Decide(tiers []Tier, c *Connection, d Direction) Decision {
	decision := Decision{Allowed: true}
	for _, t := range tiers {
		action, by, selected := t.ask(c, d, &decision)
		switch {
		case action == Allow:
			decision.By = by
			return decision
		case action == Deny:
			decision.Allowed, decision.By = false, by
			return decision
		case action == "" && selected && t.Denies:
			decision.Allowed = false
			return decision
		}
	}
	return decision
}

// ask asks one tier's policies until one decides.
func (t Tier) ask(c *Connection, d Direction, decision *Decision) (action Action, by string, selected bool) {
	for i := 0; i < len(t.Policies); {
		end := i + 1
		for t.Tied && end < len(t.Policies) && t.Policies[end].Order == t.Policies[i].Order {
			end++
		}
		for _, p := range t.Policies[i:end] {
			selects, decides := p.Judge(c, d)
			if selects == No {
				continue
			}
			decision.Selecting = append(decision.Selecting, p.Name)
			selected = selected || selects == Yes
			if selects == Maybe && decides == Deny {
				continue
			}
			// Of several at once, that counts which opens most.
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

// First is the action of the first matching rule.
func First[T any](rules []T, action func(T) Action, matches func(T) Match) Action {
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
