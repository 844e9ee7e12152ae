package component

import (
	"context"
	"os/exec"
	"strings"

	"croft.dev/croft/sandbox/internal/supervisor"
)

const etcdClient = "kube-apiserver-etcd-client"

func (s *Sandbox) etcdSpec(member string) (supervisor.Spec, error) {
	p, err := s.prober(s.etcd, etcdClient)
	if err != nil {
		return supervisor.Spec{}, err
	}
	address := s.address("https", member)
	return supervisor.Spec{
		Address: address,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(member, peerOf(member)); err != nil {
				return nil, err
			}
			args := []string{
				"--data-dir=" + s.home.Data() + strings.TrimPrefix(member, Etcd),
				"--client-address=" + s.ports.Address(member),
				"--peer-address=" + s.ports.Address(peerOf(member)),
				"--ca-file=" + s.etcd.CertFile,
				"--cert-file=" + s.cert(Etcd),
				"--key-file=" + s.key(Etcd),
			}
			if s.config.EtcdMembers > 1 {
				args = append(args, "--name="+member, "--members="+s.initialCluster())
			}
			return s.command(Etcd, args), nil
		},
		Ready: p.isReady(address),
		Settle: func(context.Context) error {
			s.ports.Pin(member)
			return nil
		},
	}, nil
}

// initialCluster returns etcd's members in the format of etcd's option --initial-cluster.
func (s *Sandbox) initialCluster() string {
	var all []string
	for _, member := range s.etcdMembers() {
		all = append(all, member+"=https://"+s.ports.Address(peerOf(member)))
	}
	return strings.Join(all, ",")
}
