package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/test/sandbox"
)

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

// TestMultus attaches a tenant's pod to secondary networks as a container runtime does: by
// calling the real Multus, whereabouts and plugins with the definitions that croft wrote. It
// fails if croft writes a definition or a zone file that they do not accept, if it does not
// pass on the networks that a pod requests, or if its policies block Multus.
func TestMultus(t *testing.T) {
	sandbox.Thorough(t) // it tests plugins that croft does not change
	if os.Getenv(inNode) == "" {
		runInNamespaces(t)
		return
	}
	n := &cniNode{dir: t.TempDir()}
	n.prepareNode(t)
	n.cluster = startWithCroft(t)
	if err := n.InstallCRDs(t.Context(), sandbox.Multus); err != nil {
		t.Fatal(err)
	}
	n.installPlugins(t)
	n.applyContent(t, signalling)
	n.awaitServiceAccount(t, "core")
	pod := n.createPod(t)
	t.Run("Attached", func(t *testing.T) { testMultusAttached(t, n, pod) })
	t.Run("WithoutZoneFile", func(t *testing.T) { testMultusWithoutZoneFile(t, n, pod) })
	t.Run("NoAddressLeft", func(t *testing.T) { testMultusNoAddressLeft(t, n, pod) })
}

// attachment is a network in the status that Multus writes.
type attachment struct {
	Name, Interface string
	IPs             []netip.Addr
}

// readAttachments returns the networks that Multus wrote into the pod's annotation.
func (n *cniNode) readAttachments(t *testing.T, pod *corev1.Pod) map[string]attachment {
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

// testMultusAttached fails if the pod does not get an interface with an address of its zone in
// each network, if there is no traffic on it, or if an address or interface is left afterwards.
func testMultusAttached(t *testing.T, n *cniNode, pod *corev1.Pod) {
	namespace := n.createNetworkNamespace(t, "attached")
	if err := n.callMultus(t, "ADD", pod, "attached", namespace); err != nil {
		t.Fatal(err)
	}
	got := n.readAttachments(t, pod)
	for network, link := range map[string]string{"n4": "net1", "n6": "net2"} {
		a := got["core/"+network]
		reservation := netip.MustParsePrefix(n.zone[network].PodCIDR)
		if a.Interface != link || len(a.IPs) != 1 || !reservation.Contains(a.IPs[0]) {
			t.Errorf("network %s: %+v, want %s with an address of %s", network, a, link, reservation)
			continue
		}
		has := n.runCommand(t, "nsenter", "--net="+namespace, "ip", "-brief", "address", "show", link)
		if !strings.Contains(has, a.IPs[0].String()+"/24") {
			t.Errorf("network %s: %q lacks %s/24", network, has, a.IPs[0])
		}
	}
	n.expectConnection(t, namespace, netip.MustParsePrefix(n.zone["n4"].CIDR).Masked().Addr().Next())
	// n6 has its own routing table, for traffic from its address.
	if len(got["core/n6"].IPs) == 1 {
		route := n.runCommand(t, "nsenter", "--net="+namespace, "ip", "route", "get", "10.60.0.1", "from", got["core/n6"].IPs[0].String())
		if !strings.Contains(route, "via "+n.zone["n6"].Gateway+" dev net2 table") {
			t.Errorf("from its address in n6 the pod reaches 10.60.0.1 by %s", route)
		}
	}
	awaitCondition(t, moments, "the events of the pod's networks", func(ctx context.Context) error {
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
	if count := n.countAllocated(t); count != 2 {
		t.Errorf("%d addresses are allocated, not 2", count)
	}
	n.deleteSandbox(t, pod, "attached", namespace)
}

// expectConnection fails if there is no connection from a network namespace to an address of the
// node's far end.
func (n *cniNode) expectConnection(t *testing.T, namespace string, address netip.Addr) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	n.runCommand(t, "nsenter", "--net="+namespace, "timeout", "20", "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/%s/%d", address, port))
}

// deleteSandbox deletes a pod's sandbox, and fails if an address or an interface remains allocated.
func (n *cniNode) deleteSandbox(t *testing.T, pod *corev1.Pod, container, namespace string) {
	t.Helper()
	if err := n.callMultus(t, "DEL", pod, container, namespace); err != nil {
		t.Fatal(err)
	}
	if count := n.countAllocated(t); count != 0 {
		t.Errorf("%d addresses are still allocated", count)
	}
	for network := range n.zone {
		n.runCommand(t, "ip", "link", "show", secondary.LinkName(network))
	}
}

// testMultusWithoutZoneFile fails if a pod starts without an address, or with an address of
// another zone, on a node without the zone file.
func testMultusWithoutZoneFile(t *testing.T, n *cniNode, pod *corev1.Pod) {
	path, _ := secondary.ZoneFile("n6", ptr.To(n.zone["n6"]))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	namespace := n.createNetworkNamespace(t, "lost")
	if err := n.callMultus(t, "ADD", pod, "lost", namespace); err == nil {
		t.Error("the pod was attached to n6")
	}
	n.writeZoneFiles(t)
	n.restoreInterfaces(t, namespace)
}

// restoreInterfaces moves the node's interfaces back from the sandbox of a pod that could not be
// attached. DEL does not do this if ADD of host-device failed halfway: it requires the interface to
// exist (containernetworking/plugins 1.9.1). When a sandbox is deleted, the kernel returns a
// physical interface to the host, but it would delete the veth that represents one here.
func (n *cniNode) restoreInterfaces(t *testing.T, namespace string) {
	t.Helper()
	for network := range n.zone {
		if exec.CommandContext(t.Context(), "ip", "link", "show", secondary.LinkName(network)).Run() == nil {
			continue
		}
		n.runCommand(t, "nsenter", "--net="+namespace, "ip", "link", "set", secondary.LinkName(network), "netns", fmt.Sprint(os.Getpid()), "name", "eth-"+network)
	}
}
