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

// LinkOf returns the name of an API server's link.
func LinkOf(server string) string { return server + "-" + Link }

// replicas returns the names of a component's n replicas. The first has the component's name.
func replicas(component string, n int) []string {
	names := []string{component}
	for i := 2; i <= n; i++ {
		names = append(names, component+"-"+strconv.Itoa(i))
	}
	return names
}

// apiServers returns the names of a sandbox's API servers.
func (s *Sandbox) apiServers() []string { return replicas(APIServer, s.config.APIServers) }

// apiServerAddresses returns the addresses of all API servers. No EndpointSlice lists them: it
// may not contain a loopback address.
func (s *Sandbox) apiServerAddresses() string {
	var all []string
	for _, server := range s.apiServers() {
		all = append(all, s.ports.Address(server))
	}
	return strings.Join(all, ",")
}

func (s *Sandbox) etcdMembers() []string { return replicas(Etcd, s.config.EtcdMembers) }

// linked reports whether API servers connect to etcd by links.
func (s *Sandbox) linked() bool { return s.config.APIServers > 1 || s.config.EtcdMembers > 1 }

// withReplicas adds the replicas of etcd and of the API server, and the links between them,
// to components in start order.
func (s *Sandbox) withReplicas(names []string) []string {
	if i := slices.Index(names, APIServer); i >= 0 {
		servers := s.apiServers()
		var all []string
		if s.linked() {
			for _, server := range servers {
				all = append(all, LinkOf(server))
			}
		}
		names = slices.Replace(slices.Clone(names), i, i+1, append(all, servers...)...)
	}
	if i := slices.Index(names, Etcd); i >= 0 {
		names = slices.Replace(slices.Clone(names), i, i+1, s.etcdMembers()...)
	}
	return names
}

// replicaSpec returns the function that builds the spec of a replica or a link; nil for another
// component.
func (s *Sandbox) replicaSpec(name string) func() (supervisor.Spec, error) {
	switch {
	case slices.Contains(s.etcdMembers(), name):
		return func() (supervisor.Spec, error) { return s.etcdSpec(name) }
	case slices.Contains(s.apiServers(), name):
		return func() (supervisor.Spec, error) { return s.apiServerSpec(name) }
	case strings.HasSuffix(name, "-"+Link):
		return func() (supervisor.Spec, error) { return s.linkSpec(name), nil }
	}
	return nil
}

// replicaNeeds returns the dependencies of a replica or a link; false for another component.
func (s *Sandbox) replicaNeeds(name string) ([]string, bool) {
	switch {
	case slices.Contains(s.etcdMembers(), name):
		return nil, true // each member is ready only with others
	case strings.HasSuffix(name, "-"+Link):
		return s.etcdMembers(), true
	case slices.Contains(s.apiServers(), name):
		if s.linked() {
			return []string{LinkOf(name)}, true
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
	for _, member := range s.etcdMembers() {
		all = append(all, member, peerOf(member))
	}
	if err := s.ports.Claim(all...); err != nil {
		return err
	}
	s.ports.Pin(all...)
	return nil
}

func peerOf(member string) string { return member + "-peer" }
