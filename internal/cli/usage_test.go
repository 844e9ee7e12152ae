package cli_test

import (
	"strings"
	"testing"
)

func TestExitStatus(t *testing.T) {
	nowhere := write(t, "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n")
	file := write(t, good)
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"good":                 {[]string{"check", "-f", file}, 0, ""},
		"unknown command":      {[]string{"frobnicate"}, 2, `unknown command "frobnicate"`},
		"unknown flag":         {[]string{"check", "--frob"}, 2, "unknown flag: --frob"},
		"missing flag":         {[]string{"check"}, 2, `"filename" not set`},
		"unknown format":       {[]string{"render", "-f", file, "-o", "xml"}, 2, "write one of yaml|json"},
		"unknown wall":         {[]string{"verify", "--wall", "moat"}, 2, "write one of network, nodes, identity, policy"},
		"unknown attack":       {[]string{"verify", "--list", "--attack", "siege"}, 2, "croft verify --list"},
		"explain":              {[]string{"verify", "--explain", "choose-node"}, 0, ""},
		"unknown explain":      {[]string{"verify", "--explain", "siege"}, 2, "croft verify --list"},
		"list and tenant":      {[]string{"verify", "--list", "--tenant", "a"}, 2, "[list explain tenant]"},
		"record and tenant":    {[]string{"verify", "--record", "--tenant", "a"}, 2, "[record tenant]"},
		"no archive":           {[]string{"support-bundle", "-o", "bundle.zip"}, 2, "ends with .tar.gz"},
		"bundle out of reach":  {[]string{"support-bundle", "-o", t.TempDir() + "/b.tar.gz", "--kubeconfig", nowhere}, 1, "cannot reach the cluster"},
		"no tenant":            {[]string{"certificate"}, 2, `"tenant" not set`},
		"no key":               {[]string{"certificate", "--tenant", "a", "--key", file + ".no"}, 2, "there is no such file"},
		"another key":          {[]string{"certificate", "--tenant", "a", "--key", file}, 2, "openssl genpkey"},
		"from without to":      {[]string{"reach", "--from", "a"}, 2, "missing [to]"},
		"unknown protocol":     {[]string{"reach", "--protocol", "tcp"}, 2, "write TCP, UDP or SCTP"},
		"since the future":     {[]string{"latency", "--since", "-1h"}, 2, "such as 1h, or 0 for all nodes"},
		"why nothing":          {[]string{"why"}, 2, "KIND/NAME"},
		"why no name":          {[]string{"why", "pod/"}, 2, "write what to ask about as KIND/NAME"},
		"why unknown kind":     {[]string{"why", "gateway/web"}, 2, "write one of pod, deployment"},
		"why text and object":  {[]string{"why", "pod/web", "-f", file}, 2, "give one of them"},
		"why no such text":     {[]string{"why", "-f", file + ".no"}, 2, "no such file"},
		"why out of reach":     {[]string{"why", "pod/web", "--kubeconfig", nowhere}, 1, "cannot reach the cluster"},
		"no such file":         {[]string{"check", "-f", file + ".no"}, 2, "there is no such file"},
		"no cluster":           {[]string{"status", "--kubeconfig", file + ".no"}, 1, "--kubeconfig or --context"},
		"diff out of reach":    {[]string{"diff", "-f", file, "--kubeconfig", nowhere}, 2, "cannot reach the cluster"},
		"cluster out of reach": {[]string{"status", "--kubeconfig", nowhere}, 1, "cannot reach the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, stderr := run(t, "", c.args...)
			if status != c.status {
				t.Errorf("exit status %d, want %d", status, c.status)
			}
			if !strings.Contains(stderr, c.says) {
				t.Errorf("want %q in: %s", c.says, stderr)
			}
			if strings.Count(stderr, "\n") > 1 {
				t.Errorf("want one line at most, got:\n%s", stderr)
			}
		})
	}
}
