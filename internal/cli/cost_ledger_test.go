package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"croft.dev/croft/internal/access/proxy"
)

// serveCosts answers as a ledger: to the token tenant-token for the namespace shop-prod, and to the token admin-token for
// the cluster.
func serveCosts(w http.ResponseWriter, r *http.Request) {
	const answer = `{"from": "2026-11-01T00:00:00Z", "until": "2026-11-26T12:00:00Z", "currency": "EUR", "by": "tenant",
"lines": [{"name": "shop", "cost": "2.250000", "idle": "0.300000", "total": "2.550000", "estimated": "0.000000", "perHourNow": "1.500000",
"idleHidden": true, "cpuHours": 100, "memoryGiBHours": 50, "measuredShare": 0.96, "cpuUsedHours": 12.5, "memoryUsedGiBHours": 40.254},
{"name": "jobs", "measuredShare": 0, "cost": "1.000000", "idle": "0.000000", "total": "1.000000", "estimated": "0.500000",
"perHourNow": "0.000000", "idleHidden": true}], "total": {"name": "total", "cost": "3.250000", "idle": "0.300000", "total": "3.550000",
"estimated": "0.500000", "perHourNow": "1.500000", "idleHidden": true}, "priceSources": [{"source": "prices.yaml", "cost": "3.250000"}],
"missingPrices": [], "limits": ["idle cost of pools that other tenants may use is not shown: it would reveal their cost"]}`
	query := r.URL.Query()
	if r.URL.Path != "/v1/costs" || query.Get("since") != "720h0m0s" || query.Get("by") != "tenant" {
		http.NotFound(w, r)
		return
	}
	status := http.StatusForbidden
	switch token, namespace := r.Header.Get("Authorization"), query.Get("namespace"); {
	case token == "Bearer moved-token":
		http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusFound)
		return
	case token == "Bearer admin-token" && !query.Has("namespace"), token == "Bearer tenant-token" && namespace == "shop-prod":
		_, _ = fmt.Fprint(w, answer)
		return
	case token == "" || strings.HasSuffix(token, "old-token"):
		status = http.StatusUnauthorized
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": "refused\x1b[31m"})
}

// startLedger starts a ledger. It returns the flags for it, and a kubeconfig for a token.
func startLedger(t *testing.T) (flags string, kubeconfig func(token string) string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(serveCosts))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	authority := filepath.Join(dir, "ca.crt")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(authority, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return "--since 30d --ledger " + server.URL + " --certificate-authority " + authority, func(token string) string {
		file := filepath.Join(dir, token)
		content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: here,
contexts: [{name: here, context: {cluster: here, user: me, namespace: shop-prod}}], users: [{name: me, user: {token: %q}}],
clusters: [{name: here, cluster: {server: "https://k8s.example.org", tls-server-name: other}}]}`, token)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
}

// TestCostOfLedger expects the ledger's figures, with the token of the kubeconfig, for the tenant of the context's
// namespace if the user may not read the cluster's.
func TestCostOfLedger(t *testing.T) {
	flags, kubeconfig := startLedger(t)
	for _, args := range []string{"--kubeconfig " + kubeconfig("admin-token"), "--kubeconfig " + kubeconfig("tenant-token"),
		"-n shop-prod --kubeconfig " + kubeconfig("tenant-token")} {
		status, stdout, stderr := runCroft(t, "", strings.Fields("cost "+flags+" "+args)...)
		if status != 0 || stdout != ledgerCosts || stderr != "" {
			t.Errorf("%s: exit status %d: %s%s", args, status, stdout, stderr)
		}
	}
}

// ledgerCosts is the output for the costs of serveCosts.
const ledgerCosts = `from 2026-11-01T00:00:00Z until 2026-11-26T12:00:00Z, in EUR

TENANT   COST     IDLE         TOTAL     NOW/HOUR
shop     2.2500   0.3000 + -   2.5500    1.5000
jobs     1.0000   -            ~1.0000   0.0000
total    3.2500   0.3000 + -   ~3.5500   1.5000

price: prices.yaml for 3.2500
~ idle cost of pools that other tenants may use is not shown: it would reveal their cost
`

// startProxy starts a server that answers as croft proxy with a ledger: it forwards other requests to the cluster of a
// kubeconfig. It returns a kubeconfig for a token.
func startProxy(t *testing.T, cluster string) (kubeconfig func(token string) string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cluster)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(proxy.LedgerPath+"/", http.StripPrefix(proxy.LedgerPath, http.HandlerFunc(serveCosts)))
	mux.Handle("/", httputil.NewSingleHostReverseProxy(address))
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return func(token string) string {
		return writeConfig(t, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: here,
contexts: [{name: here, context: {cluster: here, user: me, namespace: shop-prod}}], users: [{name: me, user: {token: %q}}],
clusters: [{name: here, cluster: {server: %q, certificate-authority-data: %q}}]}`, token, server.URL, base64.StdEncoding.EncodeToString(block)))
	}
}

// TestCostThroughProxy fails if a user whose server is croft proxy does not get the ledger's figures, on request or
// without the right to list objects, or if another user gets them without a request.
func TestCostThroughProxy(t *testing.T) {
	member, admin := startProxy(t, serveCluster(t, "nodes")), startProxy(t, serveCluster(t))
	const refused = "croft: you may not read nodes: ask a platform admin for the right to list them in all namespaces\n"
	for args, want := range map[string]struct {
		status         int
		stdout, stderr string
	}{
		"--ledger proxy --kubeconfig " + member("tenant-token"):              {0, ledgerCosts, ""},
		"--ledger proxy -n shop-prod --kubeconfig " + member("tenant-token"): {0, ledgerCosts, ""},
		"--ledger proxy --kubeconfig " + admin("admin-token"):                {0, ledgerCosts, ""},
		"--kubeconfig " + member("tenant-token"):                             {0, ledgerCosts, ""},
		// The ledger's refusal helps more than the API server's.
		"--kubeconfig " + member("old-token"):                                                {1, "", "the ledger does not accept your credentials"},
		"--explain --kubeconfig " + member("tenant-token"):                                   {1, "", refused},
		"--prices " + writeConfig(t, costPrices) + " --kubeconfig " + member("tenant-token"): {1, "", refused},
		// Another API server gets one more request, and the user its first answer.
		"--by pool --kubeconfig " + member("tenant-token"):    {1, "", refused},
		"--kubeconfig " + member("moved-token"):               {1, "", refused},
		"--kubeconfig " + serveCluster(t, "nodes"):            {1, "", refused},
		"--kubeconfig " + admin("admin-token"):                {0, "(platform)", ""},
		"--ledger proxy --kubeconfig " + serveCluster(t):      {2, "", "write an https URL"},
		"--ledger proxy --kubeconfig " + admin("moved-token"): {1, "", "is no ledger of croft: it answers with 302 Found"},
		"--ledger proxy --certificate-authority ca.crt":       {2, "", "--certificate-authority has no effect here: croft proxy is the kubeconfig's server"},
	} {
		status, stdout, stderr := runCroft(t, "", append([]string{"cost", "--since", "30d"}, strings.Fields(args)...)...)
		if status != want.status || !strings.Contains(stdout, want.stdout) || !strings.Contains(stderr, want.stderr) || strings.Count(stderr, "\n") > 1 ||
			(want.stdout == "") != (stdout == "") || strings.Contains(stderr, "-token") {
			t.Errorf("%s: exit status %d: %s%s\nwant %d %s%s", args, status, stdout, stderr, want.status, want.stdout, want.stderr)
		}
	}
}

// TestUsageOfLedger expects usage that was not measured to be no zero.
func TestUsageOfLedger(t *testing.T) {
	flags, kubeconfig := startLedger(t)
	for output, want := range map[string][]string{
		"wide": {"CPU HOURS   GIB HOURS   CPU USED   GIB USED   MEASURED\n", " 100.00      50.00       12.50      40.25      96%\n",
			" 0.00        0.00        ?          ?          0%\n", " 0.00        0.00        -          -          -\n"},
		"csv": {",cpu_hours,memory_gib_hours,cpu_used_hours,memory_used_gib_hours,measured_share\n", ",100.000,50.000,12.500,40.254,0.960\n",
			",0.000,0.000,,,0.000\n"},
		"json": {`"measuredShare": 0.96,`, `"cpuUsedHours": 12.5,`, `"memoryUsedGiBHours": 40.254,`, `"measuredShare": 0,`},
	} {
		status, stdout, stderr := runCroft(t, "", strings.Fields("cost "+flags+" -o "+output+" --kubeconfig "+kubeconfig("admin-token"))...)
		if status != 0 || stderr != "" {
			t.Errorf("-o %s: exit status %d: %s", output, status, stderr)
		}
		for _, part := range want {
			if strings.Count(stdout, part) != 1 {
				t.Errorf("-o %s lacks %q:\n%s", output, part, stdout)
			}
		}
	}
}

// TestLedgerRefuses expects one line with the reason, and no token for another server.
func TestLedgerRefuses(t *testing.T) {
	flags, kubeconfig := startLedger(t)
	url := strings.Fields(flags)[3]
	for args, want := range map[string]string{
		flags + " -n bank --kubeconfig " + kubeconfig("tenant-token"):                                                  `croft: the ledger at ` + url + `: refused\x1b[31m`,
		flags + " --kubeconfig " + kubeconfig("old-token"):                                                             "log in again (`croft login`)",
		flags + " --kubeconfig " + kubeconfig("moved-token"):                                                           "is no ledger of croft: it answers with 302 Found",
		"--since 1h --ledger http://ledger.example.org":                                                                "--ledger http://ledger.example.org: write an https URL",
		"--ledger " + url + " --since 30d --kubeconfig " + kubeconfig("tenant-token"):                                  "check --ledger and --certificate-authority",
		"--ledger " + url + " --since many":                                                                            `croft cost: --since "many": write a duration`,
		"--ledger https://127.0.0.1:1 --certificate-authority " + kubeconfig("x") + " --kubeconfig " + kubeconfig("x"): "has no PEM certificate",
	} {
		status, stdout, stderr := runCroft(t, "", strings.Fields("cost "+args)...)
		if status == 0 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) || strings.Contains(stderr, "-token") {
			t.Errorf("%s: exit status %d: %s%s\nwant %s", args, status, stdout, stderr, want)
		}
	}
}

const emptyAuthentication = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"

// TestLedgerFlags expects one line for bad settings of the service.
func TestLedgerFlags(t *testing.T) {
	bad := writeConfig(t, "volumes:\n  gp3: cheap\n")
	const serving = "ledger --data-dir d --tls-cert-file tls.crt --tls-private-key-file tls.key"
	for line, want := range map[string]string{
		"ledger":                        "data-dir",
		serving + " --prices nowhere":   "--prices: open nowhere: no such file",
		serving + " --prices " + bad:    `the text "cheap": must be a number`,
		serving + " --log-level louder": "is no level",
		serving + " --authentication-config " + writeConfig(t, "apiVersion: v1\nkind: Pod\n"):                                                         "no kind \"Pod\"",
		"proxy --authentication-config " + writeConfig(t, emptyAuthentication) + " --tls-cert-file a --tls-private-key-file b --ledger http://ledger": "croft: --ledger http://ledger: write an https URL",
		"proxy --authentication-config a --tls-cert-file a --tls-private-key-file b --ledger-ca-file c":                                               "--ledger-ca-file has no effect here: it is for --ledger",
	} {
		status, stdout, stderr := runCroft(t, "", strings.Fields(line)...)
		if status != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d: %s%s\nwant %s", line, status, stdout, stderr, want)
		}
	}
}

// TestInstallLedger expects one line about arguments with which the ledger would not start.
func TestInstallLedger(t *testing.T) {
	const with = "--image croft:test --ledger "
	for line, want := range map[string]string{
		with + "--proxy-ledger": "--proxy-ledger has no effect here: it connects croft proxy and croft ledger",
		"--ledger":              "--ledger has no effect here", "--image croft:test --ledger-storage=1Gi": "add --ledger",
		with + "--ledger-arg=--price=p.yaml": "--ledger-arg: unknown flag: --price",
		with + "--ledger-arg=prices.yaml":    "--ledger-arg prices.yaml: write a flag",
		with + "--ledger-storage=big":        "--ledger-storage big: write a size, such as 1Gi",
		with + "--ledger-storage=-1Gi":       "--ledger-storage -1Gi: write a size",
	} {
		if status, stdout, stderr := runCroft(t, "", append([]string{"install", "--export"}, strings.Fields(line)...)...); status != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d: %s%s\nwant %s", line, status, stdout, stderr, want)
		}
	}
	line := with + "--ledger-arg=--prices=/etc/croft/ledger/prices.yaml --ledger-storage=5Gi --ledger-storage-class=fast"
	status, stdout, stderr := runCroft(t, "", append([]string{"install", "--export"}, strings.Fields(line)...)...)
	for _, want := range []string{"- --prices=/etc/croft/ledger/prices.yaml\n", "storage: 5Gi\n", "storageClassName: fast\n"} {
		if status != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit status %d, no %s: %s", status, want, stderr)
		}
	}
}
