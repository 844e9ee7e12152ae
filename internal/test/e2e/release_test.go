package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"croft.dev/croft/internal/test/sandbox"
)

// TestRelease fails if a release cannot be built offline, if a second build differs, or if its
// archive, its chart or its plugin for kubectl does not work. It builds for one platform; the
// tests of hack/release cover all. It is of the third tier (make test-all): it needs `make helm
// krew image`.
func TestRelease(t *testing.T) {
	sandbox.Thorough(t) // it links croft twice
	t.Parallel()
	const version = "v9.8.7"
	dist := buildRelease(t, version)
	archive := "croft_" + version + "_linux_" + runtime.GOARCH + ".tar.gz"

	t.Run("checksums", func(t *testing.T) {
		runCommand(t, exec.CommandContext(t.Context(), "sh", "-c", `cd "$1" && sha256sum --check --strict checksums.txt`, "sh", dist), "").expectExit(t, 0)
	})
	t.Run("archive", func(t *testing.T) {
		to := t.TempDir()
		runCommand(t, exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(dist, archive), "-C", to), "").expectExit(t, 0)
		out := runCommand(t, exec.CommandContext(t.Context(), filepath.Join(to, "croft"), "version", "--client"), "").expectExit(t, 0)
		if !strings.HasPrefix(out.stdout, "croft "+version+" ") {
			t.Errorf("%s", out)
		}
		files := readFiles(t, to)
		for name, has := range map[string]string{
			"LICENSE": "Apache License", "man/croft-apply.1": "croft " + version, "completions/_croft": "#compdef croft",
			"completions/croft.bash": "__start_croft", "completions/croft.fish": "complete -c croft",
			"completions/croft.ps1": "Register-ArgumentCompleter", "kubectl_complete-croft": "kubectl croft __complete",
		} {
			if !strings.Contains(files[name], has) {
				t.Errorf("%s has no %q", name, has)
			}
		}
	})
	t.Run("chart", func(t *testing.T) {
		archive := filepath.Join(dist, "croft-9.8.7.tgz")
		rendered := runHelm(t, nil, "template", "croft", archive, "--set", "image.repository=registry.example.org/croft").expectExit(t, 0)
		if image := "registry.example.org/croft:" + version; !strings.Contains(rendered.stdout, image) {
			t.Errorf("nothing runs %s", image)
		}
		list := exec.CommandContext(t.Context(), "tar", "-tvzf", archive)
		list.Env = append(os.Environ(), "TZ=UTC")
		for line := range strings.Lines(runCommand(t, list, "").expectExit(t, 0).stdout) {
			if !strings.Contains(line, " 2023-11-14 22:13 ") {
				t.Errorf("a file of the chart has another time than the commit: %s", line)
			}
		}
	})
	t.Run("krew", func(t *testing.T) {
		krew, err := sandbox.FindTool("krew")
		if err != nil {
			t.Fatalf("%v: run `make krew`", err)
		}
		home := t.TempDir()
		install := exec.CommandContext(t.Context(), krew, "install", "--manifest", filepath.Join(dist, "krew", "croft.yaml"), "--archive", filepath.Join(dist, archive))
		install.Env = append(os.Environ(), "KREW_ROOT="+home, "KREW_NO_UPGRADE_CHECK=1")
		runCommand(t, install, "").expectExit(t, 0)
		out := runCommand(t, exec.CommandContext(t.Context(), filepath.Join(home, "bin", "kubectl-croft"), "version", "--client"), "").expectExit(t, 0)
		if !strings.HasPrefix(out.stdout, "croft "+version+" ") {
			t.Errorf("%s", out)
		}
	})
	t.Run("again", func(t *testing.T) {
		first, second := readFiles(t, dist), readFiles(t, buildRelease(t, version))
		for name := range first {
			if first[name] != second[name] {
				t.Errorf("%s is not the same when it is built again", name)
			}
		}
	})
}

// buildRelease builds a release for this platform, and returns its directory.
func buildRelease(t *testing.T, version string) string {
	t.Helper()
	dist := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "make", "release", "VERSION="+version, "DIST="+dist, "REPOSITORY=example/croft",
		"PLATFORMS=linux/"+runtime.GOARCH)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	runCommand(t, cmd, "").expectExit(t, 0)
	return dist
}

// readFiles returns the contents of all files in a directory, by relative path.
func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	all, from := map[string]string{}, os.DirFS(dir)
	err := fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, path)
		all[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
