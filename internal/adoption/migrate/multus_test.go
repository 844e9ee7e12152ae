package migrate_test

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/adoption/migrate/source"
)

// TestMultus expects problems that name the networks of tenants' pods, with the settings of a
// SecondaryNetwork that their definitions contain.
func TestMultus(t *testing.T) {
	definition := func(namespace, config string) string {
		return "\n---\n{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, metadata: {name: n4, namespace: " + namespace + "}, spec: {config: '" + config + "'}}\n"
	}
	const config = `{"cniVersion": "0.3.1", "type": "ipvlan", "master": "eth1", "ipam": {"type": "whereabouts", "range": "10.0.4.0/24", "gateway": "10.0.4.1"}}`
	with := buildDedicatedPool("jobs") + buildSelectorAssign("namespaces: [a]", "node-pool: jobs")
	workload := func(namespace string) string {
		return "\n---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: " + namespace + "}, spec: {template: {metadata: {annotations: {k8s.v1.cni.cncf.io/networks: n4}}}}}\n"
	}
	for name, r := range map[string]row{
		"a tenant's":   {read: with + definition("a", config), options: demo, problems: []string{"NetworkAttachmentDefinition/a/n4: spec.config: pods of tenant a are attached only to networks that croft grants: declare the network in secondaryNetworks (type: ipvlan, zones[0].cidr: 10.0.4.0/24, zones[0].gateway: 10.0.4.1)"}},
		"a chain":      {read: with + definition("a", `{"plugins": [{"type": "macvlan"}, {"type": "tuning"}]}`), options: demo, problems: []string{"(type: macvlan)"}},
		"unreadable":   {read: with + definition("a", "nonsense"), options: demo, problems: []string{"in secondaryNetworks, with"}},
		"no tenant's":  {read: with + definition("kube-system", config), options: demo, findings: []want{{source.Other, "NetworkAttachmentDefinition/kube-system/n4 ", "stays as it is"}}},
		"a pod's":      {read: with + workload("a"), options: demo, problems: []string{"croft attaches tenants' pods to the networks that they are granted"}},
		"others' pods": {read: with + workload("b"), options: demo, findings: []want{{source.NotKept, `annotations["k8s.v1.cni.cncf.io/networks"]`, "secondaryNetworks"}}},
		"the nodes' taint": {read: strings.Replace(with, "taints:", "startupTaints: [{key: multus, effect: NoSchedule}]\n      taints:", 1), options: demo,
			gives: []string{`"startupTaints":[{"effect":"NoSchedule","key":"multus"}]`}},
	} {
		t.Run(name, r.checkMapping)
	}
}
