package component

import (
	"context"
	"os/exec"
	"strings"

	"croft.dev/croft/sandbox/internal/supervisor"
)

const etcdClient = "kube-apiserver-etcd-client"

func (s *Sandbox) buildEtcdSpec(member string) (supervisor.Spec, error) {
	p, err := s.newTLSProber(s.etcd, etcdClient)
	if err != nil {
		return supervisor.Spec{}, err
	}
	address := s.makeAddressFunc("https", member)
	return supervisor.Spec{
		Address: address,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(member, namePeerPort(member)); err != nil {
				return nil, err
			}
			args := []string{
				"--data-dir=" + s.home.Data() + strings.TrimPrefix(member, Etcd),
				"--client-address=" + s.ports.Address(member),
				"--peer-address=" + s.ports.Address(namePeerPort(member)),
				"--ca-file=" + s.etcd.CertFile,
				"--cert-file=" + s.certPath(Etcd),
				"--key-file=" + s.keyPath(Etcd),
			}
			if s.config.EtcdMembers > 1 {
				args = append(args, "--name="+member, "--members="+s.formatInitialCluster())
			}
			return s.buildCommand(Etcd, args), nil
		},
		Ready: p.checkReadyz(address),
		Settle: func(context.Context) error {
			s.ports.Pin(member)
			return nil
		},
	}, nil
}

// formatInitialCluster returns etcd's members in the format of etcd's option --initial-cluster.
func (s *Sandbox) formatInitialCluster() string {
	var all []string
	for _, member := range s.listEtcdMembers() {
		all = append(all, member+"=https://"+s.ports.Address(namePeerPort(member)))
	}
	return strings.Join(all, ",")
}
