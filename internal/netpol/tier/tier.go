// Package tier decides about connections by policies that are asked one after the
// other: tiers in their order, in each of them policies in theirs, and of each
// policy its rules. The first rule that matches decides, as Calico and the network
// policy API have it. The packages beside it turn policies of either into this form.
//
// A judge that does not know everything must not take what it does not know for a
// wall. So a rule that may match, as by a service account, is taken to match if it
// opens, and not to match if it denies.
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

// Connection is what is decided about. Its port has a number or a name.
type Connection struct {
	From, To End
	Port     int
	PortName string
	// Protocol is TCP, UDP or SCTP.
	Protocol string
}

// Direction says at which end policies are asked.
type Direction string

const (
	// Ingress is asked where a connection goes to.
	Ingress Direction = "ingress"
	// Egress is asked where it comes from.
	Egress Direction = "egress"
)

// Near is the pod whose policies are asked, and Far the other end.
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
	// Maybe says that it depends on what is not known.
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

// Any is what several come to of which one is enough.
func Any(matches ...Match) Match { return slices.Max(append(matches, No)) }

// Action is what a rule does.
type Action string

const (
	// Allow decides that a connection is let through.
	Allow Action = "Allow"
	// Deny decides that it is not.
	Deny Action = "Deny"
	// Pass leaves it to the next tier.
	Pass Action = "Pass"
)

// Policy is asked about connections of the pods that it selects.
type Policy struct {
	// Name is what people know it by.
	Name string
	// Order says when it is asked: the lowest first.
	Order float64
	// Judge says whether the policy selects the near pod, and what it decides, if
	// anything: "" leaves it to the next policy.
	Judge func(*Connection, Direction) (selects Match, decides Action)
}

// Tier is policies that are asked before those of the next tier.
type Tier struct {
	Order    float64
	Policies []*Policy
	// Tied says that nobody knows which of several policies of one order is asked
	// first. Otherwise their names say it.
	Tied bool
	// Denies what no policy decides, if any of the tier's selects the pod.
	Denies bool
}

// Decision is what came of a connection in one direction.
type Decision struct {
	Allowed bool
	// By is the policy that decided; "" where that no policy did decided.
	By string
	// Selecting are the policies that select the pod, so far as they were asked.
	Selecting []string
}

// Sort puts tiers and their policies in the order in which they are asked.
func Sort(tiers []Tier) {
	slices.SortStableFunc(tiers, func(a, b Tier) int { return cmp.Compare(a.Order, b.Order) })
	for _, t := range tiers {
		slices.SortStableFunc(t.Policies, func(a, b *Policy) int {
			return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Name, b.Name))
		})
	}
}

// Decide asks sorted tiers. What no policy decides is let through, as between pods
// without any.
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

// First is what the first of several rules does that matches.
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
