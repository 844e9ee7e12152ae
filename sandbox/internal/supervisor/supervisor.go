package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// Supervisor runs the components of one list of specs.
type Supervisor struct {
	log      *slog.Logger
	launcher *launcher
	timing   Timing

	mu      sync.Mutex
	ending  bool // nothing may be started any more
	order   []string
	units   map[string]*unit
	changed chan struct{} // closed and replaced at every change of a status
}

// New checks the specs and returns a supervisor of them. It starts no component.
func New(log *slog.Logger, timing Timing, specs []Spec) (*Supervisor, error) {
	if err := validateSpecs(specs); err != nil {
		return nil, err
	}
	l, err := newLauncher()
	if err != nil {
		return nil, err
	}
	s := &Supervisor{
		log:      log,
		launcher: l,
		timing:   timing,
		units:    map[string]*unit{},
		changed:  make(chan struct{}),
	}
	for _, spec := range specs {
		s.order = append(s.order, spec.Name)
		s.units[spec.Name] = newUnit(s, spec)
	}
	return s, nil
}

// Run starts every component, waits for ctx to end, and stops them again. When
// it returns, no component runs.
func (s *Supervisor) Run(ctx context.Context) {
	for _, name := range s.order {
		_ = s.units[name].start() // fails only after ending is set
	}
	<-ctx.Done()
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	s.stopAll()
	s.launcher.close()
}

// Start starts a component that was stopped. It does not wait for readiness.
func (s *Supervisor) Start(name string) error {
	u, err := s.findUnit(name)
	if err != nil {
		return err
	}
	return u.start()
}

// Stop stops a component, and returns when its process has ended. Components that
// need it keep running, as they would if it had crashed.
func (s *Supervisor) Stop(name string) error {
	u, err := s.findUnit(name)
	if err != nil {
		return err
	}
	u.stop()
	return nil
}

// ListStatuses returns a snapshot in start order, and a channel that is closed when
// the snapshot is out of date.
func (s *Supervisor) ListStatuses() ([]Status, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Status, 0, len(s.order))
	for _, name := range s.order {
		out = append(out, s.units[name].getStatus())
	}
	return out, s.changed
}

func (s *Supervisor) findUnit(name string) (*unit, error) {
	if u, ok := s.units[name]; ok {
		return u, nil
	}
	return nil, fmt.Errorf("no component %q in this sandbox; it has %s", name, strings.Join(s.order, ", "))
}

// stopAll stops every component after the components that need it, so that none of them loses
// a server that it still uses.
func (s *Supervisor) stopAll() {
	stopped := map[string]chan struct{}{}
	for _, name := range s.order {
		stopped[name] = make(chan struct{})
	}
	for _, name := range s.order {
		go func() {
			defer close(stopped[name])
			for _, other := range s.order {
				for _, need := range s.units[other].spec.Needs {
					if need == name {
						<-stopped[other]
					}
				}
			}
			s.units[name].stop()
		}()
	}
	for _, name := range s.order {
		<-stopped[name]
	}
}

func (s *Supervisor) isEnding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending
}

// updateStatus changes a unit's status, and closes the channel of the last snapshot.
func (s *Supervisor) updateStatus(u *unit, change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&u.status)
	close(s.changed)
	s.changed = make(chan struct{})
}

// awaitReady returns when all named components are ready. It returns ctx's error if ctx ends first.
func (s *Supervisor) awaitReady(ctx context.Context, names []string) error {
	for {
		s.mu.Lock()
		ready, changed := true, s.changed
		for _, name := range names {
			ready = ready && s.units[name].status.State == Ready
		}
		s.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
