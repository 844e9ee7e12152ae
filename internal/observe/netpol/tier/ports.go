package tier

// Ports are ports that a rule names: a range of numbers, a port by its name, or, without
// either, all ports of a protocol. Without a protocol they match any protocol.
type Ports struct {
	Protocol, Name string
	From, To       int
}

// matches returns Maybe if only one of the two has a name: each pod decides which port has
// which name.
func (p Ports) matches(c *Connection) Match {
	switch {
	case p.Protocol != "" && p.Protocol != c.Protocol:
		return No
	case p.Name == "" && p.From == 0:
		return Yes
	case p.Name != "" && c.PortName != "":
		return FromBool(p.Name == c.PortName)
	case p.Name != "" || c.PortName != "":
		return Maybe
	default:
		return FromBool(c.Port >= p.From && c.Port <= p.To)
	}
}

// MatchPorts reports whether a connection is to one of the given ports. A rule without ports
// matches all ports.
func MatchPorts(ports []Ports, c *Connection) Match {
	match := FromBool(len(ports) == 0)
	for _, p := range ports {
		match = MatchAny(match, p.matches(c))
	}
	return match
}
