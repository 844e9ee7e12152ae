package secondary

import (
	"net/netip"

	"croft.dev/croft/api/v1alpha1"
)

const (
	// ZoneFiles is the directory where whereabouts looks for a node's part of a network's
	// configuration. The container runtime reads /etc/cni/net.d alone, and no directory
	// below it.
	ZoneFiles = "/etc/cni/net.d/croft.d/"
	// kubeconfig is the file that whereabouts' DaemonSet writes for its plugin. A ZoneFile
	// names it again, since whereabouts then reads no other file.
	kubeconfig = "/etc/cni/net.d/whereabouts.d/whereabouts.kubeconfig"
)

// ZoneFile is the path and the content of the file that says, on a node, which addresses
// of a network its zone has. croft's agent writes it for the zone of its node.
func ZoneFile(network string, z *v1alpha1.SecondaryNetworkZone) (path, content string) {
	own := addresses(network, z)
	own.Kubernetes = &kubernetes{kubeconfig}
	return ZoneFilePath(network), text(own) + "\n"
}

// NodeFile is the content of the file on a node that has prefixes of its own: pods get
// addresses of these alone. The range reaches from the first prefix to the last; what lies
// between them is excluded.
func NodeFile(network string, z *v1alpha1.SecondaryNetworkZone, prefixes []netip.Prefix) string {
	own := addresses(network, z)
	own.Kubernetes = &kubernetes{kubeconfig}
	if r, err := ReservationOf(network, z); err == nil && len(prefixes) > 0 {
		own.Range, own.Exclude = r.within(prefixes)
	}
	return text(own) + "\n"
}

// ZoneFilePath is the path of a network's file on a node.
func ZoneFilePath(network string) string { return ZoneFiles + network + ".conf" }
