package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
)

// inNode is set in the environment of the process that TestMultus starts in network and mount
// namespaces of its own.
const inNode = "CROFT_TEST_IN_NODE"

// cniNode is a node from the point of view of a container runtime and the CNI plugins: a
// network namespace with an interface in each secondary network, and a mount namespace with an
// /etc of its own.
type cniNode struct {
	*cluster
	dir string
	// multus is the configuration that the runtime passes to Multus.
	multus string
	// zone is the zone of the node in each network, by the network's name.
	zone map[string]v1alpha1.SecondaryNetworkZone
}

// runInNamespaces runs the test in a process that has network and mount namespaces of its own.
func runInNamespaces(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), "unshare", "--net", "--mount", "ip", "link", "add", "name", "near", "type", "veth", "peer", "name", "far").CombinedOutput(); err != nil {
		t.Skipf("needs the right to make network namespaces and veth pairs in them: %v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--net", "--mount", os.Args[0], "-test.run=^TestMultus$", "-test.v", "-test.timeout=20m")
	cmd.Env = append(os.Environ(), inNode+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// runCommand runs a command of the node's operating system.
func (n *cniNode) runCommand(t *testing.T, args ...string) string {
	t.Helper()
	return runCommand(t, exec.CommandContext(t.Context(), args[0], args[1:]...), "").expectExit(t, 0).stdout
}

// prepareNode sets up the node. The far end of each interface represents the VPC, and has the
// address of the gateway in every zone.
func (n *cniNode) prepareNode(t *testing.T) {
	etc := filepath.Join(n.dir, "etc")
	n.runCommand(t, "cp", "-a", "/etc", etc)
	n.runCommand(t, "mount", "--bind", etc, "/etc")
	t.Cleanup(func() { n.unmountPath(t, "/etc") })
	for _, dir := range []string{"/etc/cni/net.d/whereabouts.d", "/etc/cni/net.d/croft.d"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.runCommand(t, "ip", "link", "set", "lo", "up")
	for network, gateways := range map[string][]string{"n4": {"10.0.4.1/24", "10.0.5.1/24"}, "n6": {"10.0.6.1/24", "10.0.7.1/24"}} {
		n.runCommand(t, "ip", "link", "add", "name", "eth-"+network, "type", "veth", "peer", "name", "vpc-"+network)
		n.runCommand(t, "ip", "link", "property", "add", "dev", "eth-"+network, "altname", secondary.LinkName(network))
		n.runCommand(t, "ip", "link", "set", "vpc-"+network, "up")
		for _, gateway := range gateways {
			n.runCommand(t, "ip", "address", "add", gateway, "dev", "vpc-"+network)
		}
	}
}

// unmountPath undoes a mount when the test has ended, so that its directory can be removed.
func (n *cniNode) unmountPath(t *testing.T, path string) {
	if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "umount", "--lazy", path).CombinedOutput(); err != nil {
		t.Errorf("umount %s: %v: %s", path, err, out)
	}
}

// findCNIBinaries returns the directory in which `make cni` builds the plugins.
func findCNIBinaries(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "bin", "cni"))
	if err == nil {
		_, err = os.Stat(filepath.Join(path, "multus"))
	}
	if err != nil {
		t.Fatalf("no CNI plugins: %v: run `make cni`", err)
	}
	return path
}

// installPlugins installs Multus and whereabouts from their own manifests, with only the rights in
// these, and configures them as their DaemonSets do.
func (n *cniNode) installPlugins(t *testing.T) {
	for _, name := range []string{"multus", "whereabouts"} {
		n.runKubectl(t, "", "apply", "-f", filepath.Join(findCNIBinaries(t), name+".yaml")).expectExit(t, 0)
		n.writeKubeconfig(t, name, filepath.Join("/etc/cni/net.d", name+".d", name+".kubeconfig"))
	}
	multus, err := json.Marshal(map[string]any{
		"cniVersion": "0.3.1", "name": "multus", "type": "multus",
		"kubeconfig": "/etc/cni/net.d/multus.d/multus.kubeconfig", "cniDir": filepath.Join(n.dir, "multus"),
		"confDir": "/etc/cni/net.d", "binDir": findCNIBinaries(t),
		"delegates": []any{map[string]any{
			"cniVersion": "0.3.1", "name": "cluster", "type": "bridge", "bridge": "cluster0", "isGateway": true,
			"ipam": map[string]any{"type": "host-local", "dataDir": filepath.Join(n.dir, "cluster"), "subnet": "10.244.0.0/24"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.multus = string(multus)
}

// writeKubeconfig writes a kubeconfig for a plugin's service account.
func (n *cniNode) writeKubeconfig(t *testing.T, account, path string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(n.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(n.runKubectl(t, "", "create", "token", account, "-n", "kube-system").expectExit(t, 0).stdout)
	for _, user := range config.AuthInfos {
		user.ClientCertificate, user.ClientKey, user.ClientCertificateData, user.ClientKeyData = "", "", nil, nil
		user.Token = token
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
}

// createPod creates a Deployment as a member of the tenant, and returns its pod. It also writes the
// zone files of the pod's node, as croft's agent does.
func (n *cniNode) createPod(t *testing.T) *corev1.Pod {
	deployment, _ := newNginxDeployment("core", 1)
	deployment.Spec.Template.Annotations = map[string]string{v1alpha1.NetworksAnnotation: "n4, n6"}
	createObjects(t, n.newMemberClient(t, "core-devs"), deployment)
	pod := &n.awaitRunningPods(t, "core", 1)[0]
	if got := pod.Annotations["k8s.v1.cni.cncf.io/networks"]; strings.ReplaceAll(got, " ", "") != "n4,n6" {
		t.Errorf("the pod asks Multus for %q, not for n4 and n6", got)
	}
	node := &corev1.Node{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Name: pod.Spec.NodeName}, node); err != nil {
		t.Fatal(err)
	}
	n.zone = map[string]v1alpha1.SecondaryNetworkZone{}
	var networks v1alpha1.SecondaryNetworkList
	if err := n.admin.List(t.Context(), &networks); err != nil {
		t.Fatal(err)
	}
	for _, network := range networks.Items {
		at := slices.IndexFunc(network.Spec.Zones, func(z v1alpha1.SecondaryNetworkZone) bool { return z.Zone == node.Labels[corev1.LabelTopologyZone] })
		if at < 0 {
			t.Fatalf("the pod runs in zone %q, which network %s is not in", node.Labels[corev1.LabelTopologyZone], network.Name)
		}
		n.zone[network.Name] = network.Spec.Zones[at]
	}
	n.writeZoneFiles(t)
	return pod
}

func (n *cniNode) writeZoneFiles(t *testing.T) {
	t.Helper()
	for network, zone := range n.zone {
		path, content := secondary.ZoneFile(network, &zone)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// callMultus calls Multus for a pod, as a container runtime does.
func (n *cniNode) callMultus(t *testing.T, verb string, pod *corev1.Pod, container, namespace string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(findCNIBinaries(t), "multus"))
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+verb, "CNI_CONTAINERID="+container, "CNI_NETNS="+namespace, "CNI_IFNAME=eth0",
		"CNI_PATH="+findCNIBinaries(t), fmt.Sprintf("CNI_ARGS=IgnoreUnknown=true;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;K8S_POD_INFRA_CONTAINER_ID=%s;K8S_POD_UID=%s",
			pod.Namespace, pod.Name, container, pod.UID))
	out := runCommand(t, cmd, n.multus)
	if out.status != 0 {
		return errors.New(out.String())
	}
	return nil
}

// createNetworkNamespace creates the network namespace of a pod's sandbox, and returns its path.
func (n *cniNode) createNetworkNamespace(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(n.dir, name)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.runCommand(t, "unshare", "--net="+path, "ip", "link", "set", "lo", "up")
	t.Cleanup(func() { n.unmountPath(t, path) })
	return path
}
