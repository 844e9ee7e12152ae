package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Timing sets the pauses of a supervisor.
type Timing struct {
	// Probe is the pause between two readiness checks of a component that is not
	// ready, Recheck the pause once it is ready.
	Probe, Recheck time.Duration
	// FirstRestart is the pause before a component is restarted; it doubles
	// with every death in a row, up to LastRestart.
	FirstRestart, LastRestart time.Duration
}

// DefaultTiming suits processes that take seconds to start.
var DefaultTiming = Timing{
	Probe:        25 * time.Millisecond,
	Recheck:      3 * time.Second,
	FirstRestart: 250 * time.Millisecond,
	LastRestart:  15 * time.Second,
}

const (
	probeTimeout = 5 * time.Second
	defaultGrace = 10 * time.Second
	tailLines    = 15
)

// unit is one component: its spec, its status, and the goroutine that keeps it running
// until it is stopped.
type unit struct {
	sup    *Supervisor
	spec   Spec
	status Status // guarded by sup.mu

	mu     sync.Mutex // guards the fields below; held for the whole of start and stop
	cancel context.CancelFunc
	done   chan struct{}

	// Only the goroutine that runs the unit accesses these.
	prepared, settled bool
}

func newUnit(s *Supervisor, spec Spec) *unit {
	if spec.Grace == 0 {
		spec.Grace = defaultGrace
	}
	return &unit{sup: s, spec: spec, status: Status{Name: spec.Name, State: Stopped}}
}

func (u *unit) getStatus() Status {
	st := u.status
	if u.spec.Address != nil {
		st.Address = u.spec.Address()
	}
	return st
}

func (u *unit) start() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cancel != nil {
		return nil
	}
	if u.sup.isEnding() {
		return errors.New("the sandbox is going down")
	}
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel, u.done = cancel, make(chan struct{})
	u.sup.updateStatus(u, func(s *Status) { *s = Status{Name: s.Name, State: Waiting, Restarts: s.Restarts} })
	go u.keepRunning(ctx, u.done)
	return nil
}

func (u *unit) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cancel == nil {
		return
	}
	u.sup.updateStatus(u, func(s *Status) { s.State = Stopping })
	u.cancel()
	<-u.done
	u.cancel, u.done = nil, nil
	u.sup.updateStatus(u, func(s *Status) { *s = Status{Name: s.Name, State: Stopped, Restarts: s.Restarts} })
	u.sup.log.Info("stopped", "component", u.spec.Name)
}

func (u *unit) keepRunning(ctx context.Context, done chan struct{}) {
	defer close(done)
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = u.sup.timing.FirstRestart, u.sup.timing.LastRestart
	pause.Multiplier = 2

	for {
		if u.sup.awaitReady(ctx, u.spec.Needs) != nil {
			return
		}
		wasReady, err := u.runOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if wasReady {
			pause.Reset()
		}
		delay := pause.NextBackOff()
		u.recordDeath(err, wasReady, delay)
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
		u.sup.updateStatus(u, func(s *Status) { s.State, s.Restarts = Waiting, s.Restarts+1 })
	}
}

// runOnce runs the process until it ends, or until ctx ends; then it terminates the process.
// It reports whether the process was ready at any time.
func (u *unit) runOnce(ctx context.Context) (wasReady bool, err error) {
	if err := u.runPrepare(ctx); err != nil {
		return false, err
	}
	cmd, err := u.spec.Command()
	if err != nil {
		return false, err
	}
	started := time.Now()
	exited, err := u.launchCommand(cmd)
	if err != nil {
		return false, err
	}
	u.sup.updateStatus(u, func(s *Status) {
		s.State, s.PID, s.Message = Starting, cmd.Process.Pid, ""
	})
	watching, stopWatching := context.WithCancel(ctx)
	readiness := make(chan bool, 1)
	go func() { readiness <- u.watchReadiness(watching, started) }()

	select {
	case err = <-exited:
		// Its own child processes end with it.
		signalGroup(cmd, syscall.SIGKILL)
		if err == nil {
			err = errors.New("exit status 0")
		}
	case <-ctx.Done():
		terminateProcess(cmd, exited, u.spec.Grace)
	}
	stopWatching()
	return <-readiness, err
}

func (u *unit) runPrepare(ctx context.Context) error {
	if u.prepared || u.spec.Prepare == nil {
		return nil
	}
	cmd := u.spec.Prepare()
	exited, err := u.launchCommand(cmd)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	u.sup.updateStatus(u, func(s *Status) { s.State, s.PID, s.Message = Starting, cmd.Process.Pid, "preparing" })
	select {
	case err := <-exited:
		if err != nil {
			return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
		}
	case <-ctx.Done():
		terminateProcess(cmd, exited, u.spec.Grace)
		return ctx.Err()
	}
	u.prepared = true
	return nil
}

// launchCommand starts a command that writes to the component's log. The channel receives the
// command's result when it exits.
func (u *unit) launchCommand(cmd *exec.Cmd) (exited chan error, err error) {
	out, err := os.OpenFile(u.spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := u.sup.launcher.start(cmd); err != nil {
		return nil, err
	}
	exited = make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	return exited, nil
}

// watchReadiness checks readiness until ctx ends, and records the results in the status.
func (u *unit) watchReadiness(ctx context.Context, started time.Time) (wasReady bool) {
	for {
		err := u.checkReady(ctx)
		if ctx.Err() != nil {
			return wasReady
		}
		pause := u.sup.timing.Probe
		switch {
		case err == nil:
			pause = u.sup.timing.Recheck
			u.recordReady(started, wasReady)
			wasReady = true
		case wasReady:
			u.sup.updateStatus(u, func(s *Status) { s.State, s.Message = Unready, err.Error() })
		case errors.As(err, new(*backoff.PermanentError)):
			u.sup.updateStatus(u, func(s *Status) { s.Message, s.Hopeless = err.Error(), true })
			u.sup.log.Error("cannot become ready", "component", u.spec.Name, "error", err)
			<-ctx.Done()
		default:
			u.sup.updateStatus(u, func(s *Status) { s.Message = err.Error() })
		}
		select {
		case <-ctx.Done():
			return wasReady
		case <-time.After(pause):
		}
	}
}

func (u *unit) checkReady(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := u.spec.Ready(asking); err != nil {
		return err
	}
	if !u.settled && u.spec.Settle != nil {
		if err := u.spec.Settle(ctx); err != nil {
			return err
		}
	}
	u.settled = true
	return nil
}

func (u *unit) recordReady(started time.Time, again bool) {
	u.sup.mu.Lock()
	already := u.status.State == Ready
	u.sup.mu.Unlock()
	if already {
		return
	}
	now := time.Now()
	u.sup.updateStatus(u, func(s *Status) {
		s.State, s.ReadySince, s.Message, s.Failures, s.Hopeless = Ready, now, "", 0, false
		if !again {
			s.Took = now.Sub(started)
		}
	})
	u.sup.log.Info("ready", "component", u.spec.Name, "took", now.Sub(started).Round(time.Millisecond))
}

func (u *unit) recordDeath(err error, wasReady bool, delay time.Duration) {
	lines, tailErr := ReadTail(u.spec.Log, tailLines)
	if tailErr != nil {
		lines = []string{tailErr.Error()}
	}
	u.sup.updateStatus(u, func(s *Status) {
		s.State, s.PID, s.ReadySince, s.Took = Backoff, 0, time.Time{}, 0
		s.Message = err.Error()
		s.LastDeath = &Death{At: time.Now(), Cause: err.Error(), Tail: lines}
		if !wasReady {
			s.Failures++
		}
	})
	u.sup.log.Error("died", "component", u.spec.Name, "error", err, "restartIn", delay.Round(time.Millisecond),
		"tail", strings.Join(lines, "\n"))
}

// terminateProcess asks the process to end, and kills it after the grace period.
func terminateProcess(cmd *exec.Cmd, exited <-chan error, grace time.Duration) {
	signalGroup(cmd, syscall.SIGTERM)
	signalGroup(cmd, syscall.SIGCONT) // in case it is frozen
	select {
	case <-exited:
		signalGroup(cmd, syscall.SIGKILL) // child processes that it left behind
	case <-time.After(grace):
		signalGroup(cmd, syscall.SIGKILL)
		<-exited
	}
}

// signalGroup sends a signal to the process and its child processes: each component
// leads a process group of its own.
func signalGroup(cmd *exec.Cmd, sig syscall.Signal) {
	// ESRCH, the only error possible here, means that they have ended already.
	_ = syscall.Kill(-cmd.Process.Pid, sig)
}
