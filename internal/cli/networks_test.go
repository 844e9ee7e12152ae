package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestNetworksPlan compares the output of croft networks plan with the golden files. After
// a change, run `go test ./internal/cli -update` and review the diff.
func TestNetworksPlan(t *testing.T) {
	for golden, output := range map[string]string{
		"plan.txt": "table", "plan.sh": "cli", "plan.cloudformation.yaml": "cloudformation", "plan.tf.json": "terraform", "plan.json": "json",
	} {
		t.Run(golden, func(t *testing.T) {
			status, got, stderr := runCroft(t, "", "networks", "plan", "-f", "../../examples/networks.yaml", "-o", output)
			if status != 0 || stderr != "" {
				t.Fatalf("exit status %d: %s", status, stderr)
			}
			assertGolden(t, filepath.Join("testdata", "networks", golden), got)
		})
	}
}

// TestNetworksPlanRefuses tests a pool whose nodes have too few network interfaces for its
// networks.
func TestNetworksPlanRefuses(t *testing.T) {
	file := writeConfig(t, `platform: {clusterName: demo, nodeClass: {aws: {role: nodes}}}
secondaryNetworks:
  n4: {zones: [{zone: a, subnet: s, cidr: 10.0.4.0/24, podCIDR: 10.0.4.32/27}]}
  n6: {zones: [{zone: a, subnet: t, cidr: 10.0.6.0/24, podCIDR: 10.0.6.32/27}]}
pools: {telco: {secondaryNetworks: [n4, n6], instances: {instanceTypes: [t3.nano]}}}
`)
	status, stdout, stderr := runCroft(t, "", "networks", "plan", "-f", file)
	const want = "croft.yaml:5: pools.telco.secondaryNetworks: a node needs 3 network interfaces, its own and one for each of n4, n6, " +
		"and t3.nano has 2; leave out t3.nano, or networks"
	if status != 2 || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit status %d: %s%s", status, stderr, stdout)
	}
	status, stdout, stderr = runCroft(t, "", "networks", "plan", "-f", "../../examples/two-tenants.yaml")
	if status != 0 || stdout != "" || stderr != "croft: the file has no secondaryNetworks\n" {
		t.Errorf("a file without networks: exit status %d: %s%s", status, stderr, stdout)
	}
}
