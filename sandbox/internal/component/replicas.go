package component

import (
	"slices"
	"strconv"
	"strings"

	"croft.dev/croft/sandbox/internal/supervisor"
)

// Link is the component that forwards an API server's connections to etcd, in a sandbox with
// several API servers or members of etcd. Each API server NAME has one, NAME-link. While the
// link is frozen, its API server is cut off from etcd, but its connections stay open.
const Link = "link"

// NameLink returns the name of an API server's link.
func NameLink(server string) string { return server + "-" + Link }

// nameReplicas returns the names of a component's n replicas. The first has the component's name.
func nameReplicas(component string, n int) []string {
	names := []string{component}
	for i := 2; i <= n; i++ {
		names = append(names, component+"-"+strconv.Itoa(i))
	}
	return names
}

// listAPIServers returns the names of a sandbox's API servers.
func (s *Sandbox) listAPIServers() []string { return nameReplicas(APIServer, s.config.APIServers) }

// joinAPIServerAddresses returns the addresses of all API servers. No EndpointSlice lists them: it
// may not contain a loopback address.
func (s *Sandbox) joinAPIServerAddresses() string {
	var all []string
	for _, server := range s.listAPIServers() {
		all = append(all, s.ports.Address(server))
	}
	return strings.Join(all, ",")
}

func (s *Sandbox) listEtcdMembers() []string { return nameReplicas(Etcd, s.config.EtcdMembers) }

// usesLinks reports whether API servers connect to etcd by links.
func (s *Sandbox) usesLinks() bool { return s.config.APIServers > 1 || s.config.EtcdMembers > 1 }

// addReplicas adds the replicas of etcd and of the API server, and the links between them,
// to components in start order.
func (s *Sandbox) addReplicas(names []string) []string {
	if i := slices.Index(names, APIServer); i >= 0 {
		servers := s.listAPIServers()
		var all []string
		if s.usesLinks() {
			for _, server := range servers {
				all = append(all, NameLink(server))
			}
		}
		names = slices.Replace(slices.Clone(names), i, i+1, append(all, servers...)...)
	}
	if i := slices.Index(names, Etcd); i >= 0 {
		names = slices.Replace(slices.Clone(names), i, i+1, s.listEtcdMembers()...)
	}
	return names
}

// findReplicaSpec returns the function that builds the spec of a replica or a link; nil for another
// component.
func (s *Sandbox) findReplicaSpec(name string) func() (supervisor.Spec, error) {
	switch {
	case slices.Contains(s.listEtcdMembers(), name):
		return func() (supervisor.Spec, error) { return s.buildEtcdSpec(name) }
	case slices.Contains(s.listAPIServers(), name):
		return func() (supervisor.Spec, error) { return s.buildAPIServerSpec(name) }
	case strings.HasSuffix(name, "-"+Link):
		return func() (supervisor.Spec, error) { return s.buildLinkSpec(name), nil }
	}
	return nil
}

// findReplicaNeeds returns the dependencies of a replica or a link; false for another component.
func (s *Sandbox) findReplicaNeeds(name string) ([]string, bool) {
	switch {
	case slices.Contains(s.listEtcdMembers(), name):
		return nil, true // each member is ready only with others
	case strings.HasSuffix(name, "-"+Link):
		return s.listEtcdMembers(), true
	case slices.Contains(s.listAPIServers(), name):
		if s.usesLinks() {
			return []string{NameLink(name)}, true
		}
		return needs[APIServer], true
	}
	return nil, false
}

// claimMembers claims the ports of all members of etcd before any of them starts: each member's
// arguments contain the ports of the others.
func (s *Sandbox) claimMembers() error {
	if s.config.EtcdMembers < 2 {
		return nil
	}
	var all []string
	for _, member := range s.listEtcdMembers() {
		all = append(all, member, namePeerPort(member))
	}
	if err := s.ports.Claim(all...); err != nil {
		return err
	}
	s.ports.Pin(all...)
	return nil
}

func namePeerPort(member string) string { return member + "-peer" }
