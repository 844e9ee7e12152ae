package component

import (
	"context"
	"net"
	"os/exec"
	"strings"

	"croft.dev/croft/sandbox/internal/supervisor"
)

// linkPort returns the name of a link's port for a member of etcd.
func linkPort(link, member string) string { return link + "-" + member }

// linkSpec runs a link, which has one port for each member of etcd and forwards connections
// to it.
func (s *Sandbox) linkSpec(link string) supervisor.Spec {
	address := func() string { return s.ports.Address(linkPort(link, Etcd)) }
	return supervisor.Spec{
		Address: address,
		Command: func() (*exec.Cmd, error) {
			var args []string
			for _, member := range s.etcdMembers() {
				port := linkPort(link, member)
				if err := s.ports.Claim(port); err != nil {
					return nil, err
				}
				args = append(args, s.ports.Address(port)+"="+s.ports.Address(member))
			}
			return s.command(Link, args), nil
		},
		Ready: func(ctx context.Context) error {
			var d net.Dialer
			c, err := d.DialContext(ctx, "tcp", address())
			if err != nil {
				return err
			}
			return c.Close()
		},
		Settle: func(context.Context) error {
			for _, member := range s.etcdMembers() {
				s.ports.Pin(linkPort(link, member))
			}
			return nil
		},
	}
}

// etcdServers returns the URLs by which an API server connects to etcd.
func (s *Sandbox) etcdServers(server string) string {
	var all []string
	for _, member := range s.etcdMembers() {
		port := member
		if s.linked() {
			port = linkPort(LinkOf(server), member)
		}
		all = append(all, "https://"+s.ports.Address(port))
	}
	return strings.Join(all, ",")
}
