package verify_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
)

// envRestarts is the environment variable with the number of times that TestWallsHold/Restart
// kills the API server. Defaults to restarts.
const envRestarts = "CROFT_RESTARTS"

const (
	// restarts is enough to detect a fault that occurs in half of all restarts. `make test`
	// uses fewRestarts.
	restarts, fewRestarts = 6, 1
	// judged is the time for which requests are sent after the API server is ready.
	judged = 3 * time.Second
)

// testRestart kills the API server while tenants send requests. As soon as it is ready again,
// legitimate requests must succeed; hostile ones must be refused at all times. It fails if a
// policy depends on something that an API server loads only after it is ready, such as a custom
// kind.
func (p *proving) testRestart(t *testing.T, cluster *sandbox.Cluster) {
	config := rest.CopyConfig(cluster.Config)
	config.QPS = -1
	admin, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	s := newStream(t, admin, p)
	p.awaitAllowed(t, func(ctx context.Context) error {
		for _, r := range s.requests {
			if wrong := r.checkResponse(r.send(ctx)); wrong != nil {
				return wrong
			}
		}
		return nil
	})

	number := fewRestarts
	if sandbox.All() {
		number = restarts
	}
	if given := os.Getenv(envRestarts); given != "" {
		if number, err = strconv.Atoi(given); err != nil {
			t.Fatal(err)
		}
	}
	s.startRequests(t)
	for n := range number {
		s.setReady(false)
		if err := cluster.Kill("kube-apiserver"); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Start("kube-apiserver"); err != nil {
			t.Fatal(err)
		}
		refused := s.setReady(true)
		time.Sleep(judged) // requests are sent meanwhile
		t.Logf("restart %d: %d harmless requests refused", n+1, s.countRefused()-refused)
	}
	s.stopRequests()
	for _, r := range s.requests {
		t.Logf("%-40s %5d sent, %5d wrong", r.what, r.sent, r.wrongs)
		if r.wrongs > 0 {
			t.Errorf("%s: %d of %d were answered wrongly in %d restarts, such as: %v", r.what, r.wrongs, r.sent, number, r.last)
		}
	}
}

// stream sends requests continuously.
type stream struct {
	requests []*request
	stop     context.CancelFunc
	clients  sync.WaitGroup

	lock  sync.Mutex
	ready bool
}

// request is a request of a stream.
type request struct {
	what    string
	hostile bool
	send    func(context.Context) error

	sent, wrongs int
	last         error
}

// checkResponse returns an error if the response is wrong. A missing response is not wrong.
func (r *request) checkResponse(err error) error {
	var answer apierrors.APIStatus
	switch {
	case r.hostile && err == nil:
		return fmt.Errorf("%s was let through", r.what)
	case r.hostile || err == nil || !errors.As(err, &answer):
		return nil
	default:
		return fmt.Errorf("%s: %w", r.what, err)
	}
}

func newStream(t *testing.T, admin client.Client, p *proving) *stream {
	t.Helper()
	namespace := p.by.Namespaces[0]
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	service := func(name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	pod := func(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
		pod := attack.NewPod(namespace, name, edits...)
		pod.Spec.Containers[0].Image = attack.ChooseImage(&p.by.Allowances)
		return pod
	}
	for _, o := range []client.Object{service("there"), pod("there")} {
		p.awaitAllowed(t, func(ctx context.Context) error { return client.IgnoreAlreadyExists(admin.Create(ctx, o)) })
	}
	create := func(make func() client.Object) func(context.Context) error {
		return func(ctx context.Context) error { return admin.Create(ctx, make(), client.DryRunAll) }
	}
	label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"changed":"otherwise"}}}`))
	return &stream{requests: []*request{
		{what: "a pod", send: func(ctx context.Context) error {
			made := pod("made")
			err := admin.Create(ctx, made, client.DryRunAll)
			if pool := made.Spec.NodeSelector[p.platform.NodePoolKey]; err == nil && !slices.Contains(p.by.Pools, pool) {
				return apierrors.NewBadRequest("it was let in on pool " + strconv.Quote(pool))
			}
			return err
		}},
		{what: "a Service", send: create(func() client.Object { return service("made") })},
		{what: "a NetworkPolicy", send: create(func() client.Object { return &networkingv1.NetworkPolicy{ObjectMeta: meta("made")} })},
		{what: "a label of a Service", send: func(ctx context.Context) error {
			return admin.Patch(ctx, service("there"), label, client.DryRunAll)
		}},
		{what: "a label of a pod", send: func(ctx context.Context) error {
			return admin.Patch(ctx, pod("there"), label, client.DryRunAll)
		}},
		{what: "the deletion of a pod", send: func(ctx context.Context) error {
			return admin.Delete(ctx, pod("there"), client.DryRunAll)
		}},
		{what: "a pod that tolerates everything", hostile: true, send: create(func() client.Object {
			return pod("hostile", func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} })
		})},
		{what: "a Service of type NodePort", hostile: true, send: create(func() client.Object {
			hostile := service("hostile")
			hostile.Spec.Type = corev1.ServiceTypeNodePort
			return hostile
		})},
		{what: "an Ingress for the host of others", hostile: true, send: create(func() client.Object {
			return &networkingv1.Ingress{ObjectMeta: meta("hostile"), Spec: networkingv1.IngressSpec{
				IngressClassName: ptr.To("croft-verify"),
				Rules:            []networkingv1.IngressRule{{Host: "others.example.net"}},
			}}
		})},
	}}
}

// startRequests sends each request repeatedly until the stream is stopped.
func (s *stream) startRequests(t *testing.T) {
	t.Helper()
	var ctx context.Context
	ctx, s.stop = context.WithCancel(t.Context())
	t.Cleanup(s.stopRequests)
	for _, r := range s.requests {
		s.clients.Go(func() {
			pace := time.NewTicker(50 * time.Millisecond)
			defer pace.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-pace.C:
				}
				wasReady := s.isReady()
				if err := r.send(ctx); ctx.Err() == nil {
					s.countResponse(r, err, wasReady && s.isReady())
				}
			}
		})
	}
}

func (s *stream) stopRequests() { s.stop(); s.clients.Wait() }

// countResponse records a response. Before the API server is ready, it may refuse any request.
func (s *stream) countResponse(r *request, err error, ready bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if !ready && !r.hostile {
		return
	}
	if r.sent++; r.checkResponse(err) != nil {
		r.wrongs, r.last = r.wrongs+1, r.checkResponse(err)
	}
}

func (s *stream) isReady() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.ready
}

// setReady records whether the API server is ready, and returns the number of harmless requests
// that were refused so far.
func (s *stream) setReady(ready bool) int {
	s.lock.Lock()
	s.ready = ready
	s.lock.Unlock()
	return s.countRefused()
}

func (s *stream) countRefused() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	sum := 0
	for _, r := range s.requests {
		if !r.hostile {
			sum += r.wrongs
		}
	}
	return sum
}
