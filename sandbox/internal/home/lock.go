package home

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrLocked is returned when a supervisor already runs on the directory.
var ErrLocked = errors.New("a supervisor runs here already")

// Lock makes the calling process the only supervisor of the directory, for as
// long as it lives or until release. The lock is a POSIX one: the kernel lets go
// of it however the process ends, and tells others who holds it.
func (h Home) Lock() (release func(), err error) {
	f, err := os.OpenFile(h.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, wholeFile()); err != nil {
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
			err = ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// LockedBy returns the process that supervises the directory, or 0. The process
// that holds the lock must not ask: to it, its own lock does not show, and would
// be lost.
func (h Home) LockedBy() (pid int, err error) {
	f, err := os.OpenFile(h.lockFile(), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lock := wholeFile()
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, lock); err != nil {
		return 0, fmt.Errorf("ask who holds %s: %w", f.Name(), err)
	}
	if lock.Type == syscall.F_UNLCK {
		return 0, nil
	}
	return int(lock.Pid), nil
}

func (h Home) lockFile() string { return h.Path("lock") }

func wholeFile() *syscall.Flock_t {
	return &syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
}

// SaveSocket is called by the supervisor once it can be asked.
func (h Home) SaveSocket(path string) error {
	return writeJSON(h.Path("supervisor.json"), supervisorFile{Socket: path})
}

// Socket is where the running supervisor can be asked.
func (h Home) Socket() (string, error) {
	var s supervisorFile
	return s.Socket, readJSON(h.Path("supervisor.json"), &s)
}

// ForgetSocket removes an earlier supervisor's socket.
func (h Home) ForgetSocket() error {
	if err := os.Remove(h.Path("supervisor.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

type supervisorFile struct {
	Socket string `json:"socket"`
}
