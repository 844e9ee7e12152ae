package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is also the supervised processes: this variable selects its role.
const role = "SUPERVISOR_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "server":
		serveSocket(os.Args[1])
	case "parent":
		runParent(os.Args[1])
	case "crasher":
		fmt.Println("line before the end")
		os.Exit(7)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		serveSocket(os.Args[1])
	case "supervisor":
		runTestSupervisor(os.Args[1])
	}
}

// serveSocket accepts connections on a Unix socket until a signal ends the process.
func serveSocket(socket string) {
	_ = os.Remove(socket)
	l, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		_ = c.Close()
	}
}

// runParent starts a child that ignores SIGTERM, and serves once the child runs.
func runParent(socket string) {
	child := exec.Command("/bin/sh", "-c", "trap '' TERM; echo $$ > "+socket+".child; while :; do sleep 100; done")
	if err := child.Start(); err != nil {
		os.Exit(1)
	}
	for {
		if _, err := os.Stat(socket + ".child"); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	serveSocket(socket)
}

// runTestSupervisor supervises two servers until it is killed.
func runTestSupervisor(dir string) {
	s, err := New(slog.Default(), fast, []Spec{newSpec(dir, "a", "server"), newSpec(dir, "b", "server", "a")})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s.Run(context.Background())
}

var fast = Timing{
	Probe:        5 * time.Millisecond,
	Recheck:      20 * time.Millisecond,
	FirstRestart: 10 * time.Millisecond,
	LastRestart:  80 * time.Millisecond,
}

// newSpec returns a component that runs the test binary in a role.
func newSpec(dir, name, as string, needs ...string) Spec {
	socket := filepath.Join(dir, name+".sock")
	return Spec{
		Name:  name,
		Needs: needs,
		Log:   filepath.Join(dir, name+".log"),
		Grace: 5 * time.Second,
		Command: func() (*exec.Cmd, error) {
			cmd := exec.Command(os.Args[0], socket)
			cmd.Env = append(os.Environ(), role+"="+as)
			return cmd, nil
		},
		Ready: func(ctx context.Context) error {
			var d net.Dialer
			c, err := d.DialContext(ctx, "unix", socket)
			if err != nil {
				return err
			}
			return c.Close()
		},
	}
}

// runSupervisor runs a supervisor for the length of the test.
func runSupervisor(t *testing.T, specs ...Spec) (s *Supervisor, end func()) {
	t.Helper()
	s, err := New(slog.New(slog.NewTextHandler(t.Output(), nil)), fast, specs)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	end = func() {
		cancel()
		<-done
	}
	t.Cleanup(end)
	return s, end
}

// awaitStatus waits for a condition on the statuses.
func awaitStatus(t *testing.T, s *Supervisor, what string, condition func(map[string]Status) bool) map[string]Status {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		all, changed := s.ListStatuses()
		byName := map[string]Status{}
		for _, status := range all {
			byName[status.Name] = status
		}
		if condition(byName) {
			return byName
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("waited too long until %s: %+v", what, all)
		}
	}
}

// isAlive reports whether a process runs; a zombie does not.
func isAlive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

func awaitExit(t *testing.T, pids ...int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, pid := range pids {
		for isAlive(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d is still there", pid)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}
