package secondary

import (
	"encoding/json"
	"net/netip"

	"croft.dev/croft/api/v1alpha1"
)

// cniVersion is the version that the oldest Multus on EKS supports.
const cniVersion = "0.3.1"

// Definition describes a NetworkAttachmentDefinition, without its namespace.
type Definition struct {
	Name string
	// Zone is empty for a definition for all zones.
	Zone string
	// Config is the CNI configuration, as JSON.
	Config string
}

// Definitions returns the definitions of a network: one for all zones, with the network's
// name, and one for each zone. A pod that may run in every zone names the first one. The
// pod's zone is known only when Multus is called on its node, so this definition of a
// network with several zones contains no addresses: whereabouts reads them from the node's
// own ZoneFile. Pods that are bound to a zone beforehand, for example by one Deployment for
// each zone, can name the other definitions, which need no file.
//
// If nodes have their own prefixes, no definition contains addresses, because they are
// known only on the pod's node.
func Definitions(network string, spec *v1alpha1.SecondaryNetworkSpec) []Definition {
	all := []Definition{{Name: network, Config: renderConfig(network, spec, buildNodeIPAM(network, spec))}}
	for i := range spec.Zones {
		z := &spec.Zones[i]
		own := Definition{Name: ZoneDefinitionName(network, z.Zone), Zone: z.Zone, Config: all[0].Config}
		if spec.PrefixesPerNode == 0 {
			own.Config = renderConfig(network, spec, buildZoneIPAM(network, spec, z))
		}
		if len(spec.Zones) == 1 {
			all[0].Config = own.Config
		}
		all = append(all, own)
	}
	return all
}

// ZoneDefinitionName returns the name of a network's definition for one zone.
func ZoneDefinitionName(network, zone string) string { return network + "-" + zone }

// plugin is the configuration of a CNI plugin. The plugins of containernetworking/plugins
// that are used here have these fields in common.
type plugin struct {
	CNIVersion string `json:"cniVersion,omitempty"`
	Name       string `json:"name,omitempty"`
	Type       string `json:"type"`
	// Master is the node's interface on which pods' interfaces are created. Device is the
	// interface that is moved into the pod.
	Master string `json:"master,omitempty"`
	Device string `json:"device,omitempty"`
	Mode   string `json:"mode,omitempty"`
	MTU    int32  `json:"mtu,omitempty"`
	IPAM   *ipam  `json:"ipam,omitempty"`
}

// chain is a list of plugins that are called in turn.
type chain struct {
	CNIVersion string   `json:"cniVersion"`
	Name       string   `json:"name"`
	Plugins    []plugin `json:"plugins"`
}

// ipam is the configuration of whereabouts. It reads missing fields from the file at
// ConfigurationPath; see GetFlatIPAM in whereabouts' pkg/config.
type ipam struct {
	Type              string         `json:"type,omitempty"`
	ConfigurationPath string         `json:"configuration_path,omitempty"`
	Range             string         `json:"range,omitempty"`
	Exclude           []netip.Prefix `json:"exclude,omitempty"`
	Gateway           string         `json:"gateway,omitempty"`
	Routes            []route        `json:"routes,omitempty"`
	DNS               *dns           `json:"dns,omitempty"`
	Kubernetes        *kubernetes    `json:"kubernetes,omitempty"`
}

type route struct {
	Destination string `json:"dst"`
}

type dns struct {
	Nameservers []string `json:"nameservers,omitempty"`
	Domain      string   `json:"domain,omitempty"`
	Search      []string `json:"search,omitempty"`
}

type kubernetes struct {
	Kubeconfig string `json:"kubeconfig"`
}

// whereabouts assigns addresses of one range to the pods of all nodes.
const whereabouts = "whereabouts"

// renderConfig returns the configuration of a network's plugins.
func renderConfig(network string, spec *v1alpha1.SecondaryNetworkSpec, addresses *ipam) string {
	link := plugin{Type: string(spec.Type), IPAM: addresses}
	switch spec.Type {
	case v1alpha1.SecondaryNetworkHostDevice:
		link.Device = LinkName(network) // the agent sets the MTU, because the plugin has no field for it
	case v1alpha1.SecondaryNetworkMACVLAN:
		link.Master, link.Mode, link.MTU = LinkName(network), "bridge", spec.MTU
	case v1alpha1.SecondaryNetworkIPVLAN:
		fallthrough
	default:
		link.Type = string(v1alpha1.SecondaryNetworkIPVLAN)
		link.Master, link.Mode, link.MTU = LinkName(network), "l2", spec.MTU
	}
	if spec.SBR {
		return renderJSON(chain{cniVersion, network, []plugin{link, {Type: "sbr"}}})
	}
	link.CNIVersion, link.Name = cniVersion, network
	return renderJSON(link)
}

// buildNodeIPAM returns a configuration whose zone-specific part is in a file on the node.
func buildNodeIPAM(network string, spec *v1alpha1.SecondaryNetworkSpec) *ipam {
	path, _ := ZoneFile(network, &v1alpha1.SecondaryNetworkZone{})
	all := buildCommonIPAM(spec)
	all.ConfigurationPath = path
	return all
}

// buildZoneIPAM returns the complete configuration for a zone.
func buildZoneIPAM(network string, spec *v1alpha1.SecondaryNetworkSpec, z *v1alpha1.SecondaryNetworkZone) *ipam {
	all := buildCommonIPAM(spec)
	own := buildRangeIPAM(network, z)
	all.Range, all.Exclude, all.Gateway = own.Range, own.Exclude, own.Gateway
	return all
}

// buildCommonIPAM returns the fields that do not depend on the zone.
func buildCommonIPAM(spec *v1alpha1.SecondaryNetworkSpec) *ipam {
	all := &ipam{Type: whereabouts}
	for _, destination := range spec.Routes {
		all.Routes = append(all.Routes, route{destination})
	}
	if d := spec.DNS; d != nil {
		all.DNS = &dns{d.Nameservers, d.Domain, d.Search}
	}
	return all
}

// buildRangeIPAM returns the fields that depend on the zone. The range is the reservation, with
// the prefix length of the subnet, so that pods reach the whole subnet without a router.
func buildRangeIPAM(network string, z *v1alpha1.SecondaryNetworkZone) ipam {
	r, err := ReservationOf(network, z)
	if err != nil {
		return ipam{}
	}
	pods := r.Pods.Masked()
	return ipam{
		Range:   pods.Addr().String() + "-" + netip.PrefixFrom(FindLastAddress(pods), r.CIDR.Bits()).String(),
		Exclude: r.Excluded(), Gateway: z.Gateway,
	}
}

// renderJSON returns a configuration as indented JSON.
func renderJSON(value any) string {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		panic(err) // the types are ours, and can always be encoded as JSON
	}
	return string(data)
}
