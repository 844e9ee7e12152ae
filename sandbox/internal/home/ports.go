package home

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"sync"
)

// Loopback is the only address on which a sandbox's components listen.
const Loopback = "127.0.0.1"

// Ports are the ports of a sandbox's components. The system chooses free ports. They stay the
// same from one `up` to the next unless another process took them meanwhile, so that issued
// kubeconfigs stay valid.
type Ports struct {
	path string

	mu     sync.Mutex
	byName map[string]int
	pinned map[string]bool
}

// ReadPorts reads the ports of the sandbox's previous run.
func (h Home) ReadPorts() (*Ports, error) {
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

// Claim ensures that each name has a free port. Another process may still take it before the
// component listens. The component then ends, and its next start claims a port again. Claim
// never changes the port of a pinned name.
func (p *Ports) Claim(names ...string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		old, pinned := p.byName[name], p.pinned[name]
		l, err := listenOn(old)
		if err != nil && pinned {
			return fmt.Errorf("port %d of %s is taken by another process: %w", old, name, err)
		}
		if err != nil {
			l, err = listenOn(0)
		}
		if err != nil {
			return fmt.Errorf("find a free port for %s: %w", name, err)
		}
		// All listeners stay open until the end, so that no two names get the same port.
		defer l.Close() //nolint:errcheck // nothing was sent through it
		p.byName[name] = l.Addr().(*net.TCPAddr).Port
	}
	return writeJSON(p.path, p.byName)
}

// Pin fixes the names' ports, because other processes use them.
func (p *Ports) Pin(names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		p.pinned[name] = true
	}
}

func listenOn(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(Loopback, strconv.Itoa(port)))
}
