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

// croftBinary returns the path of the croft binary, as sandbox.FindBinary does for croft-sandbox.
func croftBinary(t testing.TB) string {
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

// exits ends the test unless the command exited with the status.
func (o outcome) exits(t testing.TB, status int) outcome {
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

// croft runs croft as the administrator, with an empty standard input.
func (c *cluster) croft(t testing.TB, args ...string) outcome {
	t.Helper()
	return c.croftReading(t, "", args...)
}

// croftReading runs croft with the given standard input.
func (c *cluster) croftReading(t testing.TB, input string, args ...string) outcome {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), croftBinary(t), args...)
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+c.Kubeconfig), c.env...)
	return run(t, cmd, input)
}

// apply declares a file and waits until everything in it is Ready.
func (c *cluster) apply(t testing.TB, file string) outcome {
	t.Helper()
	return c.croft(t, "apply", "-f", file, "--wait-timeout", patience.String()).exits(t, 0)
}

// declare applies a file's content.
func (c *cluster) declare(t testing.TB, file string) outcome {
	t.Helper()
	return c.croftReading(t, file, "apply", "-f", "-", "--wait-timeout", patience.String()).exits(t, 0)
}

// kubectl runs the sandbox's kubectl as the administrator.
func (c *cluster) kubectl(t testing.TB, input string, args ...string) outcome {
	t.Helper()
	return run(t, c.sandbox(t, append([]string{"kubectl"}, args...)...), input)
}

// kubeconfigOf writes a kubeconfig for another user, and returns its path.
func (c *cluster) kubeconfigOf(t testing.TB, user string, groups ...string) string {
	t.Helper()
	args := []string{"kubeconfig", "--user", user}
	for _, group := range groups {
		args = append(args, "--group", group)
	}
	issued := run(t, c.sandbox(t, args...), "").exits(t, 0)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(issued.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sandbox returns a command of croft-sandbox for this sandbox.
func (c *cluster) sandbox(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := sandbox.FindBinary()
	if err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), binary, append([]string{"--dir", c.Dir}, args...)...)
}

// run runs a command in the repository's root. It ends the test only if the command cannot be
// started.
func run(t testing.TB, cmd *exec.Cmd, input string) outcome {
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

// write writes a temporary croft.yaml and returns its path.
func write(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "croft.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// read reads a file of the repository.
func read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
