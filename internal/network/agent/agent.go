package agent

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/network/boot"
)

const (
	// rounds limits how often a plan is made and executed in one pass. Two suffice, unless
	// another process on the node undoes the changes.
	rounds = 3
	// A failed pass is retried at these intervals. They do not apply to missing interfaces,
	// because the kernel reports new ones.
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
)

// Machine gives access to the node.
type Machine interface {
	// Links returns the interfaces of the node.
	Links() ([]Link, error)
	// Files returns the contents of files by path. It omits files that do not exist.
	Files(paths []string) (map[string]string, error)
	// Do makes one change.
	Do(Step) error
	// Watch calls changed once it watches, and after every change of an interface, until
	// ctx ends.
	Watch(ctx context.Context, changed func()) error
}

// Agent configures the networks of one node.
type Agent struct {
	// Node is the node's name.
	Node string
	// Reader reads the Node. Writer writes the Node's status.
	Reader  client.Reader
	Writer  client.StatusClient
	Machine Machine
	// Boot reads the node's journal. It is nil if the journal must not be read.
	Boot BootReader
	Log  *slog.Logger

	changed chan struct{}
	// bootTimes are the events in the journal, once it was read. bootKnown reports whether
	// they are written, or never will be.
	bootTimes boot.Times
	bootKnown bool
}

// Run configures the networks of a node until ctx ends. It watches only the node's own Node
// object. If journal is nil it reads no journal.
func Run(ctx context.Context, cfg *rest.Config, node string, m Machine, journal BootReader, log *slog.Logger) error {
	s := scheme.New()
	nodes, err := cache.New(cfg, cache.Options{Scheme: s, ByObject: map[client.Object]cache.ByObject{
		&corev1.Node{}: {Field: fields.OneTermEqualSelector("metadata.name", node)},
	}})
	if err != nil {
		return err
	}
	writer, err := client.New(cfg, client.Options{Scheme: s})
	if err != nil {
		return err
	}
	a := &Agent{Node: node, Reader: nodes, Writer: writer, Machine: m, Boot: journal, Log: log, changed: make(chan struct{}, 1)}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return nodes.Start(ctx) })
	all.Go(func() error { return m.Watch(ctx, a.notify) })
	all.Go(func() error {
		informer, err := nodes.GetInformer(ctx, &corev1.Node{})
		if err != nil {
			return fmt.Errorf("watch node %s: %w", node, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { a.notify() }, UpdateFunc: func(any, any) { a.notify() },
		}); err != nil {
			return err
		}
		return a.runLoop(ctx)
	})
	return all.Wait()
}

// notify triggers a pass. Changes in quick succession trigger one.
func (a *Agent) notify() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

func (a *Agent) runLoop(ctx context.Context) error {
	retry := time.NewTimer(0)
	pause := firstRetry
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.changed:
		case <-retry.C:
		}
		if a.RunPass(ctx) {
			retry.Stop()
			pause = firstRetry
			continue
		}
		retry.Reset(pause)
		pause = min(2*pause, lastRetry)
	}
}

// RunPass makes the changes that are possible now, and writes the condition if it differs. It
// reports whether no retry is needed.
func (a *Agent) RunPass(ctx context.Context) bool {
	node := &corev1.Node{}
	if err := a.Reader.Get(ctx, client.ObjectKey{Name: a.Node}, node); err != nil {
		if client.IgnoreNotFound(err) != nil {
			a.Log.Error("the Node cannot be read", "error", err.Error())
			return false
		}
		return true // its creation will be an event
	}
	before := readCondition(node)
	after := a.configureLinks(node, before.Status == corev1.ConditionTrue)
	if after != before {
		a.Log.Info("networks", "ready", string(after.Status), "reason", after.Reason, "message", after.Message)
		data, err := buildPatch(before, after, time.Now())
		if err == nil {
			err = a.Writer.Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, data))
		}
		if err != nil {
			a.Log.Error("the condition of the Node cannot be written", "error", err.Error())
			return false
		}
	}
	return a.reportBoot(ctx, node) && after.Reason != v1alpha1.ReasonLinkFailed
}

// configureLinks configures the node's attached interfaces.
func (a *Agent) configureLinks(node *corev1.Node, wasReady bool) Condition {
	annotation := node.Annotations[v1alpha1.NodeNetworksAnnotation]
	if annotation == "" {
		return newUnknownCondition()
	}
	networks, err := secondary.ReadNodeNetworks(annotation)
	if err != nil {
		return newFailedCondition(err)
	}
	var p Plan
	var errs []error
	for range rounds {
		s, err := a.readState(networks)
		if err != nil {
			return newFailedCondition(err)
		}
		s.WasReady = wasReady
		if p = Make(s); len(p.Steps) == 0 || len(errs) > 0 {
			break
		}
		for _, step := range p.Steps {
			a.Log.Info("step", "do", step.String())
			if err := a.Machine.Do(step); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", step, err))
			}
		}
	}
	return evaluateLinks(networks, p, errs)
}

func (a *Agent) readState(networks []secondary.NodeNetwork) (State, error) {
	links, err := a.Machine.Links()
	if err != nil {
		return State{}, fmt.Errorf("list interfaces: %w", err)
	}
	paths := make([]string, len(networks))
	for i, n := range networks {
		paths[i] = secondary.ZoneFilePath(n.Network)
	}
	files, err := a.Machine.Files(paths)
	return State{Networks: networks, Links: links, Files: files}, err
}
