package secondary

import (
	"encoding/json"
	"net/netip"

	"croft.dev/croft/api/v1alpha1"
)

// cniVersion is the one that the oldest Multus on EKS understands.
const cniVersion = "0.3.1"

// Definition is a NetworkAttachmentDefinition, without the namespace.
type Definition struct {
	Name string
	// Zone is empty for one that is for all zones.
	Zone string
	// Config is the CNI configuration, as JSON.
	Config string
}

// Definitions are those of a network: one for all zones, named as the network, and one
// for each zone. A pod that may run in every zone names the first. Where it runs is known
// only when Multus is called on its node, so the first one of several zones has no
// addresses in it: whereabouts reads them from the node's own ZoneFile. All pods that
// were bound to a zone before, as a Deployment for each zone, can name the other ones,
// which need no file.
//
// Where nodes have prefixes of their own, no definition has addresses: those that a pod may
// have are known on its node only.
func Definitions(network string, spec *v1alpha1.SecondaryNetworkSpec) []Definition {
	all := []Definition{{Name: network, Config: config(network, spec, nodeIPAM(network, spec))}}
	for i := range spec.Zones {
		z := &spec.Zones[i]
		own := Definition{Name: InZone(network, z.Zone), Zone: z.Zone, Config: all[0].Config}
		if spec.PrefixesPerNode == 0 {
			own.Config = config(network, spec, zoneIPAM(network, spec, z))
		}
		if len(spec.Zones) == 1 {
			all[0].Config = own.Config
		}
		all = append(all, own)
	}
	return all
}

// InZone is the name of a network's definition for one zone.
func InZone(network, zone string) string { return network + "-" + zone }

// plugin is the configuration of a CNI plugin. Those of containernetworking/plugins
// that are used here have these fields in common.
type plugin struct {
	CNIVersion string `json:"cniVersion,omitempty"`
	Name       string `json:"name,omitempty"`
	Type       string `json:"type"`
	// Master is the node's interface that pods' are made on, Device the one that is
	// moved into the pod.
	Master string `json:"master,omitempty"`
	Device string `json:"device,omitempty"`
	Mode   string `json:"mode,omitempty"`
	MTU    int32  `json:"mtu,omitempty"`
	IPAM   *ipam  `json:"ipam,omitempty"`
}

// chain is a list of plugins, one after the other.
type chain struct {
	CNIVersion string   `json:"cniVersion"`
	Name       string   `json:"name"`
	Plugins    []plugin `json:"plugins"`
}

// ipam is the configuration of whereabouts. What it does not find here it takes from the
// file of ConfigurationPath, see GetFlatIPAM in whereabouts' pkg/config.
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

// whereabouts hands out addresses of one range to the pods of all nodes.
const whereabouts = "whereabouts"

// config is the configuration of the plugins of a network.
func config(network string, spec *v1alpha1.SecondaryNetworkSpec, addresses *ipam) string {
	link := plugin{Type: string(spec.Type), IPAM: addresses}
	switch spec.Type {
	case v1alpha1.SecondaryNetworkHostDevice:
		link.Device = Link(network) // the agent sets its MTU: the plugin has no field for it
	case v1alpha1.SecondaryNetworkMACVLAN:
		link.Master, link.Mode, link.MTU = Link(network), "bridge", spec.MTU
	case v1alpha1.SecondaryNetworkIPVLAN:
		fallthrough
	default:
		link.Type = string(v1alpha1.SecondaryNetworkIPVLAN)
		link.Master, link.Mode, link.MTU = Link(network), "l2", spec.MTU
	}
	if spec.SBR {
		return text(chain{cniVersion, network, []plugin{link, {Type: "sbr"}}})
	}
	link.CNIVersion, link.Name = cniVersion, network
	return text(link)
}

// nodeIPAM has the zone's part read from the node.
func nodeIPAM(network string, spec *v1alpha1.SecondaryNetworkSpec) *ipam {
	path, _ := ZoneFile(network, &v1alpha1.SecondaryNetworkZone{})
	all := common(spec)
	all.ConfigurationPath = path
	return all
}

// zoneIPAM has everything.
func zoneIPAM(network string, spec *v1alpha1.SecondaryNetworkSpec, z *v1alpha1.SecondaryNetworkZone) *ipam {
	all := common(spec)
	own := addresses(network, z)
	all.Range, all.Exclude, all.Gateway = own.Range, own.Exclude, own.Gateway
	return all
}

// common is what does not depend on the zone.
func common(spec *v1alpha1.SecondaryNetworkSpec) *ipam {
	all := &ipam{Type: whereabouts}
	for _, destination := range spec.Routes {
		all.Routes = append(all.Routes, route{destination})
	}
	if d := spec.DNS; d != nil {
		all.DNS = &dns{d.Nameservers, d.Domain, d.Search}
	}
	return all
}

// addresses is what depends on the zone. The range is the reservation, with the prefix
// length of the subnet: pods reach the whole subnet without a router.
func addresses(network string, z *v1alpha1.SecondaryNetworkZone) ipam {
	r, err := ReservationOf(network, z)
	if err != nil {
		return ipam{}
	}
	pods := r.Pods.Masked()
	return ipam{
		Range:   pods.Addr().String() + "-" + netip.PrefixFrom(last(pods), r.CIDR.Bits()).String(),
		Exclude: r.Excluded(), Gateway: z.Gateway,
	}
}

// text is a configuration as people read it.
func text(value any) string {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		panic(err) // the types are ours, and hold nothing that JSON does not have
	}
	return string(data)
}
