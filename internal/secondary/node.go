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

// NodeNetwork is a node's interface in a secondary network, as croft's agent sets it up.
// The operator writes a list of them to the Node, as v1alpha1.NodeNetworksAnnotation.
type NodeNetwork struct {
	Network string `json:"network"`
	// MAC is the interface's hardware address.
	MAC string `json:"mac"`
	// MTU is zero if the interface keeps its own.
	MTU int32 `json:"mtu,omitempty"`
	// Moves says that the interface moves into a pod, and is missing while the pod runs.
	Moves bool `json:"moves,omitempty"`
	// ZoneFile is the content of the network's file on the node, empty if it needs none.
	ZoneFile string `json:"zoneFile,omitempty"`
}

// NodeNetworkOf describes a node's interface in a network, in one of the network's zones.
// prefixes are those of the interface that pods' addresses come from, if they are not shared
// by all nodes.
func NodeNetworkOf(n *v1alpha1.SecondaryNetwork, z *v1alpha1.SecondaryNetworkZone, mac string, prefixes ...netip.Prefix) NodeNetwork {
	own := NodeNetwork{
		Network: n.Name, MAC: strings.ToLower(mac), MTU: n.Spec.MTU,
		Moves: n.Spec.Type == v1alpha1.SecondaryNetworkHostDevice,
	}
	switch {
	case n.Spec.PrefixesPerNode > 0:
		own.ZoneFile = NodeFile(n.Name, z, prefixes)
	case len(n.Spec.Zones) > 1: // a network of one zone has everything in its definition
		_, own.ZoneFile = ZoneFile(n.Name, z)
	}
	return own
}

// WriteNodeNetworks is the value of the annotation.
func WriteNodeNetworks(all []NodeNetwork) string {
	data, err := json.Marshal(all)
	if err != nil {
		panic(err) // the type holds nothing that JSON does not have
	}
	return string(data)
}

// ReadNodeNetworks reads the value of the annotation. A network's name becomes a part of a
// path, so names and addresses are checked.
func ReadNodeNetworks(annotation string) ([]NodeNetwork, error) {
	var all []NodeNetwork
	if err := json.Unmarshal([]byte(annotation), &all); err != nil {
		return nil, fmt.Errorf("the annotation %s is not readable: %w", v1alpha1.NodeNetworksAnnotation, err)
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
