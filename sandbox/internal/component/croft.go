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

func (s *Sandbox) buildCroftSpec() (supervisor.Spec, error) {
	address := s.makeAddressFunc("http", croftHealth)
	return supervisor.Spec{
		Address: address,
		Prepare: s.buildInstallCommand,
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
			if len(s.listAPIServers()) > 1 {
				cmd.Args = append(cmd.Args, "--api-servers="+s.joinAPIServerAddresses())
			}
			if s.config.AWS != nil {
				cmd.Env = append(os.Environ(), s.buildAWSEnv("AKIACROFT")...)
			}
			return cmd, nil
		},
		Ready: newProber(nil).checkReadyz(address),
	}, nil
}

// buildInstallCommand runs croft install with the rights of an administrator. The operator then runs
// with only the rights that the installation grants.
func (s *Sandbox) buildInstallCommand() *exec.Cmd {
	return exec.Command(s.config.Croft, "install", "--kubeconfig", s.home.Kubeconfig(Admin))
}
