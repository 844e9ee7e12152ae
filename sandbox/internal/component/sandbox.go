package component

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/pki"
	"croft.dev/croft/sandbox/internal/supervisor"
)

// Sandbox is the state that the components share.
type Sandbox struct {
	home   home.Home
	config home.Config
	ports  *home.Ports
	binary string // this program; croft, Gatekeeper, Flux, Karpenter for AWS and real nodes are other programs

	// etcd has a CA of its own, as it should on any cluster: it trusts every certificate
	// of its CA, and only the API server may connect. The front proxy's CA is for the API
	// server's own requests to aggregated API servers.
	cluster, etcd, frontProxy *pki.Authority

	// Only the goroutine that settles Gatekeeper accesses this.
	gatekeeperServes bool
}

// Open prepares the keys and certificates of a sandbox. It issues new certificates each time,
// so that they do not expire on a sandbox that is kept.
func Open(h home.Home) (*Sandbox, error) {
	config, err := h.ReadConfig()
	if err != nil {
		return nil, err
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ports, err := h.ReadPorts()
	if err != nil {
		return nil, err
	}
	s := &Sandbox{home: h, config: config, ports: ports, binary: binary}
	if s.cluster, err = LoadClusterAuthority(h); err != nil {
		return nil, err
	}
	if s.etcd, err = pki.LoadOrCreate(h.PKI(), "etcd-ca"); err != nil {
		return nil, err
	}
	if s.frontProxy, err = pki.LoadOrCreate(h.PKI(), "front-proxy-ca"); err != nil {
		return nil, err
	}
	return s, s.issueCertificates()
}

// LoadClusterAuthority returns the CA by which the API server authenticates its clients.
func LoadClusterAuthority(h home.Home) (*pki.Authority, error) {
	return pki.LoadOrCreate(h.PKI(), "ca")
}

func (s *Sandbox) issueCertificates() error {
	local := []string{home.Loopback, "localhost"}
	for name, leaf := range map[string]pki.Leaf{
		Etcd:       {User: Etcd, Hosts: local}, // peers are both client and server
		etcdClient: {User: APIServer},
	} {
		if err := s.etcd.IssueTo(s.home.PKI(), name, leaf); err != nil {
			return err
		}
	}
	if err := s.frontProxy.IssueTo(s.home.PKI(), frontProxyClient, pki.Leaf{User: frontProxyClient}); err != nil {
		return err
	}
	for name, leaf := range map[string]pki.Leaf{
		APIServer:         {Hosts: append(local, apiServerNames...)},
		ControllerManager: {Hosts: local},
		Scheduler:         {Hosts: local},
		probeClient:       adminIdentity,
	} {
		if err := s.cluster.IssueTo(s.home.PKI(), name, leaf); err != nil {
			return err
		}
	}
	if err := s.issueGatekeeper(); err != nil {
		return err
	}
	return pki.EnsureSigningKey(s.home.PKI(), "sa")
}

// BuildSpecs returns the specs of this sandbox's components, in start order.
func (s *Sandbox) BuildSpecs() ([]supervisor.Spec, error) {
	specs := map[string]func() (supervisor.Spec, error){
		ControllerManager: s.buildControllerManagerSpec,
		Scheduler:         s.buildSchedulerSpec,
		Cloud:             s.buildCloudSpec,
		Karpenter:         s.buildKarpenterSpec,
		Kwok:              s.buildKwokSpec,
		Nodes:             s.buildNodesSpec,
		Gatekeeper:        s.buildGatekeeperSpec,
		Flux:              s.buildFluxSpec,
		Git:               s.buildGitSpec,
		Croft:             s.buildCroftSpec,
	}
	if s.config.AWS != nil {
		specs[Karpenter] = s.buildKarpenterAWSSpec
	}
	if err := s.claimMembers(); err != nil {
		return nil, err
	}
	var out []supervisor.Spec
	for _, name := range s.listComponents() {
		make := specs[name]
		if replica := s.findReplicaSpec(name); replica != nil {
			make = replica
		}
		if make == nil {
			return nil, fmt.Errorf("unknown component %q in %s", name, s.home.Dir)
		}
		spec, err := make()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		spec.Name, spec.Needs, spec.Log = name, s.findNeeds(name), s.home.Log(name)
		out = append(out, spec)
	}
	return out, nil
}

// listComponents returns the components of this sandbox in start order.
func (s *Sandbox) listComponents() []string {
	names := slices.Clone(s.config.Components)
	if s.config.Gatekeeper != "" {
		names = slices.Insert(names, slices.Index(names, APIServer)+1, Gatekeeper)
	}
	if s.config.Flux != "" {
		names = append(names, Git, Flux)
	}
	if s.config.AWS != nil {
		names = slices.Insert(names, slices.Index(names, APIServer)+1, Cloud)
	}
	if i := slices.Index(names, Kwok); i >= 0 && s.config.Nodes != "" {
		names[i] = Nodes
	}
	if s.config.Croft != "" {
		names = append(names, Croft)
	}
	return s.addReplicas(names)
}

// findNeeds returns the dependencies of a component. Karpenter starts after its account, and croft
// after all API servers, whose addresses it needs. The controller manager, which creates pods,
// starts after Gatekeeper: the API server calls Gatekeeper only once it runs, so that a resumed
// sandbox's pods would bypass it.
func (s *Sandbox) findNeeds(name string) []string {
	if all, ok := s.findReplicaNeeds(name); ok {
		return all
	}
	if name == ControllerManager && s.config.Gatekeeper != "" {
		return []string{APIServer, Gatekeeper}
	}
	if name == Karpenter && s.config.AWS != nil {
		return []string{APIServer, Cloud}
	}
	if name == Croft {
		return s.listAPIServers()
	}
	return needs[name]
}

// buildCommand returns a command that runs this program as a component.
func (s *Sandbox) buildCommand(name string, args []string, env ...string) *exec.Cmd {
	cmd := exec.Command(s.binary, append([]string{"component", name, "--"}, args...)...)
	cmd.Dir = s.home.Dir
	cmd.Env = slices.Concat(filterEnv(), collectRarely(), env)
	return cmd
}

// filterEnv returns the part of the environment that components inherit. Their options must not
// depend on the shell of `up`: Karpenter and kwok read most of their options from the
// environment.
func filterEnv() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "USER", "TMPDIR", "TZ"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func (s *Sandbox) certPath(name string) string { return filepath.Join(s.home.PKI(), name+".crt") }
func (s *Sandbox) keyPath(name string) string  { return filepath.Join(s.home.PKI(), name+".key") }

// makeAddressFunc returns a function that returns the URL of a claimed port.
func (s *Sandbox) makeAddressFunc(scheme, port string) func() string {
	return func() string {
		if s.ports.Port(port) == 0 {
			return ""
		}
		return scheme + "://" + s.ports.Address(port)
	}
}
