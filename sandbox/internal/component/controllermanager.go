package component

import (
	"cmp"
	"context"
	"errors"
	"os/exec"
	"strconv"

	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/supervisor"
)

func (s *Sandbox) buildControllerManagerSpec() (supervisor.Spec, error) {
	p, err := s.newTLSProber(s.cluster, probeClient)
	if err != nil {
		return supervisor.Spec{}, err
	}
	address := s.makeAddressFunc("https", ControllerManager)
	apiServer := s.makeAddressFunc("https", APIServer)
	qps := cmp.Or(s.config.ControllerQPS, 300)
	controllers := "*"
	if !s.config.TypeChecks {
		// This controller compiles each expression of each policy for each kind that the
		// policy matches, and writes warnings to the policy's status. croft's policies
		// take one core ten to twenty seconds.
		controllers += ",-validatingadmissionpolicy-status-controller"
	}
	return supervisor.Spec{
		Address: address,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(ControllerManager); err != nil {
				return nil, err
			}
			return s.buildCommand(ControllerManager, append(s.buildServingArgs(ControllerManager),
				// Each controller has its own service account, as in other clusters.
				"--use-service-account-credentials=true",
				"--service-account-private-key-file="+s.keyPath("sa"),
				"--root-ca-file="+s.cluster.CertFile,
				"--cluster-signing-cert-file="+s.cluster.CertFile,
				"--cluster-signing-key-file="+s.cluster.KeyFile,
				"--service-cluster-ip-range="+serviceRange,
				"--leader-elect=false",
				"--controllers="+controllers,
				// The defaults, 20 and 30, would slow the sandbox down. --controller-qps
				// sets the limits of another cluster.
				"--kube-api-qps="+strconv.Itoa(qps),
				"--kube-api-burst="+strconv.Itoa(qps*3/2),
			)), nil
		},
		// The controller manager answers before its controllers work. Every client first
		// needs the default service account, without which no pod is admitted.
		Ready: func(ctx context.Context) error {
			if err := p.checkURL(ctx, address()+"/healthz"); err != nil {
				return err
			}
			if p.checkURL(ctx, apiServer()+"/api/v1/namespaces/default/serviceaccounts/default") != nil {
				return errors.New("its controllers have not created the default service account yet")
			}
			return nil
		},
	}, nil
}

// buildServingArgs returns the arguments that the controller manager and the scheduler have in
// common.
func (s *Sandbox) buildServingArgs(name string) []string {
	return []string{
		"--bind-address=" + home.Loopback,
		"--secure-port=" + strconv.Itoa(s.ports.Port(name)),
		"--tls-cert-file=" + s.certPath(name),
		"--tls-private-key-file=" + s.keyPath(name),
		"--client-ca-file=" + s.cluster.CertFile,
		"--kubeconfig=" + s.home.Kubeconfig(name),
		"--authentication-kubeconfig=" + s.home.Kubeconfig(name),
		"--authorization-kubeconfig=" + s.home.Kubeconfig(name),
		"--profiling=false",
	}
}
