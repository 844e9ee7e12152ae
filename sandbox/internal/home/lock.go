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

// Lock makes the calling process the only supervisor of the directory, until the process ends
// or calls release. It is a POSIX lock: the kernel releases it however the process ends, and
// reports the holder to other processes.
func (h Home) Lock() (release func(), err error) {
	f, err := os.OpenFile(h.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, newFileLock()); err != nil {
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
			err = ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// FindSupervisor returns the ID of the process that supervises the directory, or 0. The supervisor
// itself must not call it: the kernel does not report a process's own lock to it, and releases
// the lock when the process closes the file.
func (h Home) FindSupervisor() (pid int, err error) {
	f, err := os.OpenFile(h.lockFile(), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lock := newFileLock()
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, lock); err != nil {
		return 0, fmt.Errorf("find the process that locked %s: %w", f.Name(), err)
	}
	if lock.Type == syscall.F_UNLCK {
		return 0, nil
	}
	return int(lock.Pid), nil
}

func (h Home) lockFile() string { return h.Path("lock") }

func newFileLock() *syscall.Flock_t {
	return &syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
}

// SaveSocket records the socket on which the supervisor answers.
func (h Home) SaveSocket(path string) error {
	return writeJSON(h.Path("supervisor.json"), supervisorFile{Socket: path})
}

// ReadSocket returns the path of the socket on which the running supervisor answers.
func (h Home) ReadSocket() (string, error) {
	var s supervisorFile
	return s.Socket, readJSON(h.Path("supervisor.json"), &s)
}

// ForgetSocket deletes the record of an earlier supervisor's socket.
func (h Home) ForgetSocket() error {
	if err := os.Remove(h.Path("supervisor.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

type supervisorFile struct {
	Socket string `json:"socket"`
}
