package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

// comparison is a cluster with lines that are measured alternately.
type comparison struct {
	cluster *sandbox.Cluster
	config  *rest.Config
	admin   client.Client
	// lines are the line without policy, croft's native one, and Gatekeeper's if there is one.
	lines []*line
	options
}

// startComparison starts a cluster with lines that have no tenants yet. The caller must stop it.
func startComparison(ctx context.Context, o options, has sandbox.Options, names ...string) (*comparison, error) {
	has.Components = sandbox.WithControllers
	cluster, err := sandbox.Up(ctx, has)
	if err != nil {
		return nil, err
	}
	c := &comparison{cluster: cluster, config: rest.CopyConfig(cluster.Config), options: o}
	c.config.QPS = -1
	if c.admin, err = client.New(c.config, client.Options{Scheme: scheme.New()}); err != nil {
		return nil, errors.Join(err, cluster.Down())
	}
	for _, name := range names {
		l, err := newLine(name, c.admin)
		if err != nil {
			return nil, errors.Join(err, cluster.Down())
		}
		c.lines = append(c.lines, l)
	}
	return c, nil
}

// compareEngines measures a Gatekeeper line together with the others, at all sizes, and then kills the
// placement engine.
func compareEngines(ctx context.Context, name string, o options) (found comparisonResult, err error) {
	c, err := startComparison(ctx, o, sandbox.Options{
		With: []string{sandbox.Gatekeeper},
		// The audit would evaluate all constraints repeatedly on the same machine during the
		// measurement. In clusters it runs in separate pods.
		Unaudited: true,
	}, noPolicy, native, name)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, c.cluster.Down()) }()
	platforms := []string{tenants.Platform}
	if name == onGatekeeper {
		platforms = append(platforms, gatekeeperPlatform)
	}
	if err := c.prepare(ctx, platforms...); err != nil {
		return found, err
	}
	if err := c.narrowWebhooks(ctx, patiently); err != nil {
		return found, err
	}
	found.Name = name
	for _, size := range o.sizes {
		s, err := c.measureSize(ctx, size)
		if err != nil {
			return found, fmt.Errorf("%d tenants: %w", size, err)
		}
		found.Sizes = append(found.Sizes, s)
		if size != o.getKillSize() {
			continue
		}
		kills, err := c.killAll(ctx, sandbox.Gatekeeper)
		if err != nil {
			return found, err
		}
		found.Kills = append(found.Kills, kills...)
		if err := c.narrowWebhooks(ctx, patiently); err != nil {
			return found, err
		}
	}
	if !o.apiServer {
		return found, nil
	}
	kills, err := c.killAll(ctx, apiServer)
	found.Kills = append(found.Kills, kills...)
	return found, err
}

// prepare writes the cluster-wide objects: the policies, Gatekeeper's templates and constraints
// if croft's objects are measured on Gatekeeper, and the first namespace without policy. No
// operator runs.
func (c *comparison) prepare(ctx context.Context, platforms ...string) error {
	for _, platform := range platforms {
		built, err := tenants.Build(platform)
		if err != nil {
			return err
		}
		objects := wall.PlatformObjects(&built.Platform)
		excludeGatekeeper(objects)
		if err := c.applyAll(ctx, objects); err != nil {
			return err
		}
		standing, err := tenants.ToUnstructured(objects)
		if err != nil {
			return err
		}
		constraints := slices.DeleteFunc(standing, func(o *unstructured.Unstructured) bool {
			return o.GroupVersionKind().Group != admissionpolicy.ConstraintsGroup
		})
		if err := c.awaitIngested(ctx, constraints); err != nil {
			return err
		}
	}
	return c.growLines(ctx, 1, c.lines[0])
}

// applyAll writes objects. It retries until the kinds of constraints exist, which Gatekeeper
// creates a moment after their templates.
func (c *comparison) applyAll(ctx context.Context, objects []client.Object) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, last = apply.New(c.admin).Apply(ctx, objects...)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("write the objects of the comparison: %w: %w", err, last)
	}
	return nil
}

// measureSize grows both lines of tenants, and measures.
func (c *comparison) measureSize(ctx context.Context, size int) (sizeResult, error) {
	s := sizeResult{Tenants: size}
	if err := c.growAll(ctx, size, &s.Memory); err != nil {
		return s, err
	}
	printProgress("%s, %d tenants: %d rounds, one pod at a time", c.lines[2].name, size, c.rounds)
	var err error
	if s.Lines, err = runInTurns(ctx, c.rounds, c.lines); err != nil {
		return s, err
	}
	printProgress("%s, %d tenants: %d pods by %d clients", c.lines[2].name, size, c.pods, c.clients)
	if err := c.measureThroughput(ctx, &s); err != nil {
		return s, err
	}
	return s, c.readResident(&s.Memory)
}

// createPod creates a pod in one of the line's namespaces, in a dry run or stored, and returns the
// duration in milliseconds.
func (l *line) createPod(ctx context.Context, i int, dry bool, labels ...map[string]string) (float64, error) {
	// The stride is a prime, so that the namespaces are spread evenly and all are used in the
	// end.
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespaces[i*7919%len(l.namespaces)], GenerateName: "p-"},
		Spec:       attack.NewPodSpec(),
	}
	for _, more := range labels {
		pod.Labels = more
	}
	var opts []client.CreateOption
	if dry {
		opts = append(opts, client.DryRunAll)
	}
	start := time.Now()
	err := l.admin.Create(ctx, pod, opts...)
	took := time.Since(start)
	if err == nil {
		if wrong := l.checkPod(pod); wrong != nil {
			err = &unplacedError{wrong}
		}
	}
	return float64(took.Microseconds()) / 1000, err
}

// unplacedError reports a pod that was admitted with the wrong placement.
type unplacedError struct{ error }

// runInParallel calls do for each index, with several concurrent workers.
func runInParallel(ctx context.Context, from, to, workers int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := from; i < to; i++ {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(ctx, i)
		})
	}
	return group.Wait()
}
