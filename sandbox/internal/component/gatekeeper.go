package component

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/sandbox/internal/bootstrap"
	"croft.dev/croft/sandbox/internal/gatekeeper"
	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/pki"
	"croft.dev/croft/sandbox/internal/service"
	"croft.dev/croft/sandbox/internal/supervisor"
)

const (
	gatekeeperHealth  = "gatekeeper-health"
	gatekeeperService = "gatekeeper-service"
	gatekeeperMetrics = "gatekeeper-metrics"
)

func (s *Sandbox) buildGatekeeperSpec() (supervisor.Spec, error) {
	address := s.makeAddressFunc("http", gatekeeperHealth)
	// Gatekeeper is ready only when it has processed all existing templates, constraints and
	// mutators, and its webhook serves.
	ready := newProber(nil).checkReadyz(address)
	return supervisor.Spec{
		Address: address,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(Gatekeeper, gatekeeperHealth, gatekeeperMetrics); err != nil {
				return nil, err
			}
			cmd := exec.Command(s.config.Gatekeeper, s.buildGatekeeperArgs()...)
			cmd.Dir = s.home.Dir
			cmd.Env = append(filterEnv(),
				"POD_NAMESPACE="+gatekeeper.Namespace,
				"POD_NAME="+gatekeeper.PodName,
			)
			return cmd, nil
		},
		Ready: ready,
		Settle: func(ctx context.Context) error {
			if err := s.serveGatekeeper(ready); err != nil {
				return err
			}
			return s.installGatekeeperWebhooks(ctx)
		},
	}, nil
}

// buildGatekeeperArgs returns the arguments of one process that does the work of all Gatekeeper's
// pods. Upstream runs the webhooks and the audit in separate pods; without --operation, one
// process does both.
func (s *Sandbox) buildGatekeeperArgs() []string {
	args := []string{
		"--kubeconfig=" + s.home.Kubeconfig(Gatekeeper),
		"--host=" + home.Loopback,
		"--port=" + strconv.Itoa(s.ports.Port(Gatekeeper)),
		"--health-addr=" + s.ports.Address(gatekeeperHealth),
		"--metrics-addr=" + s.ports.Address(gatekeeperMetrics),
		// The default backend listens on every interface. This one sends metrics to an
		// address where nothing listens, for the first time after a year.
		"--metrics-backend=opentelemetry",
		"--otlp-endpoint=" + s.ports.Address(gatekeeperMetrics),
		"--otlp-metric-interval=8760h",
		"--disable-cert-rotation",
		"--cert-dir=" + s.gatekeeperCertDir(),
		"--api-cache-dir=" + s.home.Path("gatekeeper-audit"),
		// The default waits until Services no longer route to the pod. Here there are none.
		"--shutdown-delay=0",
		// As in upstream's manifest.
		"--exempt-namespace=" + gatekeeper.Namespace,
		"--disable-opa-builtin={http.send}",
	}
	if s.config.Unaudited {
		// The operations of upstream's webhook pods, without those of its audit pod.
		args = append(args, "--operation=webhook,mutation-webhook,generate")
	}
	return args
}

// readGatekeeperObjects returns the objects that must exist before Gatekeeper starts.
func (s *Sandbox) readGatekeeperObjects() ([]*unstructured.Unstructured, error) {
	if s.config.Gatekeeper == "" {
		return nil, nil
	}
	manifest, err := gatekeeper.Read(gatekeeper.ManifestPath(s.config.Gatekeeper))
	if err != nil {
		return nil, err
	}
	return append(manifest.Objects, gatekeeper.NewPod()), nil
}

// serveGatekeeper listens on the address in the webhook configurations, and forwards requests
// to Gatekeeper. The address stays the same when Gatekeeper restarts. No request passes until
// Gatekeeper is ready again: its webhook would answer before it has read any mutator, and
// admit pods unchanged.
func (s *Sandbox) serveGatekeeper(ready func(context.Context) error) error {
	if s.gatekeeperServes {
		return nil
	}
	if err := s.ports.Claim(gatekeeperService); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.ports.Address(gatekeeperService))
	if err != nil {
		return err
	}
	s.gatekeeperServes = true
	// The goroutine ends with the supervisor's process.
	go func() {
		err := service.Forward(listener, func() string { return s.ports.Address(Gatekeeper) }, ready)
		if err != nil {
			slog.Error("the API server cannot reach Gatekeeper any more", "error", err)
		}
	}()
	return nil
}

// installGatekeeperWebhooks installs Gatekeeper's webhooks, and succeeds once the API server calls them.
func (s *Sandbox) installGatekeeperWebhooks(ctx context.Context) error {
	manifest, err := gatekeeper.Read(gatekeeper.ManifestPath(s.config.Gatekeeper))
	if err != nil {
		return err
	}
	configurations, err := manifest.BuildWebhooks(s.ports.Address(gatekeeperService), s.cluster.EncodePEM())
	if err != nil {
		return supervisor.MarkPermanent(err)
	}
	admin := s.home.Kubeconfig(Admin)
	if err := bootstrap.InstallWebhooks(ctx, admin, configurations); err != nil {
		return err
	}
	return gatekeeper.CheckCalls(ctx, admin)
}

// issueGatekeeper writes Gatekeeper's certificate, whose file names are fixed.
func (s *Sandbox) issueGatekeeper() error {
	if s.config.Gatekeeper == "" {
		return nil
	}
	if err := os.MkdirAll(s.gatekeeperCertDir(), 0o700); err != nil {
		return fmt.Errorf("certificate of Gatekeeper: %w", err)
	}
	return s.cluster.IssueTo(s.gatekeeperCertDir(), "tls", pki.Leaf{Hosts: []string{home.Loopback, "localhost"}})
}

func (s *Sandbox) gatekeeperCertDir() string { return s.home.PKI(Gatekeeper) }
