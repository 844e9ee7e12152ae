package flood

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// poll is the time between two tries, and admissionTimeout limits the time until a new namespace admits pods.
	poll, admissionTimeout = 200 * time.Millisecond, 3 * time.Minute
	// nodeTimeout limits the time until the first pod runs, on a node that may have to start first.
	nodeTimeout = 5 * time.Minute
	// operationTimeout is the time limit for an operation. An operation that fails counts as one that took
	// this long.
	operationTimeout = 30 * time.Second
	// requestInterval and rollOutInterval are the times between two operations.
	requestInterval, rollOutInterval = 100 * time.Millisecond, 500 * time.Millisecond
	// victimPods is the number of pods that the victim lists.
	victimPods = 10
	// settings is the name of the victim's Secret.
	settings = "settings"
)

// Operation is a part of the victim's work.
type Operation struct {
	Name  string
	every time.Duration
	// Target is the largest factor by which a flood may slow it down.
	Target float64
	// do returns the duration in seconds, which does not include cleaning up.
	do func(*victim, context.Context) (float64, error)
}

// Operations are all operations of the victim.
var Operations = []Operation{
	{"create a pod", requestInterval, 1.5, (*victim).createPod},
	{"list pods", requestInterval, 1.5, (*victim).listPods},
	{"get a Secret", requestInterval, 1.5, (*victim).getSecret},
	{"pending to Running", rollOutInterval, 2, (*victim).rollOut},
}

// victim is a member of a team who does the usual work of a team.
type victim struct {
	client  client.WithWatch
	cluster *Neighbours
}

// newVictim creates the victim's objects, and waits until its pods run.
func (n *Neighbours) newVictim(ctx context.Context) (*victim, error) {
	c, _, err := n.newUser("person of "+n.Victim.Namespace, n.Victim)
	if err != nil {
		return nil, err
	}
	v := &victim{c, n}
	// The service account of a new namespace, and the rules, take a moment.
	var last error
	if err := wait.PollUntilContextTimeout(ctx, poll, admissionTimeout, true, func(ctx context.Context) (bool, error) {
		last = v.client.Create(ctx, v.buildGatedPod(), client.DryRunAll)
		return last == nil, nil
	}); err != nil {
		return nil, fmt.Errorf("create a pod in %s: %w", n.Victim.Namespace, errors.Join(err, last))
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: n.Victim.Namespace, Name: settings}, StringData: map[string]string{"key": "value"}}
	if err := v.client.Create(ctx, secret); err != nil {
		return nil, err
	}
	for range victimPods {
		if err := v.create(ctx, v.buildGatedPod()); err != nil {
			return nil, err
		}
	}
	// The first pod waits for a node, which remains.
	limited, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	if _, err := v.rollOut(limited); err != nil {
		return nil, fmt.Errorf("no pod of %s runs: %w", n.Victim.Namespace, err)
	}
	return v, nil
}

// buildGatedPod returns a pod that the scheduler ignores, so that its creation is the only load.
func (v *victim) buildGatedPod() *corev1.Pod {
	pod := v.cluster.buildPod(v.cluster.Victim, "gated-")
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "croft.dev/verify"}}
	return pod
}

// create creates a pod. It repeats a request that conflicts, as Kubernetes' controllers do: the API server counts each
// pod in the ResourceQuota, and refuses a pod if others change the count at the same moment.
func (v *victim) create(ctx context.Context, pod *corev1.Pod) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return v.client.Create(ctx, pod) })
}

func (v *victim) createPod(ctx context.Context) (float64, error) {
	pod := v.buildGatedPod()
	took, err := timeSeconds(func() error { return v.create(ctx, pod) })
	v.deletePod(ctx, pod)
	return took, err
}

func (v *victim) listPods(ctx context.Context) (float64, error) {
	return timeSeconds(func() error {
		return v.client.List(ctx, &corev1.PodList{}, client.InNamespace(v.cluster.Victim.Namespace))
	})
}

func (v *victim) getSecret(ctx context.Context) (float64, error) {
	return timeSeconds(func() error {
		return v.client.Get(ctx, client.ObjectKey{Namespace: v.cluster.Victim.Namespace, Name: settings}, &corev1.Secret{})
	})
}

// rollOut creates a pod, and waits until it is Running.
func (v *victim) rollOut(ctx context.Context) (float64, error) {
	pod := v.cluster.buildPod(v.cluster.Victim, "roll-out-")
	took, err := timeSeconds(func() error {
		if err := v.create(ctx, pod); err != nil {
			return err
		}
		return AwaitRunning(ctx, v.client, pod)
	})
	v.deletePod(ctx, pod)
	return took, err
}

// AwaitRunning waits until a pod that was just created is Running.
func AwaitRunning(ctx context.Context, c client.WithWatch, pod *corev1.Pod) error {
	changes, err := c.Watch(ctx, &corev1.PodList{}, &client.ListOptions{
		Namespace: pod.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name),
		Raw: &metav1.ListOptions{ResourceVersion: pod.ResourceVersion},
	})
	if err != nil {
		return err
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		if o, ok := change.Object.(*corev1.Pod); ok && o.Status.Phase == corev1.PodRunning {
			return nil
		}
	}
	return fmt.Errorf("wait until a pod is Running: %w", errors.Join(errors.New("the watch ended"), ctx.Err()))
}

// deletePod deletes a pod, if it was created. A pod that remains only makes the list longer.
func (v *victim) deletePod(ctx context.Context, pod *corev1.Pod) {
	if pod.Name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), operationTimeout)
	defer cancel()
	_ = v.client.Delete(ctx, pod, client.GracePeriodSeconds(0))
}

// observe does all operations at the same time, each again and again.
func (v *victim) observe(ctx context.Context, during time.Duration) Phase {
	found := Phase{}
	var all sync.WaitGroup
	for _, o := range Operations {
		collected := &Observation{}
		found[o.Name] = collected
		all.Go(func() {
			collected.collect(ctx, o.every, during, func(ctx context.Context) (float64, error) {
				took, err := o.do(v, ctx)
				if err != nil && !errors.Is(err, context.Canceled) {
					v.cluster.stop(fmt.Errorf("the victim failed: %s: %w", o.Name, err))
				}
				return took, err
			})
		})
	}
	all.Wait()
	return found
}

// Phase has the observations of some time, by the operations' names.
type Phase map[string]*Observation

// check returns an error if an operation never succeeded.
func (p Phase) check() error {
	for name, o := range p {
		if len(o.Seconds) == o.Failures {
			return fmt.Errorf("%s: none of %d succeeded: %s", name, o.Failures, o.Failure)
		}
	}
	return nil
}

// Observation has the durations of one operation.
type Observation struct {
	Seconds  []float64 `json:"seconds"`
	Failures int       `json:"failures"`
	// Failure is the first failure.
	Failure string `json:"failure,omitempty"`

	mu sync.Mutex
}

// collect repeats an operation at a constant rate. It does not wait for the end of one operation before it
// begins the next, because slow answers would then be measured less often than fast ones.
func (s *Observation) collect(ctx context.Context, every, during time.Duration, do func(context.Context) (float64, error)) {
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for end := time.Now().Add(during); time.Now().Before(end); {
		running.Go(func() {
			limited, cancel := context.WithTimeout(ctx, operationTimeout)
			defer cancel()
			s.add(do(limited))
		})
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Observation) add(took float64, err error) {
	if errors.Is(err, context.Canceled) {
		return // the measurement has ended
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		took = operationTimeout.Seconds()
		if s.Failures++; s.Failure == "" {
			s.Failure = err.Error()
		}
	}
	s.Seconds = append(s.Seconds, took)
}

// describeFailures returns a note about failures, if there are any. when begins the note.
func (s *Observation) describeFailures(when string) []string {
	if s.Failures == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s %d of %d FAILED: %s", when, s.Failures, len(s.Seconds), s.Failure)}
}

// timeSeconds returns the duration of a function.
func timeSeconds(do func() error) (float64, error) {
	start := time.Now()
	err := do()
	return time.Since(start).Seconds(), err
}
