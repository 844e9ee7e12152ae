package component

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"

	"croft.dev/croft/sandbox/internal/bootstrap"
	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/supervisor"
)

const (
	frontProxyClient = "front-proxy-client"

	serviceRange = "10.96.0.0/16"
	issuer       = "https://kubernetes.default.svc.cluster.local"
)

// apiServerNames are the names of the API server's Service, and its address, which is the first
// of the range. The certificate has them in addition to the local names.
var apiServerNames = []string{
	"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "10.96.0.1",
}

func (s *Sandbox) buildAPIServerSpec(server string) (supervisor.Spec, error) {
	p, err := s.newTLSProber(s.cluster, probeClient)
	if err != nil {
		return supervisor.Spec{}, err
	}
	address := s.makeAddressFunc("https", server)
	return supervisor.Spec{
		Address: address,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(server); err != nil {
				return nil, err
			}
			if server == APIServer {
				if err := s.writeKubeconfigs(); err != nil {
					return nil, err
				}
			}
			nodesArgs, err := s.buildNodesArgs()
			if err != nil {
				return nil, err
			}
			cmd := s.buildCommand(APIServer, slices.Concat(s.buildAPIServerArgs(server), s.buildAuditArgs(), nodesArgs, buildWithoutArgs(s.config.Without), s.config.APIServerArgs))
			if program := s.findAPIServerProgram(server); program != "" {
				cmd.Path = program
				cmd.Args = slices.Replace(cmd.Args, 0, 4, program) // this program, component, its name, --
			}
			return cmd, nil
		},
		Ready: p.checkReadyz(address),
		Settle: func(ctx context.Context) error {
			s.ports.Pin(server)
			if server != APIServer {
				return nil
			}
			gatekeepers, err := s.readGatekeeperObjects()
			if err != nil {
				return supervisor.MarkPermanent(err)
			}
			flux, err := s.buildFluxObjects()
			if err != nil {
				return supervisor.MarkPermanent(err)
			}
			providers, err := s.readAWSObjects()
			if err != nil {
				return supervisor.MarkPermanent(err)
			}
			dns, err := s.readDNSObjects()
			if err != nil {
				return supervisor.MarkPermanent(err)
			}
			err = bootstrap.Install(ctx, s.home.Kubeconfig(Admin), slices.Concat(gatekeepers, flux, providers, dns)...)
			if errors.As(err, new(*bootstrap.InvalidError)) {
				err = supervisor.MarkPermanent(fmt.Errorf("the API server refuses objects that this binary was built with: correct them and build again: %w", err))
			}
			return err
		},
	}, nil
}

// findAPIServerProgram returns the path of an API server's program; "" means this program.
func (s *Sandbox) findAPIServerProgram(server string) string {
	programs := s.config.APIServerPrograms
	if len(programs) == 0 {
		return ""
	}
	return programs[min(slices.Index(s.listAPIServers(), server), len(programs)-1)]
}

func (s *Sandbox) buildAPIServerArgs(server string) []string {
	return []string{
		"--bind-address=" + home.Loopback,
		"--secure-port=" + strconv.Itoa(s.ports.Port(server)),
		"--tls-cert-file=" + s.certPath(APIServer),
		"--tls-private-key-file=" + s.keyPath(APIServer),
		"--client-ca-file=" + s.cluster.CertFile,

		"--etcd-servers=" + s.joinEtcdServers(server),
		"--etcd-cafile=" + s.etcd.CertFile,
		"--etcd-certfile=" + s.certPath(etcdClient),
		"--etcd-keyfile=" + s.keyPath(etcdClient),

		"--service-cluster-ip-range=" + serviceRange,
		// An endpoint may not have a loopback address, and the API server has no
		// other. No component of a sandbox needs the endpoints.
		"--advertise-address=" + home.Loopback,
		"--endpoint-reconciler-type=none",

		"--service-account-issuer=" + issuer,
		"--service-account-signing-key-file=" + s.keyPath("sa"),
		"--service-account-key-file=" + s.home.PKI("sa.pub"),

		"--requestheader-client-ca-file=" + s.frontProxy.CertFile,
		"--requestheader-allowed-names=" + frontProxyClient,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + s.certPath(frontProxyClient),
		"--proxy-client-key-file=" + s.keyPath(frontProxyClient),

		"--authorization-mode=Node,RBAC",
		// In addition to the default plugins, such as PodSecurity and ServiceAccount.
		"--enable-admission-plugins=NodeRestriction",
		// As on managed clusters: admission decides what a pod may do.
		"--allow-privileged=true",
		"--profiling=false",
	}
}
