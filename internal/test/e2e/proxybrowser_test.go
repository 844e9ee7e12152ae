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

// proxyBrowserLogin is part of `make test-all`. It fails if jane, who has only the kubeconfig
// that croft kubeconfig wrote, cannot log in with croft login in a real browser and then work
// in her namespaces with kubectl and helm, or if she can do anything else. proxyLogin tests the
// login in `make test`, without a browser.
func proxyBrowserLogin(t *testing.T, p *proxiedCluster) {
	sandbox.Thorough(t)
	jane := p.machine(t)
	page := jane.installBrowser(t, "jane")
	jane.croft(t, "kubeconfig", "--tenant", ownNamespace, "-n", ownNamespace, "--write",
		"--server", p.url, "--certificate-authority", write(t, p.authority),
		"--issuer", p.idp.issuer, "--issuer-certificate-authority", p.idp.AuthorityFile,
		"--token-storage", "file", "--prompt", "consent").exits(t, 0)
	if o := jane.kubectl(t, "", "get", "pods"); o.status == 0 || !strings.Contains(o.stderr, "run croft login") {
		t.Errorf("before the login: %s", o)
	}
	if o := jane.croft(t, "login").exits(t, 0); !strings.Contains(o.stderr, "logged in as jane") {
		t.Errorf("unexpected output of croft login: %s", o)
	}
	// croft login ends when it has its token, possibly before the browser shows the last page.
	eventually(t, moments, "the browser to show the end of the login", func(context.Context) error {
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
		{"Namespaces", browserNamespaces}, {"Pod", browserPod}, {"Helm", browserHelm}, {"NothingElse", browserNothingElse},
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

// browserNamespaces fails if a list of namespaces, or across namespaces, does not show exactly
// jane's.
func browserNamespaces(t *testing.T, jane *machine) {
	if shown := jane.kubectl(t, "", "get", "ns").exits(t, 0).stdout; !slices.Equal(columns(shown, 1), append([]string{"NAME"}, ownNamespaces...)) {
		t.Errorf("kubectl get ns shows jane\n%s", shown)
	}
	shown := jane.kubectl(t, "", "get", "serviceaccounts", "-A", "-o", `jsonpath={range .items[?(@.metadata.name=="default")]}{.metadata.namespace}{"\n"}{end}`)
	if got := strings.Fields(shown.exits(t, 0).stdout); !slices.Equal(got, ownNamespaces) {
		t.Errorf("kubectl get serviceaccounts -A shows jane those of %v, want %v", got, ownNamespaces)
	}
}

// browserPod fails if jane cannot read a pod's log, run a command in it or connect to one
// of its ports.
func browserPod(t *testing.T, jane *machine) {
	pod := nginx(ownNamespace, "by-browser")
	jane.kubectl(t, "", "run", pod.Name, "--image=nginx:alpine").exits(t, 0)
	t.Cleanup(func() { jane.remove(t, pod) })
	k := jane.kubeletOf(t, jane.runs(t, pod).Spec.NodeName)
	close(k.goOn)
	if logs := jane.kubectl(t, "", "logs", pod.Name).exits(t, 0).stdout; logs != "one\ntwo\n" {
		t.Errorf("kubectl logs prints %q", logs)
	}
	if output := jane.kubectl(t, "hello\n", "exec", "-i", pod.Name, "--", "cat").exits(t, 0).stdout; output != "hello\n" {
		t.Errorf("kubectl exec prints %q", output)
	}
	if answer, err := say(t, jane.forward(t, "pod/"+pod.Name, "80"), "hello"); answer != "port 80: hello" || err != nil {
		t.Errorf("through kubectl port-forward comes %q: %v", answer, err)
	}
}

// forwarding matches the output of kubectl port-forward when it listens.
var forwarding = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+) -> `)

// forward runs kubectl port-forward, and returns the address at which it listens.
func (m *machine) forward(t testing.TB, to, port string) (address string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "forward")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := m.sandbox(t, "kubectl", "--kubeconfig", m.kubeconfig, "port-forward", "--address", "127.0.0.1", to, ":"+port)
	cmd.Env, cmd.Stdout, cmd.Stderr = m.env, file, file
	p := spawn(t, cmd)
	eventually(t, moments, "kubectl to listen", func(context.Context) error {
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

// browserHelm fails if jane cannot install, upgrade and uninstall a chart in her
// namespace, or if she can install one elsewhere or with cluster-scoped objects.
func browserHelm(t *testing.T, jane *machine) {
	helm, err := sandbox.FindTool("helm")
	if err != nil {
		t.Fatal(err)
	}
	const chart = "internal/test/e2e/testdata/chart"
	wait := []string{"--wait", "--timeout", patience.String()}
	jane.command(t, helm, append([]string{"install", "greeting", chart}, wait...)...).exits(t, 0)
	jane.command(t, helm, append([]string{"upgrade", "greeting", chart, "--set", "replicas=2"}, wait...)...).exits(t, 0)
	if listed := jane.command(t, helm, "list", "--short").exits(t, 0).stdout; listed != "greeting\n" {
		t.Errorf("helm list prints %q", listed)
	}
	if n := len(jane.running(t, ownNamespace, 2)); n != 2 {
		t.Errorf("%d pods of the chart run, want 2", n)
	}
	for what, args := range map[string][]string{
		"in another tenant's namespace": {"--namespace", otherNamespace},
		"with a ClusterRole":            {"--set", "clusterWide=true"},
	} {
		o := jane.command(t, helm, append([]string{"install", "refused", chart}, args...)...).exits(t, 1)
		if !strings.Contains(o.stderr, "forbidden") {
			t.Errorf("a chart %s: %s", what, o)
		}
	}
	jane.command(t, helm, append([]string{"uninstall", "greeting"}, wait...)...).exits(t, 0)
	jane.command(t, helm, "uninstall", "refused", "--ignore-not-found").exits(t, 0)
	eventually(t, patience, "the chart's pods to go", func(ctx context.Context) error {
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

// browserNothingElse fails if jane can do anything, with any kind that the cluster serves,
// that her role does not give her in her own namespaces.
func browserNothingElse(t *testing.T, jane *machine) {
	u := jane.userWith(t, jane.idToken(t))
	if user, groups := u.whoAmI(t); user != "oidc:jane" || !slices.Equal(groups, []string{ownGroup, "system:authenticated"}) {
		t.Fatalf("the API server sees %s with groups %v", user, groups)
	}
	tried, problems := jane.sweep(t, u)
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
	asAdmin := jane.kubectl(t, "", "get", "pods", "--as", "admin", "--as-group", "system:masters").exits(t, 1)
	if !strings.Contains(asAdmin.stderr, "impersonation is not allowed") {
		t.Errorf("the proxy does not say why it rejects --as: %s", asAdmin)
	}
	expectNoAccess(t, u, otherNamespace)
	expectNoAccess(t, u, metav1.NamespaceSystem)
}
