package component

import (
	_ "embed"
	"os/exec"
	"strings"

	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"

	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/supervisor"
)

//go:embed node-initialize.yaml
var nodeInitialize string

// stages are kwok's own stages except for the first: nodes become ready and stay ready, pods
// run, pods of jobs complete, and deleted pods are removed.
var stages = []string{
	nodeInitialize,
	nodeheartbeat.DefaultNodeHeartbeatWithLease,
	podfast.DefaultPodReady,
	podfast.DefaultPodComplete,
	podfast.DefaultPodDelete,
}

func (s *Sandbox) buildKwokSpec() (supervisor.Spec, error) {
	address := s.makeAddressFunc("http", Kwok)
	return supervisor.Spec{
		Address: address,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(Kwok); err != nil {
				return nil, err
			}
			config := s.home.Etc("kwok.yaml")
			if err := home.Write(config, []byte(strings.Join(stages, "---\n"))); err != nil {
				return nil, err
			}
			return s.buildCommand(Kwok, []string{
				"--config=" + config,
				"--kubeconfig=" + s.home.Kubeconfig(Kwok),
				"--server-address=" + s.ports.Address(Kwok),
				// Karpenter's kwok provider gives its nodes this annotation.
				"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
				"--node-lease-duration-seconds=40",
				// The default has room for 254 pods.
				"--cidr=10.244.0.0/16",
			},
				// kwok would merge the configuration in the user's own ~/.kwok.
				"KWOK_WORKDIR="+s.home.Etc("kwok"),
			), nil
		},
		Ready: newProber(nil).checkReadyz(address),
	}, nil
}
