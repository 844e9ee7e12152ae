package component

import (
	"fmt"
	"os/exec"

	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/supervisor"
)

// schedulerConfig shortens the back-off: the scheduler retries a pod one second after a node
// was added, however often it tried the pod before.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %q
  qps: 300
  burst: 500
leaderElection:
  leaderElect: false
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
`

func (s *Sandbox) buildSchedulerSpec() (supervisor.Spec, error) {
	p, err := s.newTLSProber(s.cluster, probeClient)
	if err != nil {
		return supervisor.Spec{}, err
	}
	address := s.makeAddressFunc("https", Scheduler)
	return supervisor.Spec{
		Address: address,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(Scheduler); err != nil {
				return nil, err
			}
			config := s.home.Etc("kube-scheduler.yaml")
			if err := home.Write(config, fmt.Appendf(nil, schedulerConfig, s.home.Kubeconfig(Scheduler))); err != nil {
				return nil, err
			}
			return s.buildCommand(Scheduler, append(s.buildServingArgs(Scheduler), "--config="+config)), nil
		},
		Ready: p.checkReadyz(address),
	}, nil
}
