package component

import (
	"os/exec"
	"time"

	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/instancetypes"
	"croft.dev/croft/sandbox/internal/supervisor"
)

const (
	karpenterHealth  = "karpenter-health"
	karpenterMetrics = "karpenter-metrics"
)

// karpenterEnv is Karpenter's environment for any provider.
var karpenterEnv = []string{
	"KARPENTER_SERVICE=karpenter",
	"SYSTEM_NAMESPACE=karpenter",
	"DISABLE_LEADER_ELECTION=true",
	// The time to wait for more pods before deciding on nodes.
	"BATCH_IDLE_DURATION=500ms",
	"BATCH_MAX_DURATION=2s",
}

func (s *Sandbox) buildKarpenterArgs() []string {
	return []string{
		"--kubeconfig=" + s.home.Kubeconfig(Karpenter),
		"--health-address=" + s.ports.Address(karpenterHealth),
		"--metrics-address=" + s.ports.Address(karpenterMetrics),
	}
}

func (s *Sandbox) buildKarpenterSpec() (supervisor.Spec, error) {
	address := s.makeAddressFunc("http", karpenterHealth)
	return supervisor.Spec{
		Address: address,
		// Karpenter takes seconds to end its loops, and has no work to finish.
		Grace: 500 * time.Millisecond,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(karpenterHealth, karpenterMetrics); err != nil {
				return nil, err
			}
			types, err := instancetypes.EncodeJSON(s.config.Zones)
			if err != nil {
				return nil, err
			}
			file := s.home.Etc("instance-types.json")
			if err := home.Write(file, types); err != nil {
				return nil, err
			}
			return s.buildCommand(Karpenter, s.buildKarpenterArgs(),
				append(karpenterEnv, "INSTANCE_TYPES_FILE_PATH="+file)...,
			), nil
		},
		Ready: newProber(nil).checkReadyz(address),
	}, nil
}
