package component

import (
	"context"
	"os/exec"

	"croft.dev/croft/sandbox/internal/supervisor"
)

const (
	etcdPeer   = "etcd-peer"
	etcdClient = "kube-apiserver-etcd-client"
)

func (s *Sandbox) etcdSpec() (supervisor.Spec, error) {
	p, err := s.prober(s.etcd, etcdClient)
	if err != nil {
		return supervisor.Spec{}, err
	}
	address := s.address("https", Etcd)
	return supervisor.Spec{
		Address: address,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(Etcd, etcdPeer); err != nil {
				return nil, err
			}
			return s.command(Etcd, []string{
				"--data-dir=" + s.home.Data(),
				"--client-address=" + s.ports.Address(Etcd),
				"--peer-address=" + s.ports.Address(etcdPeer),
				"--ca-file=" + s.etcd.CertFile,
				"--cert-file=" + s.cert(Etcd),
				"--key-file=" + s.key(Etcd),
			}), nil
		},
		Ready: p.isReady(address),
		Settle: func(context.Context) error {
			s.ports.Pin(Etcd)
			return nil
		},
	}, nil
}
