package component

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"croft.dev/croft/sandbox/internal/bootstrap"
	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/pki"
	"croft.dev/croft/sandbox/internal/supervisor"
)

// buildNodesSpec runs real nodes instead of kwok's.
func (s *Sandbox) buildNodesSpec() (supervisor.Spec, error) {
	address := s.makeAddressFunc("http", Nodes)
	return supervisor.Spec{
		Address: address,
		Grace:   20 * time.Second, // it removes control groups
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(Nodes); err != nil {
				return nil, err
			}
			cmd := exec.Command(s.config.Nodes, "serve",
				"--dir="+s.home.Dir,
				"--programs="+filepath.Join(filepath.Dir(s.config.Nodes), "node"),
				"--api-server="+s.ports.Address(APIServer),
				"--health-address="+s.ports.Address(Nodes),
			)
			if s.config.Enforced {
				cmd.Args = append(cmd.Args, "--enforced")
			}
			cmd.Dir, cmd.Env = s.home.Dir, filterEnv()
			return cmd, nil
		},
		Ready: newProber(nil).checkReadyz(address),
	}, nil
}

// buildNodesArgs returns arguments with which the API server connects to kubelets and pods through
// the nodes' proxy, and writes the file that they name.
func (s *Sandbox) buildNodesArgs() ([]string, error) {
	if s.config.Nodes == "" {
		return nil, nil
	}
	file := s.home.Etc("egress.yaml")
	err := home.Write(file, []byte(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: `+NodesSocket(s.home)+`}}
`))
	return []string{
		"--egress-selector-config-file=" + file,
		"--kubelet-client-certificate=" + s.certPath(probeClient),
		"--kubelet-client-key=" + s.keyPath(probeClient),
		// No DNS server resolves the nodes' names.
		"--kubelet-preferred-address-types=InternalIP",
	}, err
}

// readDNSObjects returns the objects of the DNS server, which runs on real nodes only.
func (s *Sandbox) readDNSObjects() ([]*unstructured.Unstructured, error) {
	if s.config.Nodes == "" {
		return nil, nil
	}
	return bootstrap.DecodeDNS()
}

// NodesSocket returns the path of the nodes' proxy's socket. It is short, since the kernel
// limits it to 107 characters.
func NodesSocket(h home.Home) string {
	return filepath.Join(os.TempDir(), NodesCgroup(h)+".sock")
}

// NodesCgroup returns the name of the control groups of a sandbox's nodes.
func NodesCgroup(h home.Home) string {
	sum := sha256.Sum256([]byte(h.Dir))
	return "croft-sandbox-" + hex.EncodeToString(sum[:6])
}

// IssueNodeKubeconfig issues a kubeconfig for a program on a node. The program connects to the API
// server by an address that the server's certificate does not have.
func IssueNodeKubeconfig(h home.Home, server, user string, groups []string) ([]byte, error) {
	authority, err := LoadClusterAuthority(h)
	if err != nil {
		return nil, err
	}
	content, err := buildKubeconfig(authority, server, pki.Leaf{User: user, Groups: groups})
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		return nil, err
	}
	config.Clusters[contextName].TLSServerName = "localhost"
	return clientcmd.Write(*config)
}
