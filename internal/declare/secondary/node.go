package secondary

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"croft.dev/croft/api/v1alpha1"
)

// NodeNetwork describes a node's interface in a secondary network, for croft's agent to
// configure. The operator writes a list of them to the Node, as
// v1alpha1.NodeNetworksAnnotation.
type NodeNetwork struct {
	Network string `json:"network"`
	// MAC is the interface's hardware address.
	MAC string `json:"mac"`
	// MTU is zero if the interface's MTU is not changed.
	MTU int32 `json:"mtu,omitempty"`
	// Moves reports whether the interface is moved into a pod, and is missing while the pod
	// runs.
	Moves bool `json:"moves,omitempty"`
	// ZoneFile is the content of the network's file on the node. It is empty if no file is
	// needed.
	ZoneFile string `json:"zoneFile,omitempty"`
}

// NodeNetworkOf describes a node's interface in a network, in one of the network's zones.
// prefixes are the interface's prefixes for pods' addresses, if the nodes do not share all
// addresses.
func NodeNetworkOf(n *v1alpha1.SecondaryNetwork, z *v1alpha1.SecondaryNetworkZone, mac string, prefixes ...netip.Prefix) NodeNetwork {
	own := NodeNetwork{
		Network: n.Name, MAC: strings.ToLower(mac), MTU: n.Spec.MTU,
		Moves: n.Spec.Type == v1alpha1.SecondaryNetworkHostDevice,
	}
	switch {
	case n.Spec.PrefixesPerNode > 0:
		own.ZoneFile = NodeFile(n.Name, z, prefixes)
	case len(n.Spec.Zones) > 1: // the definition of a network with one zone is complete
		_, own.ZoneFile = ZoneFile(n.Name, z)
	}
	return own
}

// WriteNodeNetworks returns the value of the annotation.
func WriteNodeNetworks(all []NodeNetwork) string {
	data, err := json.Marshal(all)
	if err != nil {
		panic(err) // the type can always be encoded as JSON
	}
	return string(data)
}

// ReadNodeNetworks parses the value of the annotation. It validates names and addresses,
// because a network's name becomes a part of a path.
func ReadNodeNetworks(annotation string) ([]NodeNetwork, error) {
	var all []NodeNetwork
	if err := json.Unmarshal([]byte(annotation), &all); err != nil {
		return nil, fmt.Errorf("the annotation %s cannot be read: %w", v1alpha1.NodeNetworksAnnotation, err)
	}
	for i := range all {
		n := &all[i]
		mac, err := net.ParseMAC(n.MAC)
		if err != nil || len(validation.IsDNS1123Label(n.Network)) > 0 {
			return nil, fmt.Errorf("the annotation %s has a network %q with the address %q", v1alpha1.NodeNetworksAnnotation, n.Network, n.MAC)
		}
		n.MAC = mac.String()
	}
	return all, nil
}
