package e2e

import (
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"croft.dev/croft/internal/test/sandbox"
)

// envScreenshots is the environment variable with the directory for screenshots of the dashboard.
const envScreenshots = "CROFT_SCREENSHOTS"

// visit is a page that bin/browser opens, the keys that it presses there, and the page on which that
// must end.
type visit struct {
	Name  string `json:"name"`
	Path  string `json:"path,omitempty"`
	Steps []step `json:"steps,omitempty"`
	// Zone is the browser's time zone; UTC by default.
	Zone string `json:"zone,omitempty"`
	// Notify is a URL that bin/browser requests after the steps. Then the page has to show Awaits without a reload.
	Notify     string `json:"notify,omitempty"`
	Awaits     string `json:"awaits,omitempty"`
	Leaves     bool   `json:"leaves,omitempty"`
	Screenshot bool   `json:"screenshot,omitempty"`
	// status is the status of the last page; 200 by default.
	status int
	// shows are parts of the text of the last page.
	shows []string
}

// step moves the focus to a control with the Tab key. Then it types a text, or presses Enter.
type step struct {
	Label string  `json:"label"`
	Text  *string `json:"text,omitempty"`
}

// browsePages logs in to the dashboard as an account, and makes the visits. It reports pages that
// differ from the expected ones, that contain a hidden name, or that have problems in the browser.
func (d *dashboardCluster) browsePages(t *testing.T, account string, hidden []string, visits []visit) {
	t.Helper()
	plan, err := json.Marshal(visits)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"check", "--account", account, "--issuer", strings.TrimPrefix(d.idp.issuer, "https://"), "--certificate-authority", d.certificates,
		"--axe", findAxe(t), "--timeout", patience.String(),
	}
	if dir := os.Getenv(envScreenshots); dir != "" {
		args = append(args, "--screenshots", dir)
	}
	o := runCommand(t, exec.CommandContext(t.Context(), findBrowser(t), append(args, d.url+"/login")...), string(plan)).expectExit(t, 0)
	var results []struct {
		Name, Path, Text, HTML string
		Status                 int
		Problems               []string
	}
	if err := json.Unmarshal([]byte(o.stdout), &results); err != nil {
		t.Fatalf("%v: %s", err, o)
	}
	visits = append([]visit{{Name: "login", shows: []string{"Bearer token of the cluster"}}}, visits...)
	if len(results) != len(visits) {
		t.Fatalf("%d pages, want %d", len(results), len(visits))
	}
	for i, got := range results {
		want := visits[i]
		if want.Leaves {
			continue
		}
		if status := cmp.Or(want.status, http.StatusOK); got.Status != status {
			t.Errorf("%s: %s has status %d, want %d:\n%s", got.Name, got.Path, got.Status, status, got.Text)
		}
		for _, part := range want.shows {
			if !strings.Contains(got.Text, part) {
				t.Errorf("%s: %s does not show %q:\n%s", got.Name, got.Path, part, got.Text)
			}
		}
		for _, name := range hidden {
			if strings.Contains(got.HTML, name) {
				t.Errorf("%s: %s shows %s the name %s:\n%s", got.Name, got.Path, account, name, got.Text)
			}
		}
		for _, problem := range got.Problems {
			t.Errorf("%s: %s: %s", got.Name, got.Path, problem)
		}
	}
}

// findAxe returns the path of axe-core's script. Its licence is MPL-2.0; only tests use it.
func findAxe(t *testing.T) string {
	t.Helper()
	packages, err := sandbox.FindTool("openid-provider")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(packages, "node_modules", "axe-core", "axe.min.js")
}
