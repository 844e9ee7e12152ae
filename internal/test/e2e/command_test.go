package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"croft.dev/croft/internal/test/sandbox"
)

// envCroft is the environment variable with a croft binary to use instead of the repository's.
const envCroft = "CROFT_BIN"

// findCroftBinary returns the path of the croft binary, as sandbox.FindBinary does for
// croft-sandbox.
func findCroftBinary(t testing.TB) string {
	t.Helper()
	path := os.Getenv(envCroft)
	if path == "" {
		path = filepath.Join(root, "bin", "croft")
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("no croft binary: %v: run `make build`, or set %s to the path of one", err, envCroft)
	}
	return path
}

// outcome is the result of a command.
type outcome struct {
	command, stdout, stderr string
	status                  int
}

// expectExit ends the test unless the command exited with the status.
func (o outcome) expectExit(t testing.TB, status int) outcome {
	t.Helper()
	if o.status != status {
		t.Fatalf("exit status %d, want %d: %s", o.status, status, o)
	}
	return o
}

// String returns the command and its output.
func (o outcome) String() string {
	return "$ " + o.command + "\n--- stdout\n" + o.stdout + "--- stderr\n" + o.stderr
}

// runCroft runs croft as the administrator, with an empty standard input.
func (c *cluster) runCroft(t testing.TB, args ...string) outcome {
	t.Helper()
	return c.runCroftWithInput(t, "", args...)
}

// runCroftWithInput runs croft with the given standard input.
func (c *cluster) runCroftWithInput(t testing.TB, input string, args ...string) outcome {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), findCroftBinary(t), args...)
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+c.Kubeconfig), c.env...)
	return runCommand(t, cmd, input)
}

// applyFile declares a file and waits until everything in it is Ready.
func (c *cluster) applyFile(t testing.TB, file string) outcome {
	t.Helper()
	return c.runCroft(t, "apply", "-f", file, "--wait-timeout", patience.String()).expectExit(t, 0)
}

// applyContent applies a file's content.
func (c *cluster) applyContent(t testing.TB, file string) outcome {
	t.Helper()
	return c.runCroftWithInput(t, file, "apply", "-f", "-", "--wait-timeout", patience.String()).expectExit(t, 0)
}

// runKubectl runs the sandbox's kubectl as the administrator.
func (c *cluster) runKubectl(t testing.TB, input string, args ...string) outcome {
	t.Helper()
	return runCommand(t, c.newSandboxCommand(t, append([]string{"kubectl"}, args...)...), input)
}

// writeUserKubeconfig writes a kubeconfig for another user, and returns its path.
func (c *cluster) writeUserKubeconfig(t testing.TB, user string, groups ...string) string {
	t.Helper()
	args := []string{"kubeconfig", "--user", user}
	for _, group := range groups {
		args = append(args, "--group", group)
	}
	issued := runCommand(t, c.newSandboxCommand(t, args...), "").expectExit(t, 0)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(issued.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// newSandboxCommand returns a command of croft-sandbox for this sandbox.
func (c *cluster) newSandboxCommand(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := sandbox.FindBinary()
	if err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), binary, append([]string{"--dir", c.Dir}, args...)...)
}

// runCommand runs a command in the repository's root. It ends the test only if the command cannot
// be started.
func runCommand(t testing.TB, cmd *exec.Cmd, input string) outcome {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = root, strings.NewReader(input), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", cmd, err)
	}
	return outcome{
		command: filepath.Base(cmd.Path) + " " + strings.Join(cmd.Args[1:], " "),
		stdout:  stdout.String(), stderr: stderr.String(), status: cmd.ProcessState.ExitCode(),
	}
}

// writeTempFile writes a temporary croft.yaml and returns its path.
func writeTempFile(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "croft.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readRepositoryFile reads a file of the repository.
func readRepositoryFile(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
