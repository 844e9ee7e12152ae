package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"croft.dev/croft/internal/test/sandbox"
)

// walkthrough is a document whose commands are run verbatim, or a part of a document that
// starts with an empty cluster.
type walkthrough struct {
	name, file string
	// heads are the headings whose blocks are run, in the document's order.
	heads []string
	// yaml is the heading of the section with the document's croft.yaml.
	yaml    string
	options sandbox.Options
	// thorough marks walkthroughs that only `make test-all` runs.
	thorough bool
}

var walkthroughs = []walkthrough{
	{"README", "README.md", []string{"Try it", "On a cluster of yours"}, "The file", sandbox.Options{}, false},
	// internal/cli tests the output of render, which is most of it.
	{"without the operator", "README.md", []string{"Without the operator"}, "The file", sandbox.Options{Components: sandbox.WithControllers}, true},
	{"EKS", "docs/tutorials/eks.md", []string{"0.", "1.", "2.", "3.", "4.", "5.", "6.", "7.", "8."}, "2. The file",
		sandbox.Options{With: []string{sandbox.AWS}, AWSSpeed: awsSpeed, AWSCluster: "my-cluster"}, true},
}

// elsewhere lists the commands that a test cannot run, by prefix, with the reason.
var elsewhere = []struct{ prefix, why string }{
	{"make demo", "it builds, and starts a sandbox of its own"},
	{"make down", "it ends the sandbox of make demo"},
	{"make build", "what is tested was built before"},
	{"aws ", "AWS's own tools, for a real account"},
	{"bin/croft-sandbox aws interrupt i-0123…", "the instance is made up"},
	{"kubectl logs -n kube-system deployment/karpenter", "the sandbox's Karpenter is a process and no Deployment"},
}

// fails lists the commands that must exit with another status than 0, with the reason.
var fails = []struct {
	prefix string
	status int
	why    string
}{
	{"bin/croft diff ", 1, "there is a difference, as in the document"},
}

// TestDocs runs the commands of README.md and docs/tutorials/eks.md verbatim and in their order, each
// document in one shell. It fails if a command does not work, or if a block of commands belongs
// to no walkthrough.
func TestDocs(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, file := range []string{"README.md", "docs/tutorials/eks.md"} {
		for _, b := range readBlocks(t, file, "sh") {
			if !isIn(file, b.head) {
				t.Errorf("%s, %q: no walkthrough runs %q", file, b.head, b.lines[0])
			}
		}
	}
	for _, w := range walkthroughs {
		t.Run(w.name, func(t *testing.T) {
			if w.thorough {
				sandbox.Thorough(t)
			}
			sandbox.EndToEnd(t)
			t.Parallel()
			w.runWalkthrough(t)
		})
	}
}

func isIn(file, head string) bool {
	for _, w := range walkthroughs {
		if w.file == file && w.hasHeading(head) {
			return true
		}
	}
	return false
}

func (w *walkthrough) hasHeading(head string) bool {
	for _, h := range w.heads {
		if strings.HasPrefix(head, h) {
			return true
		}
	}
	return false
}

// runWalkthrough runs the commands of a walkthrough in a directory that looks like the repository
// after `make build`.
func (w *walkthrough) runWalkthrough(t *testing.T) {
	var commands []string
	for _, b := range readBlocks(t, w.file, "sh") {
		if w.hasHeading(b.head) {
			commands = append(commands, b.lines...)
		}
	}
	c := startSandbox(t, w.options)
	dir := t.TempDir()
	put := func(name, content string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range readBlocks(t, w.file, "yaml") {
		if b.head == w.yaml {
			put("croft.yaml", strings.Join(b.lines, "\n")+"\n", 0o600)
		}
	}
	box, err := sandbox.FindBinary()
	if err != nil {
		t.Fatal(err)
	}
	put("bin/croft", fmt.Sprintf("#!/bin/sh\nexec %q \"$@\"\n", findCroftBinary(t)), 0o700)
	put("bin/croft-sandbox", fmt.Sprintf("#!/bin/sh\nexec %q \"$@\"\n", box), 0o700)
	put("path/kubectl", fmt.Sprintf("#!/bin/sh\nexec %q kubectl \"$@\"\n", box), 0o700)
	put("path/less", "#!/bin/sh\nexec cat\n", 0o700)
	put("walkthrough.sh", buildScript(t, commands), 0o600)

	out, finished := c.runShell(t, dir)
	for line := range strings.Lines(out.stdout) {
		if strings.HasPrefix(line, leftOut) {
			t.Log(strings.TrimSpace(line))
		}
	}
	if done := countFinished(out.stdout); done != finished || out.status != 0 {
		log, _ := os.ReadFile(filepath.Join(dir, "operator.log"))
		t.Errorf("%s: the shell ended with %d after %d of %d commands\n--- stdout\n%s\n--- stderr\n%s\n--- operator.log\n%s",
			w.file, out.status, done, finished, cutTail(out.stdout), cutTail(out.stderr), cutTail(string(log)))
	}
}

// runShell runs the walkthrough in one shell, and also returns the number of its commands. The
// shell's child processes end with it.
func (c *cluster) runShell(t testing.TB, dir string) (outcome, int) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "walkthrough.sh"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "walkthrough.sh")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "CROFT_SANDBOX_DIR="+c.Dir, "PATH="+filepath.Join(dir, "path")+":"+os.Getenv("PATH"))
	// The shell has its own process group, so that the operator that it leaves in the
	// background ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = moments
	stdout, stderr := filepath.Join(dir, "stdout"), filepath.Join(dir, "stderr")
	outcome := outcome{command: "bash walkthrough.sh"}
	outcome.status = runInto(t, cmd, stdout, stderr)
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil && err != syscall.ESRCH {
		t.Error(err)
	}
	for file, into := range map[string]*string{stdout: &outcome.stdout, stderr: &outcome.stderr} {
		printed, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		*into = string(printed)
	}
	return outcome, strings.Count(string(content), "\nfinished ")
}

// runInto runs a command with its output in files: a pipe would stay open as long as the
// command's background processes run.
func runInto(t testing.TB, cmd *exec.Cmd, stdout, stderr string) int {
	t.Helper()
	for path, into := range map[string]func(*os.File){
		stdout: func(f *os.File) { cmd.Stdout = f }, stderr: func(f *os.File) { cmd.Stderr = f },
	} {
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		into(file)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(2 * patience):
		_ = cmd.Cancel()
		<-ended
		t.Errorf("the commands took longer than %s", 2*patience)
	}
	return cmd.ProcessState.ExitCode()
}

func cutTail(text string) string { return text[max(0, len(text)-3000):] }

// TestDocsScript fails if a walkthrough continues after a failing command, or skips a command
// without a reason.
func TestDocsScript(t *testing.T) {
	for _, test := range []struct {
		command string
		status  int
	}{{"true", 0}, {"false", 1}, {"make demo    # builds", 0}} {
		cmd := exec.Command("bash", "-c", buildScript(t, []string{test.command, "echo it\\'s over"}))
		out, _ := cmd.Output()
		if got := cmd.ProcessState.ExitCode(); got != test.status || strings.Contains(string(out), "it's over") != (test.status == 0) {
			t.Errorf("%s: exit status %s, want %s:\n%s", test.command, strconv.Itoa(got), strconv.Itoa(test.status), out)
		}
	}
}
