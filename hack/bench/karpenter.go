package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/hack/internal/metrics"
	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/prove/flood"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
)

const (
	// loopPrefix is the prefix of the tenants' names.
	loopPrefix = "loop"
	// loopPods is the number of measured pods for each number of pools.
	loopPods = 10
	// loopTimeout is the time limit for one pod.
	loopTimeout = 2 * time.Minute
	// karpenterComponent is the sandbox's name for Karpenter.
	karpenterComponent = "karpenter"
	// loopMetric is Karpenter's histogram of its scheduling. Karpenter 1.14 observes each loop of its provisioner
	// twice under this name: the whole loop, and the simulation within it.
	loopMetric = "karpenter_scheduler_scheduling_duration_seconds"
)

// loopSizes are the measured numbers of pools. The first one is the alternative.
var loopSizes = []int{1, 20, 100, 500}

// listLoopSizes returns the measured numbers of pools, up to a maximum, which is always one of them.
func listLoopSizes(most int) []int {
	var sizes []int
	for _, size := range loopSizes {
		if size < most {
			sizes = append(sizes, size)
		}
	}
	return append(sizes, most)
}

// loopResult has the durations for one number of pools, in seconds.
type loopResult struct {
	Pools int `json:"pools"`
	// Claims are the times from the creation of a pod to its NodeClaim.
	Claims []float64 `json:"claimSeconds"`
	// Loops are the sums of loopMetric for one loop of Karpenter.
	Loops []float64 `json:"loopSeconds"`
}

// loopBench is a cluster whose number of pools grows.
type loopBench struct {
	*bench
	cluster  *sandbox.Cluster
	admin    client.WithWatch
	operator *operator
	// metrics is the URL of Karpenter's /metrics.
	metrics string
}

// measureKarpenter measures Karpenter's scheduling with more and more pools in one cluster: pods that need a node each,
// one after the other. Karpenter tries pools in reverse order of their names, and the pods belong to the last one.
func measureKarpenter(ctx context.Context, b *bench) ([]comparison, error) {
	var results []loopResult
	err := withSandbox(ctx, sandbox.Options{Croft: b.croft}, func(c *sandbox.Cluster) error {
		l, err := b.newLoopBench(ctx, c)
		if err != nil {
			return err
		}
		sizes := listLoopSizes(b.pools)
		for i := range sizes {
			printProgress("karpenter: %s", wording.FormatCount(sizes[i], "pool"))
			r, err := l.observeSize(ctx, sizes[:i+1])
			if err != nil {
				return fmt.Errorf("%d pools: %w", sizes[i], err)
			}
			results = append(results, r)
		}
		return nil
	})
	return compareLoops(results), err
}

func (b *bench) newLoopBench(ctx context.Context, c *sandbox.Cluster) (*loopBench, error) {
	l := &loopBench{bench: b, cluster: c}
	var err error
	if l.admin, err = client.NewWithWatch(removeRateLimit(c.Config), client.Options{Scheme: scheme.New()}); err != nil {
		return nil, err
	}
	if l.operator, err = findOperator(ctx, c); err != nil {
		return nil, err
	}
	found, err := c.Component(karpenterComponent)
	if err != nil {
		return nil, err
	}
	address, err := readArgument(found.PID, "--metrics-address")
	l.metrics = "http://" + address + "/metrics"
	return l, err
}

// renderLoopFile declares pools for the last one of some sizes, and a tenant for each size, so that each has a quota of
// its own.
func renderLoopFile(sizes []int) string {
	text := tenants.Platform + tenants.RenderPools(sizes[len(sizes)-1]) + "tenants:\n"
	for _, size := range sizes {
		text += tenants.RenderTenant(tenants.Name(loopPrefix, size), tenants.PoolName(0))
	}
	return text
}

// observeSize grows the cluster to the last one of some sizes, and measures pods.
func (l *loopBench) observeSize(ctx context.Context, sizes []int) (loopResult, error) {
	r := loopResult{Pools: sizes[len(sizes)-1]}
	limit := limitTime(r.Pools)
	if err := withFiles(func(paths []string) error {
		return l.runCroft(ctx, "apply", "--kubeconfig", l.cluster.Kubeconfig, "--wait-timeout", limit.String(), "-f", paths[0])
	}, renderLoopFile(sizes)); err != nil {
		return r, err
	}
	if _, err := l.operator.waitIdleFor(ctx, limit); err != nil {
		return r, err
	}
	// The first pod fills caches, and is not counted. Karpenter has no histogram before it.
	if _, _, err := l.timePod(ctx, r.Pools); err != nil {
		return r, err
	}
	for range loopPods {
		before, err := l.readLoops(ctx)
		if err != nil {
			return r, err
		}
		claim, after, err := l.timePod(ctx, r.Pools)
		if err != nil {
			return r, err
		}
		r.Claims = append(r.Claims, claim)
		r.Loops = append(r.Loops, after-before)
	}
	return r, nil
}

// timePod creates a pod that needs a node of its own. It returns the time until the NodeClaim, and the sum of loopMetric
// then. Before it returns, it waits until the pod runs, because Karpenter's loops for this pod must not be counted with
// the next pod.
func (l *loopBench) timePod(ctx context.Context, pools int) (claim, loops float64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, loopTimeout, fmt.Errorf("%s have passed", loopTimeout))
	defer cancel()
	claims, err := l.watchClaims(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer claims.Stop()
	pod := newLoopPod(pools)
	claim, err = timeSeconds(func() error {
		if err := l.admin.Create(ctx, pod); err != nil {
			return err
		}
		return awaitEvent(ctx, claims, func(e watch.Event) bool { return e.Type == watch.Added })
	})
	if err != nil {
		return 0, 0, fmt.Errorf("wait for the NodeClaim of a pod: %w", err)
	}
	if loops, err = l.readLoops(ctx); err != nil {
		return 0, 0, err
	}
	return claim, loops, flood.AwaitRunning(ctx, l.admin, pod)
}

// watchClaims watches NodeClaims, beginning after the existing ones.
func (l *loopBench) watchClaims(ctx context.Context) (watch.Interface, error) {
	existing := &karpenterv1.NodeClaimList{}
	if err := l.admin.List(ctx, existing); err != nil {
		return nil, err
	}
	return l.admin.Watch(ctx, &karpenterv1.NodeClaimList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: existing.ResourceVersion}})
}

// newLoopPod returns a pod that fills more than half of the pool's largest node.
func newLoopPod(pools int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tenants.Name(loopPrefix, pools), GenerateName: "loop-"}, Spec: attack.NewPodSpec()}
	resources := &pod.Spec.Containers[0].Resources
	resources.Requests[corev1.ResourceCPU] = resource.MustParse("1500m")
	resources.Limits[corev1.ResourceCPU] = resource.MustParse("1500m")
	return pod
}

// awaitEvent waits for an event of a watch that a function accepts.
func awaitEvent(ctx context.Context, changes watch.Interface, accepts func(watch.Event) bool) error {
	for change := range changes.ResultChan() {
		if accepts(change) {
			return nil
		}
	}
	return errors.Join(errors.New("the watch ended before the expected event"), context.Cause(ctx))
}

// readLoops returns the sum of all observations of loopMetric by the provisioner. Another controller of Karpenter
// observes its own simulations.
func (l *loopBench) readLoops(ctx context.Context) (float64, error) {
	return metrics.SumSelected(ctx, http.DefaultClient, l.metrics, loopMetric, func(labels map[string]string) bool {
		return labels["controller"] == "provisioner"
	})
}

// compareLoops compares the medians of each number of pools with the first one's.
func compareLoops(results []loopResult) []comparison {
	var rows []comparison
	for _, r := range results {
		first := results[0]
		base := "compared with " + wording.FormatCount(first.Pools, "pool")
		rows = append(rows, comparison{
			Name: "pod to NodeClaim, " + wording.FormatCount(r.Pools, "pool"), Unit: inSeconds, Raw: r,
			Croft: samples.Median(r.Claims), Alternative: samples.Median(first.Claims),
			Note: fmt.Sprintf("%s; medians of %d pods, one after the other; maximum %s; Karpenter waits 500 ms for more pods, which is included",
				base, len(r.Claims), formatPercentile(100, r.Claims)),
		}, comparison{
			Name: "  scheduling loop, at most", Unit: inSeconds,
			Croft: samples.Median(r.Loops), Alternative: samples.Median(first.Loops),
			Note: fmt.Sprintf("%s; maximum %s; by %s, which counts the simulation twice, so at least half of it", base, formatPercentile(100, r.Loops), loopMetric),
		})
	}
	return rows
}
