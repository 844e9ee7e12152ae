package main

import (
	"fmt"
	"strings"

	"croft.dev/croft/internal/estate"
)

// platformText declares what tenants need before they can be Ready. Tenants have
// a quota, as they would.
const platformText = `platform:
  clusterName: bench
  tenantDomain: tenants.example.org
  admins: [platform-admins]
  nodeClass: {kwok: {}}
  tenantDefaults:
    quota: {pods: "100", requests.cpu: "20", requests.memory: 64Gi}
pools:
  shared:
    instances: {capacityTypes: [on-demand], instanceTypes: [t3a.large, m5.large]}
    costCode: bench
`

// tenantsText declares tenants as a small organization would: people who may
// write, people who may look, and a domain beside the one that comes with the
// name.
func tenantsText(prefix string, count int) string {
	var b strings.Builder
	b.WriteString("tenants:\n")
	for i := range count {
		name := tenantName(prefix, i)
		fmt.Fprintf(&b, "  %s:\n    pool: shared\n", name)
		fmt.Fprintf(&b, "    access: [{group: %s-team, role: operator}, {group: auditors, role: viewer}]\n", name)
		fmt.Fprintf(&b, "    domains: [%s.example.com]\n", name)
	}
	return b.String()
}

func tenantName(prefix string, i int) string { return fmt.Sprintf("%s-%04d", prefix, i) }

// build makes the estate of a text, as croft does of a file.
func build(text string) (*estate.Estate, error) {
	declaration, problems := estate.Parse("generated", []byte(text))
	if len(problems) > 0 {
		return nil, problems
	}
	built, problems := estate.Build(declaration)
	if len(problems) > 0 {
		return nil, problems
	}
	return built, nil
}
