package home

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const holdLock = "HOME_TEST_HOLD_LOCK"

// TestMain makes the test binary a second process that holds the lock.
func TestMain(m *testing.M) {
	if dir := os.Getenv(holdLock); dir != "" {
		if _, err := (Home{Dir: dir}).Lock(); err != nil {
			os.Exit(1)
		}
		select {}
	}
	os.Exit(m.Run())
}

func TestHomeRefusesOtherDirectories(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	precious := h.Path("precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.SaveConfig(Config{}); err == nil {
		t.Error("a directory with other files was taken for a sandbox")
	}
	if err := h.Delete(); !errors.Is(err, ErrNone) {
		t.Errorf("got %v, want ErrNone", err)
	}
	if err := os.WriteFile(h.Path(marker), []byte(`{"kind": "something else"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Delete(); !errors.Is(err, ErrNone) {
		t.Errorf("got %v, want ErrNone", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestSaveConfig(t *testing.T) {
	h := Home{Dir: filepath.Join(t.TempDir(), "new", "sandbox")}
	for _, croft := range []string{"/bin/a", "/bin/b"} {
		if err := h.SaveConfig(Config{Croft: croft}); err != nil {
			t.Fatal(err)
		}
		if got, err := h.ReadConfig(); got.Croft != croft || err != nil {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	err := filepath.WalkDir(h.Dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may read %s: %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := h.Delete(); err != nil {
		t.Error(err)
	}
}

func TestLockEndsWithProcess(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	if pid, err := h.FindSupervisor(); pid != 0 || err != nil {
		t.Errorf("without a lock: got %d, %v", pid, err)
	}
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holdLock+"="+h.Dir)
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	awaitSupervisor(t, h, holder.Process.Pid)
	if _, err := h.Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // it was killed
	awaitSupervisor(t, h, 0)
}

func awaitSupervisor(t *testing.T, h Home, want int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		pid, err := h.FindSupervisor()
		if err != nil {
			t.Fatal(err)
		}
		if pid == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("locked by %d, want %d", pid, want)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestClaimReusesFreePorts(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	first := claimPorts(t, h)
	if again := claimPorts(t, h); again.Port("a") != first.Port("a") {
		t.Errorf("the port changed from %d to %d", first.Port("a"), again.Port("a"))
	}
	if first.Port("a") == first.Port("b") {
		t.Error("two names have one port")
	}
	l, err := net.Listen("tcp", first.Address("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the end of the test
	if other := claimPorts(t, h); other.Port("a") == first.Port("a") {
		t.Error("a port was claimed on which another process listens")
	}
	first.Pin("a")
	if err := first.Claim("a"); err == nil {
		t.Error("a pinned port that is taken: no error")
	}
}

func claimPorts(t *testing.T, h Home) *Ports {
	t.Helper()
	p, err := h.ReadPorts()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Claim("a", "b"); err != nil {
		t.Fatal(err)
	}
	return p
}
