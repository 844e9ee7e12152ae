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
	"croft.dev/croft/internal/boot"
	"croft.dev/croft/internal/scheme"
	"croft.dev/croft/internal/secondary"
)

const (
	// rounds is how often a node is looked at again after something was done. Nothing needs
	// more than two, unless somebody else works against it.
	rounds = 3
	// What failed is tried again, at these intervals. Interfaces are not waited for so: the
	// kernel tells of them.
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
)

// Machine is the node's own side.
type Machine interface {
	// Links are the interfaces of the node.
	Links() ([]Link, error)
	// Files are the contents of files, by path; those that do not exist are left out.
	Files(paths []string) (map[string]string, error)
	// Do makes one change.
	Do(Step) error
	// Watch calls changed once it watches, and then after every change of an interface,
	// until ctx ends.
	Watch(ctx context.Context, changed func()) error
}

// Agent keeps the networks of one node.
type Agent struct {
	// Node is the node's name.
	Node string
	// Reader reads its Node, Writer writes the Node's status.
	Reader  client.Reader
	Writer  client.StatusClient
	Machine Machine
	// Boot reads the node's journal, if it may be read.
	Boot BootReader
	Log  *slog.Logger

	changed chan struct{}
	// bootTimes are what the journal shows, once it was read, and bootKnown says that they
	// are written, or never will be.
	bootTimes boot.Times
	bootKnown bool
}

// Run keeps the networks of a node until ctx ends. It watches that Node alone. It reads
// no journal if there is no reader.
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
		return a.loop(ctx)
	})
	return all.Wait()
}

// notify makes the agent look again. Changes that come together are one.
func (a *Agent) notify() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

func (a *Agent) loop(ctx context.Context) error {
	retry := time.NewTimer(0)
	pause := firstRetry
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.changed:
		case <-retry.C:
		}
		if a.Pass(ctx) {
			retry.Stop()
			pause = firstRetry
			continue
		}
		retry.Reset(pause)
		pause = min(2*pause, lastRetry)
	}
}

// Pass looks at the node once, does what can be done, and writes the condition if it is
// another one. It reports whether there is nothing to try again.
func (a *Agent) Pass(ctx context.Context) bool {
	node := &corev1.Node{}
	if err := a.Reader.Get(ctx, client.ObjectKey{Name: a.Node}, node); err != nil {
		if client.IgnoreNotFound(err) != nil {
			a.Log.Error("the Node cannot be read", "error", err.Error())
			return false
		}
		return true // its creation will be an event
	}
	before := of(node)
	after := a.settle(node, before.Holds == corev1.ConditionTrue)
	if after != before {
		a.Log.Info("networks", "ready", string(after.Holds), "reason", after.Reason, "message", after.Message)
		data, err := patch(before, after, time.Now())
		if err == nil {
			err = a.Writer.Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, data))
		}
		if err != nil {
			a.Log.Error("the condition of the Node cannot be written", "error", err.Error())
			return false
		}
	}
	return a.tellBoot(ctx, node) && after.Reason != v1alpha1.ReasonLinkFailed
}

// settle sets up the node's interfaces as far as they are there.
func (a *Agent) settle(node *corev1.Node, wasReady bool) Verdict {
	annotation := node.Annotations[v1alpha1.NodeNetworksAnnotation]
	if annotation == "" {
		return unknown()
	}
	networks, err := secondary.ReadNodeNetworks(annotation)
	if err != nil {
		return failed(err)
	}
	var p Plan
	var errs []error
	for range rounds {
		s, err := a.look(networks)
		if err != nil {
			return failed(err)
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
	return judge(networks, p, errs)
}

func (a *Agent) look(networks []secondary.NodeNetwork) (State, error) {
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
