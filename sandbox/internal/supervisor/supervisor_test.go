package supervisor

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestComponentsStartAfterDependencies(t *testing.T) {
	dir := t.TempDir()
	open := make(chan struct{})
	a := newSpec(dir, "a", "server")
	a.Settle = func(ctx context.Context) error {
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s, _ := runSupervisor(t, a, newSpec(dir, "b", "server", "a"))

	got := awaitStatus(t, s, "a runs", func(by map[string]Status) bool { return by["a"].PID != 0 })
	if got["b"].State != Waiting || got["b"].PID != 0 {
		t.Errorf("b started before a was ready: %+v", got["b"])
	}
	close(open)
	got = awaitStatus(t, s, "both are ready", func(by map[string]Status) bool {
		return by["a"].State == Ready && by["b"].State == Ready
	})
	if got["b"].Took <= 0 || got["b"].ReadySince.IsZero() {
		t.Errorf("no time of readiness: %+v", got["b"])
	}
}

func TestDeadComponentIsReportedAndRestarted(t *testing.T) {
	s, _ := runSupervisor(t, newSpec(t.TempDir(), "a", "server"))
	isReady := func(by map[string]Status) bool { return by["a"].State == Ready }
	first := awaitStatus(t, s, "a is ready", isReady)["a"]
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	again := awaitStatus(t, s, "a is ready again", func(by map[string]Status) bool {
		return isReady(by) && by["a"].Restarts == 1
	})["a"]
	if again.PID == first.PID {
		t.Error("the process is the same")
	}
	if again.LastDeath == nil || again.LastDeath.Cause != "signal: killed" {
		t.Errorf("the death is not reported: %+v", again.LastDeath)
	}
}

func TestCrashLoopBacksOff(t *testing.T) {
	var starts []time.Time
	crasher := newSpec(t.TempDir(), "a", "crasher")
	command := crasher.Command
	crasher.Command = func() (*exec.Cmd, error) {
		starts = append(starts, time.Now())
		return command()
	}
	s, end := runSupervisor(t, crasher)
	got := awaitStatus(t, s, "a failed five times", func(by map[string]Status) bool { return by["a"].Failures >= 5 })["a"]
	end()
	if got.LastDeath.Cause != "exit status 7" || !slices.Contains(got.LastDeath.Tail, "line before the end") {
		t.Errorf("the death is not reported with cause and log: %+v", got.LastDeath)
	}
	// 10, 20, 40, 80 ms, each give or take a half.
	if total := starts[4].Sub(starts[0]); total < 75*time.Millisecond {
		t.Errorf("five starts within %v: there is no back-off", total)
	}
}

func TestPermanentFailureIsNotRetried(t *testing.T) {
	a := newSpec(t.TempDir(), "a", "server")
	var tries atomic.Int32
	a.Settle = func(context.Context) error {
		tries.Add(1)
		return MarkPermanent(errors.New("never"))
	}
	s, end := runSupervisor(t, a)
	got := awaitStatus(t, s, "a is hopeless", func(by map[string]Status) bool { return by["a"].Hopeless })["a"]
	end()
	if got.Message != "never" || got.State == Ready || tries.Load() != 1 {
		t.Errorf("got %+v after %d tries", got, tries.Load())
	}
}

func TestPrepareRunsOnce(t *testing.T) {
	dir := t.TempDir()
	marks := filepath.Join(dir, "marks")
	a := newSpec(dir, "a", "server")
	a.Prepare = func() *exec.Cmd { return exec.Command("/bin/sh", "-c", "echo mark >> "+marks) }
	s, _ := runSupervisor(t, a)
	isReady := func(by map[string]Status) bool { return by["a"].State == Ready }
	awaitStatus(t, s, "a is ready", isReady)
	for range 2 {
		if err := errors.Join(s.Stop("a"), s.Start("a")); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, s, "a is ready again", isReady)
	}
	if content, err := os.ReadFile(marks); string(content) != "mark\n" {
		t.Errorf("prepared as %q, %v; want once", content, err)
	}
}

func TestStopKeepsOtherComponents(t *testing.T) {
	dir := t.TempDir()
	s, _ := runSupervisor(t, newSpec(dir, "a", "server"), newSpec(dir, "b", "server", "a"))
	before := awaitStatus(t, s, "both are ready", func(by map[string]Status) bool { return by["b"].State == Ready })
	if err := s.Stop("a"); err != nil {
		t.Fatal(err)
	}
	awaitExit(t, before["a"].PID)
	after := awaitStatus(t, s, "a is stopped", func(by map[string]Status) bool { return by["a"].State == Stopped })
	if after["b"].PID != before["b"].PID || after["a"].Restarts != 0 {
		t.Errorf("before: %+v, after: %+v", before, after)
	}
	if err := s.Start("a"); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, s, "a is ready again", func(by map[string]Status) bool { return by["a"].State == Ready })
	if err := s.Stop("c"); err == nil || !strings.Contains(err.Error(), "a, b") {
		t.Errorf("stop of an unknown component: got %v, want an error that names the components", err)
	}
}

func TestEndStopsAllProcesses(t *testing.T) {
	dir := t.TempDir()
	stubborn := newSpec(dir, "stubborn", "stubborn", "parent")
	stubborn.Grace = 50 * time.Millisecond
	s, end := runSupervisor(t, newSpec(dir, "parent", "parent"), stubborn)
	got := awaitStatus(t, s, "both are ready", func(by map[string]Status) bool { return by["stubborn"].State == Ready })
	content, err := os.ReadFile(filepath.Join(dir, "parent.sock.child"))
	if err != nil {
		t.Fatal(err)
	}
	grandchild, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	end()
	awaitExit(t, got["parent"].PID, got["stubborn"].PID, grandchild)
	if err := s.Start("parent"); err == nil {
		t.Error("a component was started after the end")
	}
}

func TestKilledSupervisorStopsComponents(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), role+"=supervisor")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := newSpec(dir, "b", "server").Ready
	for deadline := time.Now().Add(time.Minute); ready(t.Context()) != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the components did not start")
		}
		time.Sleep(5 * time.Millisecond)
	}
	children := listChildren(t, cmd.Process.Pid)
	if len(children) != 2 {
		t.Fatalf("the supervisor has children %v, want two", children)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	awaitExit(t, children...)
}

func listChildren(t *testing.T, pid int) []int {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		t.Skipf("ps: %v", err)
	}
	var children []int
	for line := range strings.Lines(string(out)) {
		var fields [2]int
		for i, field := range strings.Fields(line) {
			if fields[i], err = strconv.Atoi(field); err != nil {
				t.Fatal(err)
			}
		}
		if fields[1] == pid {
			children = append(children, fields[0])
		}
	}
	return children
}

func TestValidateSpecs(t *testing.T) {
	good := newSpec(t.TempDir(), "a", "server")
	for name, specs := range map[string][]Spec{
		"nothing to run": {{Name: "a"}},
		"twice":          {good, good},
		"needs later":    {newSpec(t.TempDir(), "b", "server", "a"), good},
	} {
		if err := validateSpecs(specs); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	long := strings.Repeat(strings.Repeat("x", 99)+"\n", 1000)
	for _, tc := range []struct {
		content string
		want    []string
	}{
		{"", nil},
		{"a\n", []string{"a"}},
		{"a\nb\nc", []string{"b", "c"}},
		{long + "y\n", []string{strings.Repeat("x", 99), "y"}},
	} {
		if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadTail(path, 2); !slices.Equal(got, tc.want) || err != nil {
			t.Errorf("got %q, %v; want %q", got, err, tc.want)
		}
	}
}
