package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"croft.dev/croft/internal/cli"
)

// runCroft runs croft in this process.
func runCroft(t *testing.T, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	status = cli.Main(args, strings.NewReader(stdin), &out, &errOut)
	return status, out.String(), errOut.String()
}

func writeConfig(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "croft.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const good = `platform: {clusterName: demo, tenantDomain: tenants.example.org, nodeClass: {kwok: {}}}
pools: {apps: {instances: {instanceTypes: [t3a.large]}}}
`

// TestBadInput expects one line for each possible mistake, with the place, the mistake and
// the remedy; exit status 2; and an empty standard output, since another command may read
// it.
func TestBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		input string
		lines []string
	}{
		"unknown pool":      {good + "tenants: {shop: {pool: app}}", []string{"croft.yaml:3: tenants.shop.pool: there is no pool app; did you mean apps?"}},
		"unknown field":     {good + "tenants: {shop: {pool: apps, domain: [a.org]}}", []string{"croft.yaml:3: tenants.shop.domain: there is no such field; did you mean domains?"}},
		"system namespaces": {good + "tenants:\n  kube-system: {pool: apps}\n  default: {pool: apps}", []string{"tenants.kube-system: kube-system is the name of a namespace of Kubernetes", "tenants.default: default is the name"}},
		"not a DNS label":   {good + "tenants: {Shop_1: {pool: apps}}", []string{"tenants.Shop_1: a tenant's name becomes a namespace and a domain: at most 63 lower-case letters"}},
		"too long a name":   {good + "tenants: {" + strings.Repeat("a", 64) + ": {pool: apps}}", []string{"at most 63 lower-case letters"}},
		"one namespace for two tenants": {good + "tenants:\n  shop: {pool: apps, namespaces: [web]}\n  bank: {pool: apps, namespaces: [web]}",
			[]string{"croft.yaml:5: tenants.bank.namespaces[0]: namespace web belongs to tenant shop"}},
		"overlapping domains": {good + "tenants:\n  shop: {pool: apps, domains: [a.org, \"*.b.org\"]}\n  bank: {pool: apps, domains: [a.org, c.b.org]}",
			[]string{"tenants.bank.domains[0]: a.org overlaps with a.org of tenant shop", "tenants.bank.domains[1]: c.b.org overlaps with *.b.org of tenant shop"}},
		"not a domain":     {good + "tenants: {shop: {pool: apps, domains: [\"http://a.org/\"]}}", []string{`tenants.shop.domains[0]: "http://a.org/" must be a domain`}},
		"durations":        {"platform: {clusterName: demo, nodeClass: {kwok: {}}}\npools:\n  jobs: {emptyTTL: 10}\n  apps: {emptyTTL: -5m}", []string{"croft.yaml:3: pools.jobs.emptyTTL: the number 10 is not allowed; write a duration with its unit, such as 30s, 10m or 168h", `pools.apps.emptyTTL: "-5m" must be a duration`}},
		"two node classes": {"platform: {clusterName: demo, nodeClass: {kwok: {}, aws: {role: nodes}}}", []string{"platform.nodeClass: set exactly one of kwok, aws and ref"}},
		"no instance left": {"platform: {clusterName: demo, nodeClass: {kwok: {}}}\npools: {apps: {instances: {instanceTypes: [t3a.large], architectures: [arm64]}}}", []string{"pools.apps.instances: no instance can become a node of this pool"}},
		"quantity":         {"platform: {clusterName: demo, nodeClass: {kwok: {}}}\npools: {apps: {limits: {cpu: 1oo}}}", []string{`pools.apps.limits.cpu: "1oo" is not a quantity; write one such as`}},
		"not YAML":         {"{{{", []string{"croft.yaml:1: not YAML"}},
		"empty":            {"", []string{"croft.yaml: the file is empty"}},
		"two platforms":    {"platform: {clusterName: a, nodeClass: {kwok: {}}}\n---\nplatform: {clusterName: b, nodeClass: {kwok: {}}}", []string{"croft.yaml:3: platform: a cluster has one platform"}},
		"20 MB":            {strings.Repeat("a", 20_000_000), []string{"croft.yaml: the file has 19.1 MiB, and croft reads no more than 10 MiB"}},
		"a duplicate key":  {good + "tenants:\n  shop: {pool: apps}\n  shop: {pool: apps}", []string{"croft.yaml:5: tenants.shop: is set twice, first on line 4"}},
		"no platform":      {"pools: {apps: {}}", []string{"platform"}},
		"many at once":     {"platform: {clusterName: 1}\npools: {apps: {ttl: soon}}\ntenants: {shop: {pool: app}}", []string{"platform.clusterName", "platform.nodeClass", "pools.apps.ttl", "tenants.shop.pool"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := runCroft(t, "", "check", "-f", writeConfig(t, c.input))
			if status != 2 {
				t.Errorf("exit status %d, want 2", status)
			}
			if stdout != "" {
				t.Errorf("standard output has %q, want nothing", stdout)
			}
			lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
			for _, want := range c.lines {
				if !strings.Contains(stderr, want) {
					t.Errorf("no line contains %q:\n%s", want, stderr)
				}
			}
			if name != "many at once" && len(lines) != len(c.lines) {
				t.Errorf("%d lines for %d mistakes:\n%s", len(lines), len(c.lines), stderr)
			}
			for _, line := range lines {
				if !strings.Contains(line, "croft.yaml") && !strings.HasPrefix(line, "Platform/default") {
					t.Errorf("this line names no file or object: %s", line)
				}
			}
		})
	}
}
