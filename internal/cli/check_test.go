package cli_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestCheckWarns expects warnings for likely mistakes. The command fails because of them
// only with --strict.
func TestCheckWarns(t *testing.T) {
	file := writeConfig(t, `platform: {clusterName: demo, nodeClass: {kwok: {}}, admins: ["oidc:ops"], groupPrefix: "oidc:"}
pools:
  apps: {ttl: 1m}
  jobs: {instances: {instanceTypes: [m5.large, m5.larg]}}
tenants:
  shop: {pool: apps, access: [{group: devs, role: operator}, {group: ops, role: viewer}], quota: {nvidia.com/gpu: 4}}
`)
	want := []string{
		"croft.yaml:3: pools.apps.ttl: warning: each node is replaced 1m after its creation",
		"croft.yaml:4: pools.jobs.instances.instanceTypes[1]: warning: m5.larg: croft does not know this instance type; did you mean m5.large?",
		"croft.yaml:6: tenants.shop.access[1].group: warning: oidc:ops is among the platform's admins",
		`croft.yaml:6: tenants.shop.quota["nvidia.com/gpu"]: warning: a quota of nvidia.com/gpu limits nothing; to limit a device, write requests.nvidia.com/gpu`,
	}
	for _, strict := range []bool{false, true} {
		args, wantStatus, wantOut := []string{"check", "-f", file}, 0, "good: 1 tenant, 2 pools\n"
		if strict {
			args, wantStatus, wantOut = append(args, "--strict"), 2, ""
		}
		status, stdout, stderr := runCroft(t, "", args...)
		if status != wantStatus || stdout != wantOut {
			t.Errorf("strict %v: exit status %d and %q, want %d and %q", strict, status, stdout, wantStatus, wantOut)
		}
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		if len(lines) != len(want) {
			t.Errorf("strict %v: %d lines, want %d:\n%s", strict, len(lines), len(want), stderr)
		}
		for _, line := range want {
			if !strings.Contains(stderr, line) {
				t.Errorf("strict %v: no line %q in\n%s", strict, line, stderr)
			}
		}
	}
}

// TestCheckNotes expects a note on a valid value, which --strict accepts.
func TestCheckNotes(t *testing.T) {
	file := writeConfig(t, `platform: {clusterName: demo, clusterDNS: [169.254.169.254], network: {dialect: ClusterNetworkPolicy}, nodeClass: {ref: {group: karpenter.k8s.gcp, kind: GCENodeClass, name: default}}}
pools: {apps: {}}
tenants: {shop: {pool: apps}}
`)
	const note = "croft.yaml:1: platform.clusterDNS[0]: note: 169.254.169.254 is a metadata address, too"
	status, stdout, stderr := runCroft(t, "", "check", "--strict", "-f", file)
	if status != 0 || stdout != "good: 1 tenant, 1 pool\n" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, note) {
		t.Errorf("exit status %d: %s%s", status, stdout, stderr)
	}
	if status, stdout, _ := runCroft(t, "", "check", "--strict", "-o", "yaml", "-f", file); status != 0 || !strings.Contains(stdout, "severity: Note\n") {
		t.Errorf("as data: exit status %d: %s", status, stdout)
	}
}

// TestCheckRefuses tests mistakes that used to fail later, or never.
func TestCheckRefuses(t *testing.T) {
	const platform = "platform: {clusterName: demo, nodeClass: {kwok: {}}}\n"
	for input, want := range map[string]string{
		"tenants: {shop: {pool: apps, quota: {cpus: 4}}}":                                                     `tenants.shop.quota.cpus: a quota cannot limit cpus; did you mean cpu?`,
		"tenants: {shop: {pool: apps, quota: {deployments: 4}}}":                                              `tenants.shop.quota.deployments: a quota cannot limit deployments; did you mean count/deployments.apps?`,
		"tenants: {shop: {pool: apps, quota: {pods: 1500m}}}":                                                 `tenants.shop.quota.pods: pods is counted in whole numbers; write 2, not 1500m`,
		"tenants: {shop: {pool: apps, limits: {default: {foo: 1}}}}":                                          `tenants.shop.limits.default.foo: no container can request foo; containers can request cpu, ephemeral-storage and memory`,
		"tenants: {shop: {pool: apps, limits: {max: {requests.cpu: 1}}}}":                                     `tenants.shop.limits.max["requests.cpu"]: no container can request requests.cpu; did you mean cpu?`,
		"tenants: {shop: {pool: apps, network: {egress: Restricted, allowCIDRs: [10.0.0.1/8]}}}":              `tenants.shop.network.allowCIDRs[0]: 10.0.0.1/8 is not a network; write 10.0.0.0/8, or 10.0.0.1/32 for that address alone`,
		"pools: {apps: {budgets: [{nodes: \"0\", schedule: every day, duration: 8h}]}}":                       `pools.apps.budgets[0].schedule: "every day" is not a cron schedule`,
		"pools: {apps: {budgets: [{nodes: \"0\", schedule: 0 25 * * *, duration: 8h}]}}":                      `pools.apps.budgets[0].schedule: "0 25 * * *" is not a cron schedule (end of range (25) above maximum (23): 25)`,
		"pools: {apps: {limits: {cpus: 10}}}":                                                                 `pools.apps.limits.cpus: no node has cpus, so this limits nothing; did you mean cpu?`,
		"pools: {apps: {limits: {requests.nvidia.com/gpu: 10}}}":                                              `pools.apps.limits["requests.nvidia.com/gpu"]: no node has requests.nvidia.com/gpu, so this limits nothing; did you mean nvidia.com/gpu?`,
		"pools: {apps: {ttl: 0s}}":                                                                            `pools.apps.ttl: with 0s each node would be replaced as soon as it is created, and no pod would run; leave it out, or write Never`,
		"pools: {apps: {nodeClass: {ref: {group: karpenter.k8s.aws/v1, kind: EC2NodeClass, name: default}}}}": `pools.apps.nodeClass.ref.group: karpenter.k8s.aws/v1 is not an API group; write it without a version, such as karpenter.k8s.aws`,
	} {
		file := platform + input
		if !strings.HasPrefix(input, "pools") {
			file += "\npools: {apps: {}}"
		}
		status, _, stderr := runCroft(t, "", "check", "-f", writeConfig(t, file))
		if status != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s\nexit status %d, want 2 and %s\ngot  %s", input, status, want, stderr)
		}
	}
}

// TestCheckThresholds expects the number of namespaces if it is more than half of the number that Kubernetes
// is tested with, and a warning if it is larger.
func TestCheckThresholds(t *testing.T) {
	for _, test := range []struct {
		tenants       int
		line, warning string
	}{
		{78, "", ""},
		{79, "5056 of 10000 namespaces, with which Kubernetes is tested in one cluster (docs/reference/sizing.md)\n", ""},
		{157, "", "warning: the tenants have 10048 namespaces, and Kubernetes is tested with up to 10000 in one cluster"},
	} {
		file := &strings.Builder{}
		file.WriteString("platform: {clusterName: demo, nodeClass: {kwok: {}}}\npools: {apps: {}}\ntenants:\n")
		for i := range test.tenants {
			fmt.Fprintf(file, "  t%d: {pool: apps, namespaces: [t%d", i, i)
			for j := range 63 { // a tenant has at most 64
				fmt.Fprintf(file, ", t%d-%d", i, j)
			}
			file.WriteString("]}\n")
		}
		status, stdout, stderr := runCroft(t, "", "check", "-f", writeConfig(t, file.String()))
		want := fmt.Sprintf("good: %d tenants, 1 pool\n", test.tenants) + test.line
		if status != 0 || stdout != want || (test.warning == "") != (stderr == "") || !strings.Contains(stderr, test.warning) {
			t.Errorf("%d tenants: exit status %d: %s%s", test.tenants, status, stdout, stderr)
		}
	}
}

// TestCheckPools expects a warning above the number of pools that Karpenter was measured with.
func TestCheckPools(t *testing.T) {
	for pools, want := range map[int]string{500: "", 501: "warning: there are 501 pools, and Karpenter was measured with up to 500"} {
		file := &strings.Builder{}
		file.WriteString("platform: {clusterName: demo, nodeClass: {kwok: {}}}\ntenants: {shop: {pool: p0}}\npools:\n")
		for i := range pools {
			fmt.Fprintf(file, "  p%d: {}\n", i)
		}
		status, _, stderr := runCroft(t, "", "check", "-f", writeConfig(t, file.String()))
		if status != 0 || strings.Contains(stderr, "measured") != (want != "") || !strings.Contains(stderr, want) {
			t.Errorf("%d pools: exit status %d: %.500s", pools, status, stderr)
		}
	}
}
