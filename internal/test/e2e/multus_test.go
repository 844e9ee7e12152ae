package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/diagnose/doctor"
	"croft.dev/croft/internal/test/sandbox"
)

// inNode is set in the environment of the process that TestMultus starts in network and mount
// namespaces of its own.
const inNode = "CROFT_TEST_IN_NODE"

// signalling is an estate with a pool in two secondary networks of two zones. The type is
// host-device because test machines may lack ipvlan and macvlan.
const signalling = `platform:
  clusterName: demo
  tenantDomain: tenants.example.org
  admins: [platform-admins]
  nodeClass: {kwok: {}}
secondaryNetworks:
  n4:
    type: host-device
    zones:
      - {zone: us-west-2a, subnet: subnet-0a4, cidr: 10.0.4.0/24, podCIDR: 10.0.4.32/28}
      - {zone: us-west-2b, subnet: subnet-0b4, cidr: 10.0.5.0/24, podCIDR: 10.0.5.32/28}
  n6:
    type: host-device
    sbr: true
    routes: [10.60.0.0/16]
    zones:
      - {zone: us-west-2a, subnet: subnet-0a6, cidr: 10.0.6.0/24, podCIDR: 10.0.6.32/28, gateway: 10.0.6.1}
      - {zone: us-west-2b, subnet: subnet-0b6, cidr: 10.0.7.0/24, podCIDR: 10.0.7.32/28, gateway: 10.0.7.1}
pools:
  telco:
    instances:
      requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [us-west-2a, us-west-2b]}]
    secondaryNetworks: [n4, n6]
tenants:
  core:
    pool: telco
    networks: [n4, n6]
    access: [{group: core-devs, role: operator}]
`

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

// TestMultus attaches a tenant's pod to secondary networks as a container runtime does: by
// calling the real Multus, whereabouts and plugins with the definitions that croft wrote. It
// fails if croft writes a definition or a zone file that they do not accept, if it does not
// pass on the networks that a pod requests, or if its policies block Multus.
func TestMultus(t *testing.T) {
	sandbox.Thorough(t) // it tests plugins that croft does not change
	if os.Getenv(inNode) == "" {
		inNamespaces(t)
		return
	}
	n := &cniNode{dir: t.TempDir()}
	n.prepare(t)
	n.cluster = startWithCroft(t)
	if err := n.InstallCRDs(t.Context(), sandbox.Multus); err != nil {
		t.Fatal(err)
	}
	n.plugins(t)
	n.declare(t, signalling)
	n.account(t, "core")
	pod := n.pod(t)
	t.Run("Attached", func(t *testing.T) { testMultusAttached(t, n, pod) })
	t.Run("WithoutZoneFile", func(t *testing.T) { testMultusWithoutZoneFile(t, n, pod) })
	t.Run("NoAddressLeft", func(t *testing.T) { testMultusNoAddressLeft(t, n, pod) })
}

// inNamespaces runs the test in a process that has network and mount namespaces of its own.
func inNamespaces(t *testing.T) {
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

// command runs a command of the node's operating system.
func (n *cniNode) command(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, exec.CommandContext(t.Context(), args[0], args[1:]...), "").exits(t, 0).stdout
}

// prepare sets up the node. The far end of each interface represents the VPC, and has the
// address of the gateway in every zone.
func (n *cniNode) prepare(t *testing.T) {
	etc := filepath.Join(n.dir, "etc")
	n.command(t, "cp", "-a", "/etc", etc)
	n.command(t, "mount", "--bind", etc, "/etc")
	t.Cleanup(func() { n.unmount(t, "/etc") })
	for _, dir := range []string{"/etc/cni/net.d/whereabouts.d", "/etc/cni/net.d/croft.d"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.command(t, "ip", "link", "set", "lo", "up")
	for network, gateways := range map[string][]string{"n4": {"10.0.4.1/24", "10.0.5.1/24"}, "n6": {"10.0.6.1/24", "10.0.7.1/24"}} {
		n.command(t, "ip", "link", "add", "name", "eth-"+network, "type", "veth", "peer", "name", "vpc-"+network)
		n.command(t, "ip", "link", "property", "add", "dev", "eth-"+network, "altname", secondary.LinkName(network))
		n.command(t, "ip", "link", "set", "vpc-"+network, "up")
		for _, gateway := range gateways {
			n.command(t, "ip", "address", "add", gateway, "dev", "vpc-"+network)
		}
	}
}

// unmount undoes a mount when the test has ended, so that its directory can be removed.
func (n *cniNode) unmount(t *testing.T, path string) {
	if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "umount", "--lazy", path).CombinedOutput(); err != nil {
		t.Errorf("umount %s: %v: %s", path, err, out)
	}
}

// binaries returns the directory in which `make cni` builds the plugins.
func binaries(t *testing.T) string {
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

// plugins installs Multus and whereabouts from their own manifests, with only the rights in
// these, and configures them as their DaemonSets do.
func (n *cniNode) plugins(t *testing.T) {
	for _, name := range []string{"multus", "whereabouts"} {
		n.kubectl(t, "", "apply", "-f", filepath.Join(binaries(t), name+".yaml")).exits(t, 0)
		n.writeKubeconfig(t, name, filepath.Join("/etc/cni/net.d", name+".d", name+".kubeconfig"))
	}
	multus, err := json.Marshal(map[string]any{
		"cniVersion": "0.3.1", "name": "multus", "type": "multus",
		"kubeconfig": "/etc/cni/net.d/multus.d/multus.kubeconfig", "cniDir": filepath.Join(n.dir, "multus"),
		"confDir": "/etc/cni/net.d", "binDir": binaries(t),
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
	token := strings.TrimSpace(n.kubectl(t, "", "create", "token", account, "-n", "kube-system").exits(t, 0).stdout)
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

// pod creates a Deployment as a member of the tenant, and returns its pod. It also writes the
// zone files of the pod's node, as croft's agent does.
func (n *cniNode) pod(t *testing.T) *corev1.Pod {
	deployment, _ := nginxes("core", 1)
	deployment.Spec.Template.Annotations = map[string]string{v1alpha1.NetworksAnnotation: "n4, n6"}
	create(t, n.member(t, "core-devs"), deployment)
	pod := &n.running(t, "core", 1)[0]
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

// call calls Multus for a pod, as a container runtime does.
func (n *cniNode) call(t *testing.T, verb string, pod *corev1.Pod, container, namespace string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(binaries(t), "multus"))
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+verb, "CNI_CONTAINERID="+container, "CNI_NETNS="+namespace, "CNI_IFNAME=eth0",
		"CNI_PATH="+binaries(t), fmt.Sprintf("CNI_ARGS=IgnoreUnknown=true;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;K8S_POD_INFRA_CONTAINER_ID=%s;K8S_POD_UID=%s",
			pod.Namespace, pod.Name, container, pod.UID))
	out := run(t, cmd, n.multus)
	if out.status != 0 {
		return errors.New(out.String())
	}
	return nil
}

// sandboxed creates the network namespace of a pod's sandbox, and returns its path.
func (n *cniNode) sandboxed(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(n.dir, name)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.command(t, "unshare", "--net="+path, "ip", "link", "set", "lo", "up")
	t.Cleanup(func() { n.unmount(t, path) })
	return path
}

// attachment is a network in the status that Multus writes.
type attachment struct {
	Name, Interface string
	IPs             []netip.Addr
}

// attachments returns the networks that Multus wrote into the pod's annotation.
func (n *cniNode) attachments(t *testing.T, pod *corev1.Pod) map[string]attachment {
	t.Helper()
	now := &corev1.Pod{}
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), now); err != nil {
		t.Fatal(err)
	}
	var all []attachment
	text := now.Annotations["k8s.v1.cni.cncf.io/network-status"]
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("the pod's network status: %v: %q", err, text)
	}
	found := map[string]attachment{}
	for _, a := range all {
		found[a.Name] = a
	}
	return found
}

// allocated returns the number of addresses that whereabouts has allocated.
func (n *cniNode) allocated(t *testing.T) int {
	t.Helper()
	out := n.kubectl(t, "", "get", "ippools.whereabouts.cni.cncf.io", "-A", "-o", "json").exits(t, 0).stdout
	var pools struct {
		Items []struct {
			Spec struct{ Allocations map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(out), &pools); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, pool := range pools.Items {
		total += len(pool.Spec.Allocations)
	}
	return total
}

// testMultusAttached fails if the pod does not get an interface with an address of its zone in
// each network, if there is no traffic on it, or if an address or interface is left afterwards.
func testMultusAttached(t *testing.T, n *cniNode, pod *corev1.Pod) {
	namespace := n.sandboxed(t, "attached")
	if err := n.call(t, "ADD", pod, "attached", namespace); err != nil {
		t.Fatal(err)
	}
	got := n.attachments(t, pod)
	for network, link := range map[string]string{"n4": "net1", "n6": "net2"} {
		a := got["core/"+network]
		reservation := netip.MustParsePrefix(n.zone[network].PodCIDR)
		if a.Interface != link || len(a.IPs) != 1 || !reservation.Contains(a.IPs[0]) {
			t.Errorf("network %s: %+v, want %s with an address of %s", network, a, link, reservation)
			continue
		}
		has := n.command(t, "nsenter", "--net="+namespace, "ip", "-brief", "address", "show", link)
		if !strings.Contains(has, a.IPs[0].String()+"/24") {
			t.Errorf("network %s: %q lacks %s/24", network, has, a.IPs[0])
		}
	}
	n.reaches(t, namespace, netip.MustParsePrefix(n.zone["n4"].CIDR).Masked().Addr().Next())
	// n6 has its own routing table, for traffic from its address.
	if len(got["core/n6"].IPs) == 1 {
		route := n.command(t, "nsenter", "--net="+namespace, "ip", "route", "get", "10.60.0.1", "from", got["core/n6"].IPs[0].String())
		if !strings.Contains(route, "via "+n.zone["n6"].Gateway+" dev net2 table") {
			t.Errorf("from its address in n6 the pod reaches 10.60.0.1 by %s", route)
		}
	}
	eventually(t, moments, "the events of the pod's networks", func(ctx context.Context) error {
		var events corev1.EventList
		if err := n.admin.List(ctx, &events, client.InNamespace("core")); err != nil {
			return err
		}
		added := ""
		for _, e := range events.Items {
			if e.Reason == "AddedInterface" && e.InvolvedObject.UID == pod.UID {
				added += e.Message + "\n"
			}
		}
		if !strings.Contains(added, "from core/n4") || !strings.Contains(added, "from core/n6") {
			return fmt.Errorf("there are: %s", added)
		}
		return nil
	})
	if count := n.allocated(t); count != 2 {
		t.Errorf("%d addresses are allocated, not 2", count)
	}
	n.removed(t, pod, "attached", namespace)
}

// reaches fails if there is no connection from a network namespace to an address of the node's
// far end.
func (n *cniNode) reaches(t *testing.T, namespace string, address netip.Addr) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	n.command(t, "nsenter", "--net="+namespace, "timeout", "20", "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/%s/%d", address, port))
}

// removed deletes a pod's sandbox, and fails if an address or an interface remains allocated.
func (n *cniNode) removed(t *testing.T, pod *corev1.Pod, container, namespace string) {
	t.Helper()
	if err := n.call(t, "DEL", pod, container, namespace); err != nil {
		t.Fatal(err)
	}
	if count := n.allocated(t); count != 0 {
		t.Errorf("%d addresses are still allocated", count)
	}
	for network := range n.zone {
		n.command(t, "ip", "link", "show", secondary.LinkName(network))
	}
}

// testMultusWithoutZoneFile fails if a pod starts without an address, or with an address of
// another zone, on a node without the zone file.
func testMultusWithoutZoneFile(t *testing.T, n *cniNode, pod *corev1.Pod) {
	path, _ := secondary.ZoneFile("n6", ptr.To(n.zone["n6"]))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	namespace := n.sandboxed(t, "lost")
	if err := n.call(t, "ADD", pod, "lost", namespace); err == nil {
		t.Error("the pod was attached to n6")
	}
	n.writeZoneFiles(t)
	n.failed(t, namespace)
}

// failed moves the node's interfaces back from the sandbox of a pod that could not be attached.
// DEL does not do this if ADD of host-device failed halfway: it requires the interface to exist
// (containernetworking/plugins 1.9.1). When a sandbox is deleted, the kernel returns a physical
// interface to the host, but it would delete the veth that represents one here.
func (n *cniNode) failed(t *testing.T, namespace string) {
	t.Helper()
	for network := range n.zone {
		if exec.CommandContext(t.Context(), "ip", "link", "show", secondary.LinkName(network)).Run() == nil {
			continue
		}
		n.command(t, "nsenter", "--net="+namespace, "ip", "link", "set", secondary.LinkName(network), "netns", fmt.Sprint(os.Getpid()), "name", "eth-"+network)
	}
}

// testMultusNoAddressLeft fails if a pod starts when no address of the reservation is free,
// does not start when an address is released, or if croft does not report the full range.
func testMultusNoAddressLeft(t *testing.T, n *cniNode, pod *corev1.Pod) {
	// Sixteen addresses are allocated to other pods. whereabouts counts from the start of the
	// subnet, and the reservations of the estate start at its address 32.
	taken := map[string]any{}
	for i := 32; i < 32+16; i++ {
		taken[fmt.Sprint(i)] = map[string]string{"id": fmt.Sprint("other-", i), "podref": fmt.Sprint("core/other-", i), "ifname": "net1"}
	}
	n.allocate(t, "n4", taken)
	n.hasAddresses(t, "n4", metav1.ConditionFalse, v1alpha1.ReasonRangeFull)
	n.finds(t, "addresses", doctor.Problem, moments, "SecondaryNetwork/n4", "16 of 16 addresses")
	namespace := n.sandboxed(t, "beyond")
	if err := n.call(t, "ADD", pod, "beyond", namespace); err == nil || !strings.Contains(err.Error(), "Could not allocate IP in range") {
		t.Errorf("with no address left: %v", err)
	}
	n.failed(t, namespace)
	n.allocate(t, "n4", map[string]any{})
	n.hasAddresses(t, "n4", metav1.ConditionTrue, v1alpha1.ReasonAddressesAvailable)
	namespace = n.sandboxed(t, "next")
	if err := n.call(t, "ADD", pod, "next", namespace); err != nil {
		t.Fatal(err)
	}
	n.removed(t, pod, "next", namespace)
}

// hasAddresses waits until a network's condition AddressesAvailable has the status and the
// reason.
func (n *cniNode) hasAddresses(t *testing.T, network string, holds metav1.ConditionStatus, reason string) {
	t.Helper()
	eventually(t, moments, "the addresses of "+network, func(ctx context.Context) error {
		o := &v1alpha1.SecondaryNetwork{}
		if err := n.admin.Get(ctx, client.ObjectKey{Name: network}, o); err != nil {
			return err
		}
		c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionAddressesAvailable)
		if c == nil || c.Status != holds || c.Reason != reason {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
}

// allocate overwrites the allocations in a network's reservation in the node's zone.
func (n *cniNode) allocate(t *testing.T, network string, allocations map[string]any) {
	t.Helper()
	pools := n.kubectl(t, "", "get", "ippools.whereabouts.cni.cncf.io", "-n", "kube-system", "-o", "name").exits(t, 0).stdout
	zone := n.zone[network]
	first := strings.ReplaceAll(netip.MustParsePrefix(zone.PodCIDR).Addr().String(), ":", "-")
	cidr, _, _ := strings.Cut(zone.CIDR, "/")
	for pool := range strings.Lines(pools) {
		pool = strings.TrimSpace(pool)
		if !strings.Contains(pool, first) && !strings.Contains(pool, cidr) {
			continue
		}
		patch, err := json.Marshal([]any{map[string]any{"op": "replace", "path": "/spec/allocations", "value": allocations}})
		if err != nil {
			t.Fatal(err)
		}
		n.kubectl(t, "", "patch", pool, "-n", "kube-system", "--type=json", "-p", string(patch)).exits(t, 0)
		return
	}
	t.Fatalf("no pool of addresses for %s in %s", zone.PodCIDR, pools)
}
