package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestExitStatus(t *testing.T) {
	nowhere := writeConfig(t, "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n")
	file := writeConfig(t, good)
	for name, c := range map[string]struct {
		args     []string
		status   int
		wantText string
	}{
		"good":                 {[]string{"check", "-f", file}, 0, ""},
		"version":              {[]string{"--version"}, 0, ""},
		"unknown command":      {[]string{"frobnicate"}, 2, `unknown command "frobnicate"`},
		"unknown flag":         {[]string{"check", "--frob"}, 2, "croft check: unknown flag: --frob: `croft check --help`"},
		"misspelt flag":        {[]string{"check", "--filname", file}, 2, "unknown flag: --filname; did you mean --filename?"},
		"unknown shorthand":    {[]string{"check", "-q"}, 2, "unknown flag -q: `croft check --help` lists the flags"},
		"bad flag":             {[]string{"check", "--=a"}, 2, "--=a is not a flag"},
		"no value":             {[]string{"check", "-f"}, 2, "--filename (-f) needs a value: croft.yaml, "},
		"no duration":          {[]string{"apply", "-f", file, "--wait-timeout", "soon"}, 2, `--wait-timeout "soon": write a duration, such as 30s, 10m or 1h`},
		"neither yes nor no":   {[]string{"apply", "-f", file, "--wait=maybe"}, 2, `--wait "maybe": write true or false`},
		"misspelt command":     {[]string{"chek"}, 2, "did you mean check?"},
		"kubectl get":          {[]string{"get", "tenants", "-A"}, 2, "croft has no command get: write `kubectl get tenants -A`, or `croft status`"},
		"kubectl describe":     {[]string{"describe", "tenant", "shop"}, 2, "`croft status tenant/NAME`"},
		"kubectl edit":         {[]string{"edit", "tenant", "shop"}, 2, "write your file, and then `croft apply -f FILE`"},
		"kubectl create":       {[]string{"create", "-f", file}, 2, "write `croft apply -f FILE`"},
		"a stray argument":     {[]string{"check", file}, 2, "write croft check -f FILE"},
		"no name":              {[]string{"move", "tenant"}, 2, "croft move tenant: wrong number of arguments: write croft move tenant NAME"},
		"two names":            {[]string{"move", "tenant", "a", "b"}, 2, "write croft move tenant NAME"},
		"one of two flags":     {[]string{"adopt", "tenant", "a"}, 2, "write one of --filename (-f) and --undo"},
		"missing flag":         {[]string{"check"}, 2, "croft check: required flag --filename (-f) is not set: write croft check -f FILE"},
		"unknown format":       {[]string{"render", "-f", file, "-o", "xml"}, 2, "write one of yaml|json"},
		"unknown wall":         {[]string{"verify", "--wall", "moat"}, 2, "write one of network, nodes, identity, policy"},
		"unknown check":        {[]string{"doctor", "lod"}, 2, "unknown check \"lod\": write one of kubernetes, kinds"},
		"unknown attack":       {[]string{"verify", "--list", "--attack", "siege"}, 2, "croft verify --list"},
		"explain":              {[]string{"verify", "--explain", "choose-node"}, 0, ""},
		"unknown explain":      {[]string{"verify", "--explain", "siege"}, 2, "croft verify --list"},
		"list and tenant":      {[]string{"verify", "--list", "--tenant", "a"}, 2, "--list and --tenant exclude each other"},
		"record and tenant":    {[]string{"verify", "--record", "--tenant", "a"}, 2, "--record and --tenant exclude each other"},
		"no archive":           {[]string{"support-bundle", "-o", "bundle.zip"}, 2, "ends with .tar.gz"},
		"bundle out of reach":  {[]string{"support-bundle", "-o", t.TempDir() + "/b.tar.gz", "--kubeconfig", nowhere}, 1, "cannot reach the cluster"},
		"no tenant":            {[]string{"certificate"}, 2, "--tenant is not set"},
		"no key":               {[]string{"certificate", "--tenant", "a", "--key", file + ".no"}, 2, "there is no such file"},
		"another key":          {[]string{"certificate", "--tenant", "a", "--key", file}, 2, "openssl genpkey"},
		"from without to":      {[]string{"reach", "--from", "a"}, 2, "--to is not set: --from and --to go together"},
		"unknown protocol":     {[]string{"reach", "--protocol", "tcp"}, 2, "write TCP, UDP or SCTP"},
		"since the future":     {[]string{"latency", "--since", "-1h"}, 2, "such as 1h, or 0 for all nodes"},
		"why nothing":          {[]string{"why"}, 2, "KIND/NAME"},
		"why no name":          {[]string{"why", "pod/"}, 2, "name the object as KIND/NAME"},
		"why unknown kind":     {[]string{"why", "gateway/web"}, 2, "use one of pod, deployment"},
		"why text and object":  {[]string{"why", "pod/web", "-f", file}, 2, "use only one of them"},
		"why no such text":     {[]string{"why", "-f", file + ".no"}, 2, "no such file"},
		"why out of reach":     {[]string{"why", "pod/web", "--kubeconfig", nowhere}, 1, "cannot reach the cluster"},
		"no such file":         {[]string{"check", "-f", file + ".no"}, 2, "there is no such file"},
		"no cluster":           {[]string{"status", "--kubeconfig", file + ".no"}, 1, "--kubeconfig or --context"},
		"diff out of reach":    {[]string{"diff", "-f", file, "--kubeconfig", nowhere}, 2, "cannot reach the cluster"},
		"cluster out of reach": {[]string{"status", "--kubeconfig", nowhere}, 1, "cannot reach the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, stderr := runCroft(t, "", c.args...)
			if status != c.status {
				t.Errorf("exit status %d, want %d", status, c.status)
			}
			if !strings.Contains(stderr, c.wantText) {
				t.Errorf("want %q in: %s", c.wantText, stderr)
			}
			if strings.Count(stderr, "\n") > 1 {
				t.Errorf("want one line at most, got:\n%s", stderr)
			}
		})
	}
}

// TestVersionFlag fails if --version and `croft version` disagree.
func TestVersionFlag(t *testing.T) {
	status, flag, _ := runCroft(t, "", "--version")
	_, command, _ := runCroft(t, "", "version", "--client")
	if number := strings.TrimSpace(flag); status != 0 || !strings.HasPrefix(command, number+" (") {
		t.Errorf("exit status %d: croft --version prints %q, and croft version %q", status, flag, command)
	}
}

// TestRefusedCredentials expects an error to name the command that logs in again.
func TestRefusedCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer server.Close()
	config := func(user string) string {
		return writeConfig(t, "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \""+server.URL+"\"}}]\nusers: [{name: u, user: {"+user+
			"}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n")
	}
	for name, user := range map[string]string{
		"an old token":        "token: old",
		"a plugin that fails": "exec: {apiVersion: client.authentication.k8s.io/v1, command: \"false\", interactiveMode: Never}",
	} {
		for _, command := range []string{"status", "diff -f " + writeConfig(t, good), "apply -f " + writeConfig(t, good), "doctor", "delete tenant a --yes", "install", "me"} {
			status, _, stderr := runCroft(t, "", append(strings.Fields(command), "--kubeconfig", config(user))...)
			if status == 0 || !strings.Contains(stderr, "log in again (`croft login`") || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s, croft %s: exit status %d: %s", name, command, status, stderr)
			}
		}
	}
}
