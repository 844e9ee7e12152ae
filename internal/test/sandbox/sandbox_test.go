package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindBinaryFromEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "croft-sandbox")
	t.Setenv(EnvBinary, path)
	if _, err := FindBinary(); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("a missing binary: got %v, want an error that names the make target", err)
	}
	if err := os.WriteFile(path, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := FindBinary(); got != path || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, path)
	}
}

func TestFindRepositoryRoot(t *testing.T) {
	t.Setenv(EnvBinary, "")
	root, err := findRepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "internal", "test", "sandbox")); err != nil {
		t.Error(err)
	}
	t.Chdir(t.TempDir())
	if root, err := findRepositoryRoot(); err == nil {
		t.Errorf("outside the repository: got %s, want an error", root)
	}
}

func TestStart(t *testing.T) {
	EndToEnd(t)
	c := Start(t, Options{Components: APIOnly})
	if c.Config.QPS < 100 {
		t.Errorf("QPS is %v: tests would wait for the client", c.Config.QPS)
	}
	out, err := c.Kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.groups}")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "system:masters") {
		t.Errorf("the administrator's groups are %s", out)
	}
	jane, err := c.ConfigFor("jane", "devs")
	if err != nil {
		t.Fatal(err)
	}
	if jane.Host != c.Config.Host || len(jane.CertData) == 0 {
		t.Errorf("another identity: got host %q and %d bytes of certificate", jane.Host, len(jane.CertData))
	}
	if err := c.Down(); err != nil {
		t.Error(err)
	}
	if _, err := c.Kubectl("version", "--request-timeout=1s"); err == nil {
		t.Error("the API server answers although the sandbox is down")
	}
}
