package component

import (
	"os"
	"os/exec"

	"croft.dev/croft/sandbox/internal/supervisor"
)

const (
	croftHealth  = "croft-health"
	croftMetrics = "croft-metrics"
)

func (s *Sandbox) croftSpec() (supervisor.Spec, error) {
	address := s.address("http", croftHealth)
	return supervisor.Spec{
		Address: address,
		Prepare: s.installCroft,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(croftHealth, croftMetrics); err != nil {
				return nil, err
			}
			cmd := exec.Command(s.config.Croft, "operator",
				"--kubeconfig="+s.home.Kubeconfig(Croft),
				"--leader-elect=false",
				"--health-addr="+s.ports.Address(croftHealth),
				"--metrics-addr="+s.ports.Address(croftMetrics),
			)
			if len(s.apiServers()) > 1 {
				cmd.Args = append(cmd.Args, "--api-servers="+s.apiServerAddresses())
			}
			if s.config.AWS != nil {
				cmd.Env = append(os.Environ(), s.awsEnv("AKIACROFT")...)
			}
			return cmd, nil
		},
		Ready: newProber(nil).isReady(address),
	}, nil
}

// installCroft runs croft install with the rights of an administrator. The operator then runs
// with only the rights that the installation grants.
func (s *Sandbox) installCroft() *exec.Cmd {
	return exec.Command(s.config.Croft, "install", "--kubeconfig", s.home.Kubeconfig(Admin))
}
