package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

// machine is a user's machine, with a kubeconfig and a cache directory.
type machine struct {
	*proxiedCluster
	env []string
	// kubeconfig is the path of the user's kubeconfig.
	kubeconfig string
	// loginFlags are the flags of croft login.
	loginFlags []string
}

func (p *proxiedCluster) newMachine(t testing.TB) *machine {
	t.Helper()
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	return &machine{
		proxiedCluster: p, kubeconfig: kubeconfig,
		env: append(os.Environ(), "KUBECONFIG="+kubeconfig, "XDG_CACHE_HOME="+dir, "HOME="+dir),
		loginFlags: []string{
			"--issuer", p.idp.issuer, "--issuer-certificate-authority", p.idp.AuthorityFile,
			"--token-storage", "file", "--no-browser",
		},
	}
}

// runCroft runs croft on the machine.
func (m *machine) runCroft(t testing.TB, args ...string) outcome {
	t.Helper()
	return m.runCommand(t, findCroftBinary(t), args...)
}

// runCommand runs a program on the machine.
func (m *machine) runCommand(t testing.TB, program string, args ...string) outcome {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = m.env
	return runCommand(t, cmd, "")
}

// runKubectl runs kubectl on the machine.
func (m *machine) runKubectl(t testing.TB, input string, args ...string) outcome {
	t.Helper()
	cmd := m.newSandboxCommand(t, append([]string{"kubectl", "--kubeconfig", m.kubeconfig}, args...)...)
	cmd.Env = m.env
	return runCommand(t, cmd, input)
}

// logIn runs croft login, and opens the URL that it prints.
func (m *machine) logIn(t testing.TB, account string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), findCroftBinary(t), append([]string{"login", "--prompt", "consent"}, m.loginFlags...)...)
	cmd.Env = m.env
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	page := ""
	for page == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("croft login prints no URL: %v", err)
		}
		if line = strings.TrimSpace(line); strings.HasPrefix(line, m.idp.issuer) {
			page = line
		}
	}
	answer, err := http.Get(m.idp.Visit(t, page, account).String())
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	output, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(string(output), "logged in as "+account) {
		t.Fatalf("croft login: %v: %s", err, output)
	}
}

// testProxyLogin fails if a new user cannot use kubectl after croft login and croft kubeconfig,
// or if a user whose groups have no role gets a kubeconfig.
func testProxyLogin(t *testing.T, p *proxiedCluster) {
	jane := p.newMachine(t)
	jane.logIn(t, "jane")
	kubeconfigArgs := append([]string{
		"kubeconfig", "--tenant", ownNamespace, "--server", p.url, "--certificate-authority", writeTempFile(t, p.authority),
	}, jane.loginFlags...)
	if o := jane.runCroft(t, append(kubeconfigArgs, "--write")...).expectExit(t, 0); o.stdout != "" {
		t.Errorf("--write must not print to standard output: %s", o)
	}
	config, err := clientcmd.LoadFromFile(jane.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if context := config.Contexts[config.CurrentContext]; context == nil || context.Namespace != ownNamespace {
		t.Fatalf("the current context is %v", context)
	}
	if output := jane.runKubectl(t, "", "auth", "whoami").expectExit(t, 0).stdout; !slices.Contains(cutColumns(output, 2), "Username oidc:jane") {
		t.Errorf("unexpected output of kubectl auth whoami:\n%s", output)
	}
	jane.runKubectl(t, "", "create", "configmap", "by-login").expectExit(t, 0)
	jane.runKubectl(t, "", "delete", "configmap", "by-login").expectExit(t, 0)
	shown := jane.runKubectl(t, "", "get", "namespaces", "-o", "name").expectExit(t, 0).stdout
	if want := "namespace/" + strings.Join(ownNamespaces, "\nnamespace/") + "\n"; shown != want {
		t.Errorf("kubectl get namespaces shows jane\n%s", shown)
	}

	// This calls the credential plugin directly.
	var credential clientauthenticationv1.ExecCredential
	if err := json.Unmarshal([]byte(jane.runCroft(t, append([]string{"login", "get-token"}, jane.loginFlags...)...).expectExit(t, 0).stdout), &credential); err != nil {
		t.Fatal(err)
	}
	if s := credential.Status; s == nil || s.Token == "" || s.ExpirationTimestamp == nil || s.ExpirationTimestamp.Before(ptr.To(metav1.Now())) {
		t.Errorf("the credential has status %v", s)
	}

	testProxyRobot(t, jane)

	// croft login forget logs out.
	jane.runCroft(t, "login", "forget").expectExit(t, 0)
	if o := jane.runKubectl(t, "", "get", "pods"); o.status == 0 || !strings.Contains(o.stderr, "run croft login") {
		t.Errorf("after croft login forget: %s", o)
	}

	joe := p.newMachine(t)
	joe.logIn(t, "joe")
	o := joe.runCroft(t, kubeconfigArgs...).expectExit(t, 1)
	if !strings.Contains(o.stderr, "joe, whose token has the groups team.guests, may see no namespace of tenant "+ownNamespace) || strings.Count(o.stderr, "\n") != 1 {
		t.Errorf("unexpected output for joe: %s", o)
	}
	another := append(slices.Clone(kubeconfigArgs), "--client-id", "another")
	if o := joe.runCroft(t, another...).expectExit(t, 1); !strings.Contains(o.stderr, "not logged in at "+p.idp.issuer+" for client another") {
		t.Errorf("unexpected output for joe: %s", o)
	}
	joe.loginFlags = append(joe.loginFlags, "--client-id", "another")
	joe.logIn(t, "joe")
	if o := joe.runCroft(t, another...).expectExit(t, 1); !strings.Contains(o.stderr, "does not accept tokens of "+p.idp.issuer+" for client another") {
		t.Errorf("unexpected output for joe: %s", o)
	}
}

// testProxyRobot fails if a tenant's operator cannot create a kubeconfig for a service account.
func testProxyRobot(t *testing.T, jane *machine) {
	jane.runKubectl(t, "", "create", "serviceaccount", "deployer").expectExit(t, 0)
	want := "Username system:serviceaccount:" + ownNamespace + ":deployer"
	for _, kind := range []string{"--write", "--embed-token"} {
		o := jane.runCroft(t, "kubeconfig", "--tenant", ownNamespace, "--robot", "deployer", "--duration", "10m", kind).expectExit(t, 0)
		args := []string{"auth", "whoami"}
		if kind == "--embed-token" {
			if !strings.Contains(o.stderr, "the token expires at "+time.Now().Format("2006-")) {
				t.Errorf("the token's expiry is missing: %s", o.stderr)
			}
			args = append(args, "--kubeconfig", writeTempFile(t, o.stdout))
		}
		if output := jane.runKubectl(t, "", args...).expectExit(t, 0).stdout; !slices.Contains(cutColumns(output, 2), want) {
			t.Errorf("unexpected output of kubectl auth whoami with %s:\n%s", kind, output)
		}
		jane.runCroft(t, "kubeconfig", "--tenant", ownNamespace, "--robot", "nobody", "--context", "croft-"+ownNamespace).expectExit(t, 1)
		if kind == "--write" {
			jane.runCroft(t, "kubeconfig", "--tenant", ownNamespace, "--robot", "deployer").expectExit(t, 2) // the current context is the robot's own
			jane.runKubectl(t, "", "config", "use-context", "croft-"+ownNamespace).expectExit(t, 0)
		}
	}
}
