package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestIAM compares the output of croft iam with the golden files. After a change, run `go
// test ./internal/cli -update` and review the diff.
func TestIAM(t *testing.T) {
	const example = "../../examples/aws.yaml"
	for golden, args := range map[string][]string{
		"aws.cloudformation.yaml": {"-f", example},
		"aws.tf.json":             {"-f", example, "-o", "terraform"},
		"aws.json":                {"-f", example, "-o", "json"},
		"irsa.cloudformation.yaml": {"-f", "testdata/every-field.yaml", "--identity", "irsa", "--oidc-provider", "https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE",
			"--service-account", "karpenter/karpenter", "--without-cni"},
	} {
		t.Run(golden, func(t *testing.T) {
			status, got, stderr := runCroft(t, "", append([]string{"iam"}, args...)...)
			if status != 0 {
				t.Fatal(stderr)
			}
			path := filepath.Join("testdata", "iam", golden)
			assertGolden(t, path, got)
			if notes := strings.Contains(stderr, "the resources of pool own"); notes != strings.HasPrefix(golden, "irsa") {
				t.Errorf("standard error: %s", stderr)
			}
		})
	}
}

func TestIAMBadInput(t *testing.T) {
	aws := writeConfig(t, "platform: {clusterName: demo, nodeClass: {aws: {role: nodes}}}\npools: {apps: {}}\n")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no file":           {nil, "required flag"},
		"no pools on AWS":   {[]string{"-f", "../../examples/two-tenants.yaml"}, "croft: no pool has nodeClass.aws, so there are no AWS resources to print"},
		"a wrong file":      {[]string{"-f", writeConfig(t, "platform: {clusterName: demo, nodeClass: {aws: {}}}\npools: {apps: {}}\n")}, "croft.yaml:2: pools.apps.nodeClass.aws: neither this pool nor the platform sets role"},
		"another format":    {[]string{"-f", aws, "-o", "pulumi"}, "croft: -o pulumi: unknown output format: write one of cloudformation|terraform|json"},
		"irsa, no issuer":   {[]string{"-f", aws, "--identity", "irsa"}, "croft: --identity irsa needs --oidc-provider"},
		"half a name":       {[]string{"-f", aws, "--service-account", "karpenter"}, "croft: --service-account karpenter: write its namespace too, such as kube-system/karpenter"},
		"a stranger's name": {[]string{"-f", aws, "--service-account", "a/b*"}, "croft: --service-account a/b*: write its namespace too, such as kube-system/karpenter"},
	} {
		status, stdout, stderr := runCroft(t, "", append([]string{"iam"}, c.args...)...)
		if status != 2 || stdout != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit status %d: %s%s", name, status, stderr, stdout)
		}
	}
}
