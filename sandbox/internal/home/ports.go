package home

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"sync"
)

// Loopback is the only address that anything in a sandbox listens on.
const Loopback = "127.0.0.1"

// Ports are the ports of a sandbox's components. They are picked where the
// system has one free, and kept from one `up` to the next if nobody else took
// them meanwhile, so that a kubeconfig that was handed out stays good.
type Ports struct {
	path string

	mu     sync.Mutex
	byName map[string]int
	pinned map[string]bool
}

// Ports reads the ports that the sandbox had last.
func (h Home) Ports() (*Ports, error) {
	p := &Ports{path: h.Path("ports.json"), byName: map[string]int{}, pinned: map[string]bool{}}
	if err := readJSON(p.path, &p.byName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return p, nil
}

// Address returns the address of a name that was claimed before.
func (p *Ports) Address(name string) string {
	return net.JoinHostPort(Loopback, strconv.Itoa(p.Port(name)))
}

// Port returns the port of a name that was claimed before, or 0.
func (p *Ports) Port(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[name]
}

// Claim makes sure that each name has a port that nobody listens on. Another
// process may still be faster; the component then dies, and its next start
// claims again. The port of a pinned name is never changed.
func (p *Ports) Claim(names ...string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		old, pinned := p.byName[name], p.pinned[name]
		l, err := listen(old)
		if err != nil && pinned {
			return fmt.Errorf("port %d of %s is taken by another process: %w", old, name, err)
		}
		if err != nil {
			l, err = listen(0)
		}
		if err != nil {
			return fmt.Errorf("find a free port for %s: %w", name, err)
		}
		// Held until all are found, so that no two names get the same.
		defer l.Close() //nolint:errcheck // nothing was sent through it
		p.byName[name] = l.Addr().(*net.TCPAddr).Port
	}
	return writeJSON(p.path, p.byName)
}

// Pin keeps the names' ports as they are: others have been told of them.
func (p *Ports) Pin(names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		p.pinned[name] = true
	}
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(Loopback, strconv.Itoa(port)))
}
