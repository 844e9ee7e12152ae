package tier

// Ports are ports that a rule names: those from one number to another, the one of a name, or,
// without either, all of a protocol. Without a protocol they are of any.
type Ports struct {
	Protocol, Name string
	From, To       int
}

// matches is Maybe where the one has a name and the other has a number: which port of a pod
// has a name is for the pod to say.
func (p Ports) matches(c *Connection) Match {
	switch {
	case p.Protocol != "" && p.Protocol != c.Protocol:
		return No
	case p.Name == "" && p.From == 0:
		return Yes
	case p.Name != "" && c.PortName != "":
		return Is(p.Name == c.PortName)
	case p.Name != "" || c.PortName != "":
		return Maybe
	default:
		return Is(c.Port >= p.From && c.Port <= p.To)
	}
}

// OnPorts says whether a connection is to one of some ports. A rule without ports is about
// all.
func OnPorts(ports []Ports, c *Connection) Match {
	match := Is(len(ports) == 0)
	for _, p := range ports {
		match = Any(match, p.matches(c))
	}
	return match
}
