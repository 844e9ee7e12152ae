package migrate_test

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/migrate/source"
)

// capsule is a Tenant of Capsule's on the pool jobs.
func capsule(spec string) string {
	return pools + "---\napiVersion: capsule.clastix.io/v1beta2\nkind: Tenant\nmetadata: {name: oil}\nspec:\n  nodeSelector: {node-pool: jobs}\n  " +
		strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

func TestCapsule(t *testing.T) {
	for name, r := range map[string]row{
		"a pool":         {read: capsule(""), options: demo, gives: []string{`"oil":{"pool":"jobs"}`}},
		"another key":    {read: capsule("cordoned: false") + "---\n{apiVersion: capsule.clastix.io/v1beta2, kind: Tenant, metadata: {name: gas}, spec: {nodeSelector: {zone: a, node-pool: jobs}}}\n", options: demo, findings: []want{{source.NotKept, "Tenant/gas spec.nodeSelector.zone", "alone"}}},
		"no pool":        {read: strings.Replace(capsule("cordoned: true"), "  nodeSelector: {node-pool: jobs}\n", "", 1), options: demo, problems: []string{"which pool the pods of tenant oil run on"}},
		"its namespaces": {read: capsule("") + "status: {namespaces: [oil-dev, oil-prod]}\n", options: demo, gives: []string{`"namespaces":["oil-dev","oil-prod"]`}},
		"namespaces by their label": {read: capsule("") + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: oil-dev, labels: {capsule.clastix.io/tenant: oil}}}\n",
			options: demo, gives: []string{`"namespaces":["oil-dev"]`}},
		"owners": {read: capsule("owners: [{kind: Group, name: devs}, {kind: User, name: alice, clusterRoles: [view]}, {kind: ServiceAccount, name: robot}]"), options: demo,
			gives: []string{`{"group":"devs","role":"operator"}`, `{"role":"viewer","user":"alice"}`}, findings: []want{{source.NotKept, "spec.owners[2]", "ServiceAccount"}, {source.Changed, "spec.owners[1].clusterRoles", "viewer"}}},
		"more bindings":         {read: capsule("additionalRoleBindings: [{clusterRoleName: view, subjects: [{kind: Group, name: audit}]}, {clusterRoleName: odd, subjects: [{kind: Group, name: x}]}]"), options: demo, gives: []string{`{"group":"audit","role":"viewer"}`}, findings: []want{{source.NotKept, "additionalRoleBindings[1].clusterRoleName", "was not read"}}},
		"a quota of the tenant": {read: capsule("resourceQuotas: {scope: Tenant, items: [{hard: {pods: 10}}, {hard: {pods: 5, services: 3}}]}"), options: demo, gives: []string{`"quota":{"pods":"5","services":"3"}`}},
		"a quota of each namespace": {read: capsule("resourceQuotas: {scope: Namespace, items: [{hard: {pods: 10}}]}") + "status: {namespaces: [a, b]}\n", options: demo,
			gives: []string{`"quota":{"pods":"20"}`}, findings: []want{{source.Changed, "resourceQuotas.scope", "together"}}},
		"limits":           {read: capsule("limitRanges: {items: [{limits: [{type: Container, max: {cpu: 4}}, {type: Pod, max: {cpu: 8}}]}]}"), options: demo, gives: []string{`"limits":{"max":{"cpu":"4"}}`}, findings: []want{{source.NotKept, "items[0].limits[1]", "beside"}}},
		"hosts":            {read: capsule("ingressOptions: {allowedHostnames: {allowed: [oil.example.org], allowedRegex: \".*\"}, allowedClasses: {allowed: [nginx]}, hostnameCollisionScope: Tenant}"), options: demo, gives: []string{`"domains":["oil.example.org"]`, `"ingressClasses":["nginx"]`}, findings: []want{{source.NotKept, "allowedHostnames.allowedRegex", "by name"}, {source.Changed, "hostnameCollisionScope", "never"}}},
		"any host":         {read: capsule("cordoned: false"), options: demo, findings: []want{{source.Changed, "ingressOptions.allowedHostnames", "any host"}, {source.Changed, "serviceOptions.allowedServices", "ClusterIP by default"}, {source.Changed, "spec.imagePullPolicies", "Always"}}},
		"Services":         {read: capsule("serviceOptions: {allowedServices: {nodePort: false, loadBalancer: true}, externalIPs: {allowed: [10.0.0.0/8]}}"), options: demo, gives: []string{`"serviceTypes":["ClusterIP","LoadBalancer","ExternalName"]`}, findings: []want{{source.NotKept, "externalIPs.allowed", "load balancer"}}},
		"lists":            {read: capsule("containerRegistries: {allowed: [ghcr.io]}\nstorageClasses: {allowed: [gp3], allowedRegex: \"^x\"}\npriorityClasses: {allowed: [batch]}\nruntimeClasses: {allowed: [gvisor]}\nimagePullPolicies: [Always, IfNotPresent]"), options: demo, gives: []string{`"registries":["ghcr.io"]`, `"storageClasses":["gp3"]`, `"priorityClasses":["batch"]`, `"runtimeClasses":["gvisor"]`, `"imagePullPolicies":["Always","IfNotPresent"]`}, findings: []want{{source.NotKept, "storageClasses.allowedRegex", "by name"}}},
		"network policies": {read: capsule("networkPolicies: {items: [{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 10.1.0.0/16}}]}]}]}"), options: demo, gives: []string{`"network":{"allowCIDRs":["10.1.0.0/16"],"egress":"Restricted"}`}},
		"metadata":         {read: capsule("namespaceOptions: {quota: 3, additionalMetadata: {labels: {a: b}}, forbiddenLabels: {denied: [x]}}"), options: demo, findings: []want{{source.Changed, "namespaceOptions.quota", "names them"}, {source.NotKept, "namespaceOptions.additionalMetadata", "policy of yours"}}},
		"anything else":    {read: capsule("nodePort: 3"), options: demo, findings: []want{{source.NotKept, "spec.nodePort", "does not know"}}},
	} {
		t.Run(name, r.check)
	}
}
