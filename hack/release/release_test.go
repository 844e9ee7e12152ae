package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// writeInputs returns the input files of a release.
func writeInputs(t *testing.T) (common string, binaries []string) {
	t.Helper()
	dir := t.TempDir()
	for name, mode := range map[string]fs.FileMode{
		"common/LICENSE": 0o600, "common/man/croft.1": 0o640, "common/kubectl_complete-croft": 0o700, "linux": 0o600, "windows": 0o600, "darwin": 0o755,
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte("content of "+name), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "common"), []string{
		"linux/amd64=" + filepath.Join(dir, "linux"), "darwin/arm64=" + filepath.Join(dir, "darwin"), "windows/amd64=" + filepath.Join(dir, "windows"),
	}
}

// buildRelease builds the release v1.2.3, and returns the directory's files by name.
func buildRelease(t *testing.T, common string, binaries []string) map[string]string {
	t.Helper()
	to := t.TempDir()
	if err := os.WriteFile(filepath.Join(to, "croft-1.2.3.tgz"), []byte("chart"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(to, release{Version: "v1.2.3", Repository: "example/croft"}, common, binaries); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(to, path)
		all[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestArchives expects each platform's archive to contain its binary and all common files,
// readable for all, and to be identical at another time and place.
func TestArchives(t *testing.T) {
	common, binaries := writeInputs(t)
	all := buildRelease(t, common, binaries)
	for name, want := range map[string]map[string]string{
		"croft_v1.2.3_linux_amd64.tar.gz":  {"croft": "-rwxr-xr-x content of linux"},
		"croft_v1.2.3_darwin_arm64.tar.gz": {"croft": "-rwxr-xr-x content of darwin"},
		"croft_v1.2.3_windows_amd64.zip":   {"croft.exe": "-rwxr-xr-x content of windows"},
	} {
		want["LICENSE"] = "-rw-r--r-- content of common/LICENSE"
		want["man/croft.1"] = "-rw-r--r-- content of common/man/croft.1"
		want["kubectl_complete-croft"] = "-rwxr-xr-x content of common/kubectl_complete-croft"
		if got := unpackArchive(t, name, all[name]); !maps.Equal(got, want) {
			t.Errorf("%s has %v", name, got)
		}
	}
	common, binaries = writeInputs(t)
	for name, content := range buildRelease(t, common, binaries) {
		if all[name] != content {
			t.Errorf("%s is not the same when it is made again", name)
		}
	}
}

// unpackArchive returns the mode and content of each file of an archive. It fails unless all are
// regular files.
func unpackArchive(t *testing.T, name, content string) map[string]string {
	t.Helper()
	all := map[string]string{}
	add := func(name string, info fs.FileInfo, from io.Reader) {
		content, err := io.ReadAll(from)
		if err != nil || !info.Mode().IsRegular() {
			t.Fatalf("%s: %s, %v", name, info.Mode(), err)
		}
		all[name] = info.Mode().String() + " " + string(content)
	}
	if strings.HasSuffix(name, ".zip") {
		r, err := zip.NewReader(strings.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.File {
			opened, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(f.Name, f.FileInfo(), opened)
		}
		return all
	}
	uncompressed, err := gzip.NewReader(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(uncompressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		add(header.Name, header.FileInfo(), r)
	}
}

// TestChecksums expects one line for each other file in the directory, as sha256sum writes it.
func TestChecksums(t *testing.T) {
	common, binaries := writeInputs(t)
	all := buildRelease(t, common, binaries)
	lines := strings.Split(strings.TrimSuffix(all[checksums], "\n"), "\n")
	if len(lines) != 4 {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	const chart = "cc57fc1903e444cf6a726490b43b27ee9f87facc037f86872201847c565b45fb  croft-1.2.3.tgz"
	if lines[0] != chart {
		t.Errorf("%q", lines[0])
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		if _, there := all[name]; !there || len(sum) != 64 {
			t.Errorf("%q", line)
		}
	}
}

// TestManifestsNameArchives expects the krew manifest and the formula to name each of their
// archives, with its digest.
func TestManifestsNameArchives(t *testing.T) {
	common, binaries := writeInputs(t)
	all := buildRelease(t, common, binaries)
	sums := map[string]string{}
	for line := range strings.Lines(all[checksums]) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums["https://github.com/example/croft/releases/download/v1.2.3/"+name] = sum
	}
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct {
				URI, SHA256, Bin string
				Selector         struct{ MatchLabels map[string]string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(all["krew/croft.yaml"]), &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest.Spec.Platforms) != len(binaries) || manifest.Spec.Version != "v1.2.3" {
		t.Errorf("the manifest has %+v", manifest)
	}
	for _, p := range manifest.Spec.Platforms {
		if sums[p.URI] != p.SHA256 || p.Bin == "" || p.Selector.MatchLabels["os"] == "" || p.Selector.MatchLabels["arch"] == "" {
			t.Errorf("%+v", p)
		}
	}
	formula := all["homebrew/croft.rb"]
	for uri, sum := range sums {
		if isFor := strings.HasSuffix(uri, ".tar.gz"); isFor != strings.Contains(formula, uri+"\"\n      sha256 \""+sum+"\"") {
			t.Errorf("the formula should have %s: %t\n%s", uri, isFor, formula)
		}
	}
}

// TestRunRefusesBadInput expects a message that names the correct input.
func TestRunRefusesBadInput(t *testing.T) {
	common, binaries := writeInputs(t)
	for name, test := range map[string]struct {
		release  release
		binaries []string
		want     string
	}{
		"no v":             {release{Version: "1.2.3", Repository: "example/croft"}, binaries, "vMAJOR.MINOR.PATCH"},
		"no version":       {release{Repository: "example/croft"}, binaries, "vMAJOR.MINOR.PATCH"},
		"no owner":         {release{Version: "v1.2.3", Repository: "croft"}, binaries, "OWNER/NAME"},
		"no binary":        {release{Version: "v1.2.3", Repository: "example/croft"}, nil, "OS/ARCHITECTURE=BINARY"},
		"no platform":      {release{Version: "v1.2.3", Repository: "example/croft"}, []string{"bin/croft"}, "OS/ARCHITECTURE=BINARY"},
		"a missing binary": {release{Version: "v1.2.3", Repository: "example/croft"}, []string{"linux/amd64=nowhere"}, "nowhere"},
	} {
		if err := run(t.TempDir(), test.release, common, test.binaries); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestScript expects hack/release.sh to require a version before it builds anything.
func TestScript(t *testing.T) {
	for _, version := range []string{"", "1.2.3", "v1"} {
		script := exec.CommandContext(t.Context(), "../release.sh")
		script.Env = append(os.Environ(), "VERSION="+version, "REPOSITORY=example/croft", "PLATFORMS=linux/amd64", "DIST="+t.TempDir())
		output, err := script.CombinedOutput()
		if script.ProcessState.ExitCode() != 2 || !strings.Contains(string(output), "write VERSION=vMAJOR.MINOR.PATCH, or SNAPSHOT=1") {
			t.Errorf("%q: %v: %s", version, err, output)
		}
	}
}
