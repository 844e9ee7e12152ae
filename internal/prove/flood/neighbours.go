// Package flood measures how much the load of one team slows the work of another down. The victim works alone,
// during a flood by its neighbour, and alone again.
package flood

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/rules/attack"
)

const (
	// prepareTimeout limits the time until a flood is in force. A flood that takes longer is measured
	// while it still grows.
	prepareTimeout = time.Minute
	// cleanUpTimeout limits the time until a flood's objects are deleted.
	cleanUpTimeout = 5 * time.Minute
	// afterFlood is the pause until the victim is measured alone again.
	afterFlood = 3 * time.Second
)

const (
	// Metadata is room for the metadata of a ConfigMap of the maximum size.
	Metadata = 4 << 10
	// LargestText is the length of the text in a ConfigMap of the default maximum size.
	LargestText = estate.MaxObjectBytes - Metadata
)

// Team is a tenant with a namespace, whose members have the role operator.
type Team struct {
	Namespace string
	// Group is the group of its members.
	Group string
	// Place changes a pod so that it runs on the team's nodes. It may be nil.
	Place func(*corev1.PodSpec)
}

// Options are the settings of a measurement.
type Options struct {
	Victim, Neighbour Team
	// Phase is the time for which the victim is measured alone, and during each flood.
	Phase time.Duration
	// MostBytes is the length of the text in the largest ConfigMap that a team can create.
	MostBytes int
	// MostWritten limits the bytes that a flood writes in changes of such ConfigMaps, because etcd keeps all
	// versions for five minutes. In a long phase, the flood ends early.
	MostWritten int64
	// StopAbove is the API server's p99 at which Measure stops.
	StopAbove time.Duration
	// Report prints progress.
	Report func(format string, args ...any)
}

// Neighbours are the two teams of a cluster.
type Neighbours struct {
	Options
	config *rest.Config
	admin  client.Client
	// written is the number of bytes that a flood has written in ConfigMaps of the maximum size.
	written  atomic.Int64
	victim   *victim
	flooders []*flooder
	// stop ends Measure early.
	stop func(reason error)
}

// New creates the victim's objects, and waits until its pods run. The configuration's user is an administrator
// who acts as members of the teams.
func New(ctx context.Context, config *rest.Config, o Options) (*Neighbours, error) {
	n := &Neighbours{Options: o, config: rest.CopyConfig(config), stop: func(error) {}}
	n.config.QPS, n.config.Host = -1, strings.TrimSuffix(config.Host, "/")
	var err error
	if n.admin, err = client.New(n.config, client.Options{Scheme: scheme.New()}); err != nil {
		return nil, err
	}
	n.victim, err = n.newVictim(ctx)
	return n, err
}

// newUser returns the clients of a member of a team. Each member has a connection of its own, because requests
// that share a connection delay each other.
func (n *Neighbours) newUser(name string, team Team) (client.WithWatch, *http.Client, error) {
	return n.newClients(name, team.Group, "system:authenticated")
}

func (n *Neighbours) newClients(user string, groups ...string) (client.WithWatch, *http.Client, error) {
	config := rest.CopyConfig(n.config)
	config.Dial = (&net.Dialer{Timeout: operationTimeout, KeepAlive: operationTimeout}).DialContext
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	raw, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: n.admin.Scheme(), Mapper: n.admin.RESTMapper(), HTTPClient: raw})
	return c, raw, err
}

// buildPod returns a pod that runs on its team's nodes.
func (n *Neighbours) buildPod(team Team, prefix string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: team.Namespace, GenerateName: prefix}, Spec: attack.NewPodSpec()}
	if team.Place != nil {
		team.Place(&pod.Spec)
	}
	return pod
}

// ObserveAlone measures the victim without a flood.
func (n *Neighbours) ObserveAlone(ctx context.Context) (Phase, error) {
	alone := n.victim.observe(ctx, n.Phase)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return alone, alone.check()
}

// Running is a flood that has started.
type Running struct {
	Flood
	Start time.Time
	// Requests are the flood's.
	Requests *RequestCount

	cluster *Neighbours
	stop    context.CancelFunc
	clients sync.WaitGroup
	inForce chan struct{}
}

// StartFlood starts a flood, which the caller must stop.
func (n *Neighbours) StartFlood(ctx context.Context, f Flood) (*Running, error) {
	for len(n.flooders) < f.clients {
		u, err := n.newFlooder(len(n.flooders))
		if err != nil {
			return nil, err
		}
		n.flooders = append(n.flooders, u)
	}
	ctx, stop := context.WithCancel(ctx)
	r := &Running{Flood: f, Start: time.Now(), Requests: &RequestCount{}, cluster: n, stop: stop, inForce: make(chan struct{})}
	var preparing sync.WaitGroup
	preparing.Add(f.clients)
	for _, u := range n.flooders[:f.clients] {
		r.clients.Go(func() { u.takePart(ctx, f, r.Requests, preparing.Done) })
	}
	go func() {
		preparing.Wait()
		close(r.inForce)
	}()
	return r, nil
}

// Observe measures the victim when the flood is in force.
func (r *Running) Observe(ctx context.Context) Phase {
	select {
	case <-r.inForce:
	case <-time.After(prepareTimeout):
		r.cluster.Report("%s still grows", r.Name)
	case <-ctx.Done():
	}
	return r.cluster.victim.observe(ctx, r.cluster.Phase)
}

// Stop ends the flood, and deletes its objects. It returns an error if there was no flood.
func (r *Running) Stop(ctx context.Context) error {
	r.stop()
	r.clients.Wait()
	if err := errors.Join(ctx.Err(), r.Requests.check()); err != nil {
		return err
	}
	return r.cluster.cleanUp(ctx)
}

// cleanUp deletes the flood's objects, and all events, and waits until they are deleted.
func (n *Neighbours) cleanUp(ctx context.Context) error {
	var left error
	err := wait.PollUntilContextTimeout(ctx, poll, cleanUpTimeout, true, func(ctx context.Context) (bool, error) {
		left = errors.Join(
			n.deleteAll(ctx, &autoscalingv2.HorizontalPodAutoscaler{}, &autoscalingv2.HorizontalPodAutoscalerList{}, floodLabels),
			n.deleteAll(ctx, &appsv1.Deployment{}, &appsv1.DeploymentList{}, floodLabels),
			n.deleteAll(ctx, &batchv1.Job{}, &batchv1.JobList{}, floodLabels),
			n.deleteAll(ctx, &corev1.Pod{}, &corev1.PodList{}, floodLabels),
			n.deleteAll(ctx, &corev1.ConfigMap{}, &corev1.ConfigMapList{}, floodLabels),
			n.deleteAll(ctx, &corev1.Service{}, &corev1.ServiceList{}, floodLabels),
			n.deleteAll(ctx, &rbacv1.RoleBinding{}, &rbacv1.RoleBindingList{}, floodLabels),
			n.deleteAll(ctx, &rbacv1.Role{}, &rbacv1.RoleList{}, floodLabels),
			n.deleteAll(ctx, &corev1.ServiceAccount{}, &corev1.ServiceAccountList{}, floodLabels),
			n.deleteAll(ctx, &coordinationv1.Lease{}, &coordinationv1.LeaseList{}, floodLabels),
			// Controllers write events about the flood's objects.
			n.deleteAll(ctx, &corev1.Event{}, &corev1.EventList{}, nil))
		return left == nil, nil
	})
	if err != nil {
		return fmt.Errorf("delete the flood's objects: %w", errors.Join(err, left))
	}
	pause(ctx, afterFlood)
	return ctx.Err()
}

// deleteAll deletes the neighbour's objects of a kind, and returns an error if some remain. A deletion of very many
// objects ends early with a timeout: call it again.
func (n *Neighbours) deleteAll(ctx context.Context, kind client.Object, remaining client.ObjectList, labels client.MatchingLabels) error {
	err := n.admin.DeleteAllOf(ctx, kind, client.InNamespace(n.Neighbour.Namespace), labels,
		client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil {
		err = n.admin.List(ctx, remaining, client.InNamespace(n.Neighbour.Namespace), labels, client.Limit(1))
	}
	if err == nil && meta.LenList(remaining) > 0 {
		err = fmt.Errorf("some of %T remain", kind)
	}
	return err
}

// pause waits for some time, or until ctx ends.
func pause(ctx context.Context, during time.Duration) {
	select {
	case <-time.After(during):
	case <-ctx.Done():
	}
}
