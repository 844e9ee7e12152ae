package multus

import (
	"encoding/json"
	"strings"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// Annotation is the annotation of pods that names their networks for Multus.
const Annotation = "k8s.v1.cni.cncf.io/networks"

// ReportDefinitions reports the NetworkAttachmentDefinitions in tenants' namespaces: croft refuses
// pods that name them, and a SecondaryNetwork requires settings that they do not have, such as
// the zone and the subnet.
func ReportDefinitions(d *draft.Draft) {
	for _, o := range d.List(draft.MultusGroup, "NetworkAttachmentDefinition") {
		name := d.FindTenant(o.Namespace)
		switch {
		case draft.IsManaged(o):
			o.Root().MarkKeptAs("secondaryNetworks", "croft created it from a SecondaryNetwork, which croft migrate does not derive from it")
		case name == "":
			o.Root().MarkOther("is outside of tenants' namespaces, and stays as it is: tenants' pods are attached only to the networks of secondaryNetworks")
		default:
			o.Root().MarkNotKept("croft creates the definitions of tenants' networks, from secondaryNetworks")
			d.ReportProblem(o.At("spec", "config"), "pods of tenant %s are attached only to networks that croft grants: declare the network in secondaryNetworks%s, with the zone and the subnet, "+
				"and name it in %s", name, describeNetwork(o.At("spec", "config")), draft.TenantField(name, "networks"))
		}
	}
}

// describeNetwork returns the settings of a SecondaryNetwork that a definition has: the type and the
// network.
func describeNetwork(config source.Field) string {
	var c struct {
		Type    string
		Plugins []struct{ Type string }
		IPAM    struct{ Range, Gateway string }
	}
	if json.Unmarshal([]byte(config.Text()), &c) != nil {
		return ""
	}
	if c.Type == "" && len(c.Plugins) > 0 {
		c.Type = c.Plugins[0].Type
	}
	var all []string
	for _, f := range []struct{ field, value string }{{"type", c.Type}, {"zones[0].cidr", c.IPAM.Range}, {"zones[0].gateway", c.IPAM.Gateway}} {
		if f.value != "" {
			all = append(all, f.field+": "+f.value)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}
