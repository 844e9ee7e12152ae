// Package tenants generates estates of any size for measurements.
package tenants

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// Platform declares the objects that tenants need before they can be Ready. Tenants have a
// quota, as real ones would, and may create the large pods that are measured.
const Platform = `platform:
  clusterName: bench
  tenantDomain: tenants.example.org
  admins: [platform-admins]
  nodeClass: {kwok: {}}
  tenantDefaults:
    quota: {pods: "100", requests.cpu: "20", requests.memory: 64Gi}
    policy: {maxOtherObjectBytes: 262144}
pools:
  shared:
    instances: {capacityTypes: [on-demand], instanceTypes: [t3a.large, m5.large]}
    costCode: bench
`

// RenderText declares tenants as a small organization has them: with operators, viewers, and a
// domain in addition to the default one.
func RenderText(prefix string, count int) string {
	var b strings.Builder
	b.WriteString("tenants:\n")
	for i := range count {
		b.WriteString(RenderTenant(Name(prefix, i), PoolName(0)))
	}
	return b.String()
}

// RenderTenant declares one tenant, below `tenants:`, with further domains in addition to its own.
func RenderTenant(name, pool string, domains ...string) string {
	return fmt.Sprintf("  %[1]s:\n    pool: %[2]s\n"+
		"    access: [{group: %[1]s-team, role: operator}, {group: auditors, role: viewer}]\n"+
		"    domains: [%[3]s]\n", name, pool, strings.Join(append([]string{name + ".example.com"}, domains...), ", "))
}

// RenderPools declares more pools than Platform's, which precedes them, up to a number of pools.
func RenderPools(count int) string {
	var b strings.Builder
	for i := 1; i < count; i++ {
		fmt.Fprintf(&b, "  %s:\n    instances: {capacityTypes: [on-demand], instanceTypes: [t3a.large, m5.large]}\n    costCode: bench\n", PoolName(i))
	}
	return b.String()
}

// PoolName returns the name of a pool. The first is Platform's.
func PoolName(i int) string {
	if i == 0 {
		return "shared"
	}
	return fmt.Sprintf("shared-%04d", i)
}

// Name returns the name of a tenant that RenderText declares.
func Name(prefix string, i int) string { return fmt.Sprintf("%s-%04d", prefix, i) }

// Build builds the estate of a text, as croft does of a file.
func Build(text string) (*estate.Estate, error) {
	declaration, problems := manifest.Parse("generated", []byte(text))
	if len(problems) > 0 {
		return nil, problems
	}
	built, problems := estate.Build(declaration)
	if len(problems) > 0 {
		return nil, problems
	}
	return built, nil
}

// ToUnstructured converts objects to the form in which a client sends them.
func ToUnstructured(objects []client.Object) ([]*unstructured.Unstructured, error) {
	all := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, err
		}
		delete(content, "status")
		all[i] = &unstructured.Unstructured{Object: content}
	}
	return all, nil
}
