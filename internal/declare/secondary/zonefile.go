package secondary

import (
	"net/netip"

	"croft.dev/croft/api/v1alpha1"
)

const (
	// ZoneFiles is the directory on a node where whereabouts reads the zone's part of a
	// network's configuration. The container runtime reads only /etc/cni/net.d, without its
	// subdirectories.
	ZoneFiles = "/etc/cni/net.d/croft.d/"
	// kubeconfig is the file that whereabouts' DaemonSet writes for its plugin. A ZoneFile
	// must refer to it, because whereabouts then reads no other file.
	kubeconfig = "/etc/cni/net.d/whereabouts.d/whereabouts.kubeconfig"
)

// ZoneFile returns the path and the content of the file on a node with the addresses of a
// network in the node's zone. croft's agent writes it.
func ZoneFile(network string, z *v1alpha1.SecondaryNetworkZone) (path, content string) {
	own := buildRangeIPAM(network, z)
	own.Kubernetes = &kubernetes{kubeconfig}
	return ZoneFilePath(network), renderJSON(own) + "\n"
}

// NodeFile returns the content of the file on a node with its own prefixes: pods get
// addresses of these prefixes only. The range extends from the first prefix to the last,
// and excludes the addresses between them.
func NodeFile(network string, z *v1alpha1.SecondaryNetworkZone, prefixes []netip.Prefix) string {
	own := buildRangeIPAM(network, z)
	own.Kubernetes = &kubernetes{kubeconfig}
	if r, err := ReservationOf(network, z); err == nil && len(prefixes) > 0 {
		own.Range, own.Exclude = r.spanPrefixes(prefixes)
	}
	return renderJSON(own) + "\n"
}

// ZoneFilePath returns the path of a network's file on a node.
func ZoneFilePath(network string) string { return ZoneFiles + network + ".conf" }
