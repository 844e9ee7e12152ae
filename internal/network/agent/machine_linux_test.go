package agent

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/secondary"
)

// inside is the environment variable that is set if the test runs in its own network
// namespace.
const inside = "CROFT_TEST_NETNS"

// TestRealLinks runs TestInNamespace in its own network namespace.
func TestRealLinks(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInNamespace$", "-test.v")
	command.Env = append(os.Environ(), inside+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET}
	out, err := command.CombinedOutput()
	switch {
	case command.Process == nil:
		t.Skipf("a network namespace cannot be made here, which takes root: %v", err)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("%s", out)
	case err != nil || !bytes.Contains(out, []byte("--- PASS")):
		t.Errorf("%v\n%s", err, out)
	}
}

// patience is far longer than any step here takes.
const patience = 20 * time.Second

// TestInNamespace covers a node that gets its second interface while the agent waits. The
// interfaces are veth pairs and a bridge, and the Node is in a fake client.
func TestInNamespace(t *testing.T) {
	if os.Getenv(inside) == "" {
		t.Skip("TestRealLinks runs it")
	}
	addInterface(t, "eth1", mac3)
	networks := []secondary.NodeNetwork{
		{Network: "n3", MAC: mac3, MTU: 1400, ZoneFile: "{}\n"}, {Network: "n6", MAC: mac6},
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Annotations: map[string]string{v1alpha1.NodeNetworksAnnotation: secondary.WriteNodeNetworks(networks)},
	}}
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(node).WithObjects(node).Build()
	root := t.TempDir()
	m := linux{files(root)}
	ctx, stop := context.WithCancel(t.Context())
	seen := make(chan Condition, 100)
	a := &Agent{
		Node: "a", Reader: c, Writer: reportingClient{c, seen}, Machine: m,
		Log: slog.New(slog.DiscardHandler), changed: make(chan struct{}, 1),
	}
	ended := make(chan error, 2)
	go func() { ended <- m.Watch(ctx, a.notify) }()
	go func() { ended <- a.runLoop(ctx) }()

	awaitVerdict(t, seen, Condition{corev1.ConditionFalse, v1alpha1.ReasonLinkMissing, "the node has no interface for n6 (" + mac6 + ")"})
	expectLink(t, "croft-n3", "eth1", 1400)
	path := filepath.Join(root, secondary.ZoneFilePath("n3"))
	if got, err := os.ReadFile(path); err != nil || string(got) != "{}\n" {
		t.Errorf("the file of n3 has %q: %v", got, err)
	}
	if others, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(others) > 0 {
		t.Errorf("left over: %v", others)
	}

	addInterface(t, "eth2", mac6)
	awaitVerdict(t, seen, Condition{corev1.ConditionTrue, v1alpha1.ReasonLinksReady, "croft-n3, croft-n6"})
	expectLink(t, "croft-n6", "eth2", 1500)

	// A bridge gets the hardware address of its port, but is not the network's interface.
	eth2, err := netlink.LinkByName("eth2")
	requireNoError(t, err)
	requireNoError(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0", HardwareAddr: eth2.Attrs().HardwareAddr}}))
	if links, err := m.Links(); err != nil || findLink(links, mac6).Name != "eth2" {
		t.Errorf("the interface of n6 is %v: %v", findLink(links, mac6), err)
	}

	requireNoError(t, netlink.LinkDel(eth2))
	awaitVerdict(t, seen, Condition{corev1.ConditionFalse, v1alpha1.ReasonLinkMissing, "the node has no interface for n6 (" + mac6 + ")"})
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// addInterface adds a veth interface with a hardware address, which stays down.
func addInterface(t *testing.T, name, mac string) {
	t.Helper()
	address, err := net.ParseMAC(mac)
	requireNoError(t, err)
	err = netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, HardwareAddr: address, MTU: 1500}, PeerName: name + "-peer"})
	if err != nil && strings.Contains(err.Error(), "not supported") {
		t.Skipf("this kernel has no veth interfaces: %v", err)
	}
	requireNoError(t, err)
}

// expectLink fails unless an interface is configured and has croft's name.
func expectLink(t *testing.T, name, first string, mtu int) {
	t.Helper()
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	a := l.Attrs()
	if a.Name != first || a.MTU != mtu || a.Flags&net.FlagUp == 0 || readRPFilter(first) != loose {
		t.Errorf("%s is %s with MTU %d, flags %s, rp_filter %d", name, a.Name, a.MTU, a.Flags, readRPFilter(first))
	}
}

// awaitVerdict waits until a verdict is written. It ignores other verdicts before it.
func awaitVerdict(t *testing.T, seen <-chan Condition, want Condition) {
	t.Helper()
	timeout := time.After(patience)
	var all []Condition
	for {
		select {
		case got := <-seen:
			if all = append(all, got); got == want {
				return
			}
		case <-timeout:
			t.Fatalf("the condition became %v, never %v", all, want)
		}
	}
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reportingClient is a client that reports each written verdict.
type reportingClient struct {
	client.Client
	seen chan<- Condition
}

func (c reportingClient) Status() client.SubResourceWriter {
	return reportingWriter{c.Client.Status(), c}
}

type reportingWriter struct {
	client.SubResourceWriter
	of reportingClient
}

func (w reportingWriter) Patch(ctx context.Context, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
	err := w.SubResourceWriter.Patch(ctx, o, p, options...)
	node := &corev1.Node{}
	if err == nil && w.of.Get(ctx, client.ObjectKeyFromObject(o), node) == nil {
		w.of.seen <- readCondition(node)
	}
	return err
}
