package component

import (
	"context"
	"net"
	"os/exec"
	"strings"

	"croft.dev/croft/sandbox/internal/supervisor"
)

// nameLinkPort returns the name of a link's port for a member of etcd.
func nameLinkPort(link, member string) string { return link + "-" + member }

// buildLinkSpec runs a link, which has one port for each member of etcd and forwards connections
// to it.
func (s *Sandbox) buildLinkSpec(link string) supervisor.Spec {
	address := func() string { return s.ports.Address(nameLinkPort(link, Etcd)) }
	return supervisor.Spec{
		Address: address,
		Command: func() (*exec.Cmd, error) {
			var args []string
			for _, member := range s.listEtcdMembers() {
				port := nameLinkPort(link, member)
				if err := s.ports.Claim(port); err != nil {
					return nil, err
				}
				args = append(args, s.ports.Address(port)+"="+s.ports.Address(member))
			}
			return s.buildCommand(Link, args), nil
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
			for _, member := range s.listEtcdMembers() {
				s.ports.Pin(nameLinkPort(link, member))
			}
			return nil
		},
	}
}

// joinEtcdServers returns the URLs by which an API server connects to etcd.
func (s *Sandbox) joinEtcdServers(server string) string {
	var all []string
	for _, member := range s.listEtcdMembers() {
		port := member
		if s.usesLinks() {
			port = nameLinkPort(NameLink(server), member)
		}
		all = append(all, "https://"+s.ports.Address(port))
	}
	return strings.Join(all, ",")
}
