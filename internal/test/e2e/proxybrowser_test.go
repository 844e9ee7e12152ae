package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/test/sandbox"
)

// testProxyBrowserLogin is part of `make test-all`. It fails if jane, who has only the kubeconfig
// that croft kubeconfig wrote, cannot log in with croft login in a real browser and then work
// in her namespaces with kubectl and helm, or if she can do anything else. testProxyLogin tests the
// login in `make e2e`, without a browser.
func testProxyBrowserLogin(t *testing.T, p *proxiedCluster) {
	sandbox.Thorough(t)
	jane := p.newMachine(t)
	page := jane.installBrowser(t, "jane")
	jane.runCroft(t, "kubeconfig", "--tenant", ownNamespace, "-n", ownNamespace, "--write",
		"--server", p.url, "--certificate-authority", writeTempFile(t, p.authority),
		"--issuer", p.idp.issuer, "--issuer-certificate-authority", p.idp.AuthorityFile,
		"--token-storage", "file", "--prompt", "consent").expectExit(t, 0)
	if o := jane.runKubectl(t, "", "get", "pods"); o.status == 0 || !strings.Contains(o.stderr, "run croft login") {
		t.Errorf("before the login: %s", o)
	}
	if o := jane.runCroft(t, "login").expectExit(t, 0); !strings.Contains(o.stderr, "logged in as jane") {
		t.Errorf("unexpected output of croft login: %s", o)
	}
	// croft login ends when it has its token, possibly before the browser shows the last page.
	awaitCondition(t, moments, "the browser to show the end of the login", func(context.Context) error {
		shown, err := os.ReadFile(page)
		if err == nil && !strings.Contains(string(shown), "You are logged in.") {
			err = fmt.Errorf("it shows %q", shown)
		}
		return err
	})

	for _, test := range []struct {
		name string
		run  func(*testing.T, *machine)
	}{
		{"Namespaces", testBrowserNamespaces}, {"Pod", testBrowserPod}, {"Helm", testBrowserHelm}, {"NothingElse", testBrowserNothingElse},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, jane) })
	}
}

// installBrowser gives the machine a browser in which a user logs in to an account. It returns
// the path of the last page.
func (m *machine) installBrowser(t testing.TB, account string) (page string) {
	t.Helper()
	browser := findBrowser(t)
	dir := t.TempDir()
	page = filepath.Join(dir, "page")
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' --account %s --certificate-authority '%s' \"$1\" >'%s' 2>&1\n",
		browser, account, m.idp.AuthorityFile, page)
	for _, name := range []string{"xdg-open", "open"} { // on Linux and macOS
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m.env = append(m.env, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "DISPLAY=:0")
	return page
}

// findBrowser returns the path of bin/browser. It skips the test if there is no Chromium.
func findBrowser(t testing.TB) string {
	t.Helper()
	found := slices.ContainsFunc([]string{"chromium", "chromium-browser", "google-chrome"}, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
	if !found {
		t.Skip("no browser to log in with: install Chromium, on Debian by `apt-get install chromium`")
	}
	browser, err := sandbox.FindTool("browser")
	if err != nil {
		t.Fatal(err)
	}
	return browser
}

// testBrowserNamespaces fails if a list of namespaces, or across namespaces, does not show exactly
// jane's.
func testBrowserNamespaces(t *testing.T, jane *machine) {
	if shown := jane.runKubectl(t, "", "get", "ns").expectExit(t, 0).stdout; !slices.Equal(cutColumns(shown, 1), append([]string{"NAME"}, ownNamespaces...)) {
		t.Errorf("kubectl get ns shows jane\n%s", shown)
	}
	shown := jane.runKubectl(t, "", "get", "serviceaccounts", "-A", "-o", `jsonpath={range .items[?(@.metadata.name=="default")]}{.metadata.namespace}{"\n"}{end}`)
	if got := strings.Fields(shown.expectExit(t, 0).stdout); !slices.Equal(got, ownNamespaces) {
		t.Errorf("kubectl get serviceaccounts -A shows jane those of %v, want %v", got, ownNamespaces)
	}
}

// testBrowserPod fails if jane cannot read a pod's log, run a command in it or connect to one
// of its ports.
func testBrowserPod(t *testing.T, jane *machine) {
	pod := newNginxPod(ownNamespace, "by-browser")
	jane.runKubectl(t, "", "run", pod.Name, "--image=nginx:alpine").expectExit(t, 0)
	t.Cleanup(func() { jane.deleteObjects(t, pod) })
	k := jane.startKubelet(t, jane.awaitRunning(t, pod).Spec.NodeName)
	close(k.goOn)
	if logs := jane.runKubectl(t, "", "logs", pod.Name).expectExit(t, 0).stdout; logs != "one\ntwo\n" {
		t.Errorf("kubectl logs prints %q", logs)
	}
	if output := jane.runKubectl(t, "hello\n", "exec", "-i", pod.Name, "--", "cat").expectExit(t, 0).stdout; output != "hello\n" {
		t.Errorf("kubectl exec prints %q", output)
	}
	if answer, err := sendText(t, jane.startPortForward(t, "pod/"+pod.Name, "80"), "hello"); answer != "port 80: hello" || err != nil {
		t.Errorf("through kubectl port-forward comes %q: %v", answer, err)
	}
}

// forwarding matches the output of kubectl port-forward when it listens.
var forwarding = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+) -> `)

// startPortForward runs kubectl port-forward, and returns the address at which it listens.
func (m *machine) startPortForward(t testing.TB, to, port string) (address string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "forward")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := m.newSandboxCommand(t, "kubectl", "--kubeconfig", m.kubeconfig, "port-forward", "--address", "127.0.0.1", to, ":"+port)
	cmd.Env, cmd.Stdout, cmd.Stderr = m.env, file, file
	p := startProcess(t, cmd)
	awaitCondition(t, moments, "kubectl to listen", func(context.Context) error {
		printed := readFile(t, path)
		select {
		case <-p.ended:
			t.Fatalf("kubectl port-forward ended: %v: %s", p.err, printed)
		default:
		}
		if found := forwarding.FindStringSubmatch(printed); found != nil {
			address = found[1]
			return nil
		}
		return errors.New(printed)
	})
	return address
}

// testBrowserHelm fails if jane cannot install, upgrade and uninstall a chart in her
// namespace, or if she can install one elsewhere or with cluster-scoped objects.
func testBrowserHelm(t *testing.T, jane *machine) {
	helm, err := sandbox.FindTool("helm")
	if err != nil {
		t.Fatal(err)
	}
	const chart = "internal/test/e2e/testdata/chart"
	wait := []string{"--wait", "--timeout", patience.String()}
	jane.runCommand(t, helm, append([]string{"install", "greeting", chart}, wait...)...).expectExit(t, 0)
	jane.runCommand(t, helm, append([]string{"upgrade", "greeting", chart, "--set", "replicas=2"}, wait...)...).expectExit(t, 0)
	if listed := jane.runCommand(t, helm, "list", "--short").expectExit(t, 0).stdout; listed != "greeting\n" {
		t.Errorf("helm list prints %q", listed)
	}
	if n := len(jane.awaitRunningPods(t, ownNamespace, 2)); n != 2 {
		t.Errorf("%d pods of the chart run, want 2", n)
	}
	for what, args := range map[string][]string{
		"in another tenant's namespace": {"--namespace", otherNamespace},
		"with a ClusterRole":            {"--set", "clusterWide=true"},
	} {
		o := jane.runCommand(t, helm, append([]string{"install", "refused", chart}, args...)...).expectExit(t, 1)
		if !strings.Contains(o.stderr, "forbidden") {
			t.Errorf("a chart %s: %s", what, o)
		}
	}
	jane.runCommand(t, helm, append([]string{"uninstall", "greeting"}, wait...)...).expectExit(t, 0)
	jane.runCommand(t, helm, "uninstall", "refused", "--ignore-not-found").expectExit(t, 0)
	awaitCondition(t, patience, "the chart's pods to go", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := jane.admin.List(ctx, &pods, client.InNamespace(ownNamespace)); err != nil {
			return err
		}
		if n := len(pods.Items); n > 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
}

// testBrowserNothingElse fails if jane can do anything, with any kind that the cluster serves,
// that her role does not give her in her own namespaces.
func testBrowserNothingElse(t *testing.T, jane *machine) {
	u := jane.newUser(t, jane.getIDToken(t))
	if user, groups := u.getIdentity(t); user != "oidc:jane" || !slices.Equal(groups, []string{ownGroup, "system:authenticated"}) {
		t.Fatalf("the API server sees %s with groups %v", user, groups)
	}
	tried, problems := jane.runSweep(t, u)
	t.Logf("%d requests", tried)
	if tried < 1000 { // some 100 kinds in three namespaces
		t.Errorf("only %d requests were tried", tried)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
	for _, path := range []string{"/metrics", "/debug/pprof/", "/logs", "/configz"} {
		if err := u.client.Discovery().RESTClient().Get().AbsPath(path).Do(t.Context()).Error(); !apierrors.IsForbidden(err) {
			t.Errorf("jane reads %s: %v", path, err)
		}
	}
	asAdmin := jane.runKubectl(t, "", "get", "pods", "--as", "admin", "--as-group", "system:masters").expectExit(t, 1)
	if !strings.Contains(asAdmin.stderr, "impersonation is not allowed") {
		t.Errorf("the proxy does not report why it rejects --as: %s", asAdmin)
	}
	expectNoAccess(t, u, otherNamespace)
	expectNoAccess(t, u, metav1.NamespaceSystem)
}
