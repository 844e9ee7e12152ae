package realnode

import (
	"context"
	"fmt"
	"net"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// The addresses of the network between nodes. They exist only in network namespaces of the
// sandbox, so that sandboxes on one machine do not conflict.
const (
	bridge     = "nodes"
	bridgeAddr = "10.88.0.1"
	// metadataAddr is the address of clouds' metadata services, which provide a node's
	// credentials.
	metadataAddr = "169.254.169.254"
	nodeLink     = "eth0"
)

// nodeAddr returns the address of a node, by its index from 1.
func nodeAddr(index int) string { return fmt.Sprintf("10.88.0.%d", 10+index) }

// podRange returns the address range of a node's pods.
func podRange(index int) string { return fmt.Sprintf("10.244.%d.0/24", index) }

// network is the network that connects nodes: a network namespace with a bridge. No file
// and no other namespace refers to it, so that the kernel removes it when the last process
// in it and this process have ended, however they end.
type network struct {
	ns netns.NsHandle
}

func newNetwork() (*network, error) {
	n := &network{}
	err := runOnThread(func() error {
		var err error
		n.ns, err = netns.New() // this thread is in it now
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create a network namespace: %w", err)
	}
	h, err := netlink.NewHandleAt(n.ns)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if err := setLinkUp(h, "lo"); err != nil {
		return nil, err
	}
	link := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge}}
	if err := h.LinkAdd(link); err != nil {
		return nil, fmt.Errorf("add a bridge: %w", err)
	}
	for _, prefix := range []string{bridgeAddr + "/24", metadataAddr + "/32"} {
		if err := assignAddress(h, bridge, prefix); err != nil {
			return nil, err
		}
	}
	return n, addPodRoutes(h, 0)
}

// attachNode connects the network namespace of a node's first process to the bridge.
func (n *network) attachNode(pid, index int) error {
	node, err := netns.GetFromPid(pid)
	if err != nil {
		return err
	}
	defer node.Close() //nolint:errcheck // closing a descriptor of a namespace
	h, err := netlink.NewHandleAt(n.ns)
	if err != nil {
		return err
	}
	defer h.Close()
	master, err := h.LinkByName(bridge)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("node%d", index)
	if old, err := h.LinkByName(name); err == nil {
		if err := h.LinkDel(old); err != nil { // the namespace of its other end may not have ended yet
			return err
		}
	}
	pair := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: name, MasterIndex: master.Attrs().Index},
		PeerName:  nodeLink, PeerNamespace: netlink.NsFd(node),
	}
	if err := h.LinkAdd(pair); err != nil {
		return fmt.Errorf("add a pair of links: %w", err)
	}
	if err := setLinkUp(h, name); err != nil {
		return err
	}
	return configureNode(node, index)
}

// configureNode gives a node its address and its routes.
func configureNode(node netns.NsHandle, index int) error {
	h, err := netlink.NewHandleAt(node)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := setLinkUp(h, "lo"); err != nil {
		return err
	}
	if err := assignAddress(h, nodeLink, nodeAddr(index)+"/24"); err != nil {
		return err
	}
	if err := h.RouteAdd(&netlink.Route{Gw: net.ParseIP(bridgeAddr)}); err != nil {
		return fmt.Errorf("add the default route: %w", err)
	}
	return addPodRoutes(h, index)
}

// addPodRoutes adds the routes to the pods of all nodes except one; 0 excepts none.
func addPodRoutes(h *netlink.Handle, but int) error {
	for index := 1; index <= MaxNodes; index++ {
		if index == but {
			continue
		}
		_, pods, err := net.ParseCIDR(podRange(index))
		if err != nil {
			return err
		}
		if err := h.RouteAdd(&netlink.Route{Dst: pods, Gw: net.ParseIP(nodeAddr(index))}); err != nil {
			return fmt.Errorf("add a route to %s: %w", pods, err)
		}
	}
	return nil
}

func setLinkUp(h *netlink.Handle, name string) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find link %s: %w", name, err)
	}
	return h.LinkSetUp(link)
}

func assignAddress(h *netlink.Handle, name, prefix string) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find link %s: %w", name, err)
	}
	addr, err := netlink.ParseAddr(prefix)
	if err != nil {
		return err
	}
	if err := h.AddrAdd(link, addr); err != nil {
		return fmt.Errorf("add address %s: %w", prefix, err)
	}
	return h.LinkSetUp(link)
}

// dial connects from within the network. A socket stays in the namespace in which it was
// opened. The address must be an IP address: Go would resolve a name on another thread.
func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	var c net.Conn
	err := n.runWithin(func() error {
		var err error
		c, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
		return err
	})
	return c, err
}

func (n *network) listen(address string) (net.Listener, error) {
	var l net.Listener
	err := n.runWithin(func() error {
		var err error
		l, err = net.Listen("tcp", address)
		return err
	})
	return l, err
}

func (n *network) runWithin(f func() error) error {
	return runOnThread(func() error {
		if err := netns.Set(n.ns); err != nil {
			return err
		}
		return f()
	})
}

// runOnThread calls f on an operating system thread of its own, whose namespaces it may change:
// the thread ends with f.
func runOnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the runtime ends the thread
		done <- f()
	}()
	return <-done
}
