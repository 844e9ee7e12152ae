package realnode

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"sigs.k8s.io/yaml"
)

const (
	architecture = runtime.GOARCH
	registry     = bridgeAddr + ":5000"
	apiServer    = bridgeAddr + ":6443"
)

// Node is a real node.
type Node struct {
	// Name is the name of its Node object.
	Name string
	// Index is its number, from 1. Its addresses are derived from it.
	Index int
	// Dir is the directory of its files, Programs the directory of containerd, runc and the
	// CNI plugins; both are absolute.
	Dir, Programs string
	// Cgroup is the path of its control group below the hierarchies.
	Cgroup string
	// Kubeconfig has the kubelet's identity, ProxyKubeconfig kube-proxy's. ClientCA is the
	// file of the CA of the kubelet's clients.
	Kubeconfig, ProxyKubeconfig, ClientCA string
	// Enforced runs the network plugin, which uses PluginKubeconfig.
	Enforced         bool
	PluginKubeconfig string
}

func (n Node) programPath(name string) string { return filepath.Join(n.Programs, name) }

func (n Node) buildKubeletArgs() []string {
	return []string{
		"--config=/etc/kubernetes/kubelet.yaml",
		"--kubeconfig=" + n.Kubeconfig,
		"--hostname-override=" + n.Name,
		"--node-ip=" + nodeAddr(n.Index),
	}
}

func (n Node) buildProxyArgs() []string { return []string{"--config=/etc/kubernetes/kube-proxy.yaml"} }

// writeConfigs writes the configuration of the node's programs to the default paths, because
// add-ons read or extend it there.
func (n Node) writeConfigs() error {
	files := map[string]string{
		"/etc/containerd/config.toml":                 n.buildContainerdConfig(),
		"/etc/containerd/certs.d/_default/hosts.toml": hosts,
		"/etc/cni/net.d/10-nodes.conflist":            n.buildCNIConfig(),
		"/etc/kubernetes/resolv.conf":                 "nameserver " + bridgeAddr + "\n",
	}
	for path, object := range map[string]any{
		"/etc/kubernetes/kubelet.yaml":    n.buildKubeletConfig(),
		"/etc/kubernetes/kube-proxy.yaml": n.buildProxyConfig(),
	} {
		content, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		files[path] = string(content)
	}
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// hosts redirects requests for the images of all registries to the sandbox's own registry.
const hosts = `server = "http://` + registry + `"
[host."http://` + registry + `"]
  capabilities = ["pull", "resolve"]
`

func (n Node) buildContainerdConfig() string {
	return fmt.Sprintf(`version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]

[grpc]
  address = "/run/containerd/containerd.sock"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "sandbox/pause:1"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "/etc/containerd/certs.d"

[plugins."io.containerd.cri.v1.runtime"]
  # Machines without CAP_SYS_RESOURCE cannot lower it, and runc fails.
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = [%q, "/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = %q
`, n.Programs, n.programPath("runc"))
}

func (n Node) buildCNIConfig() string {
	return fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "nodes", "plugins": [
  {"type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}}
]}
`, podRange(n.Index))
}

// object is a configuration file. The Go types of the kubelet's and kube-proxy's configurations
// would write many fields that have no default.
type object = map[string]any

func (n Node) buildKubeletConfig() object {
	return object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": object{
			"anonymous": object{"enabled": false}, "webhook": object{"enabled": true},
			"x509": object{"clientCAFile": n.ClientCA},
		},
		"authorization":            object{"mode": "Webhook"},
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               n.Cgroup,
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"makeIPTablesUtilChains":   false,
		"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
		"clusterDNS":               []string{clusterDNS},
		"clusterDomain":            "cluster.local",
		"resolvConf":               "/etc/kubernetes/resolv.conf",
		"maxPods":                  40,
		// The kubelet must not evict pods or delete images because the machine's disk is full.
		"evictionHard":                 object{"memory.available": "50Mi", "nodefs.available": "0%", "imagefs.available": "0%", "nodefs.inodesFree": "0%"},
		"imageGCHighThresholdPercent":  100,
		"healthzBindAddress":           "127.0.0.1",
		"nodeStatusUpdateFrequency":    "5s",
		"shutdownGracePeriod":          "0s",
		"enableControllerAttachDetach": true,
	}
}

// clusterDNS is the address of the Service kube-dns.
const clusterDNS = "10.96.0.10"

func (n Node) buildProxyConfig() object {
	return object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode":             "nftables",
		"hostnameOverride": n.Name,
		"clientConnection": object{"kubeconfig": n.ProxyKubeconfig},
		"clusterCIDR":      "10.244.0.0/16",
		// The limits are settings of the machine, which a network namespace may not change.
		"conntrack":          object{"maxPerCore": 0, "min": 0},
		"healthzBindAddress": "127.0.0.1:10256",
		"metricsBindAddress": "127.0.0.1:10249",
	}
}
