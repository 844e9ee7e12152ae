// Package statemetrics exports the state of declared objects as metrics: conditions, quota
// use, connections between tenants, policies and the last run of croft verify. The metrics are computed from the cache
// for each scrape, so that no series of a deleted object remains.
package statemetrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/metric"
	"croft.dev/croft/internal/walls/wall/network"
)

// patience limits reading from the cache, which blocks until the cache is filled.
const patience = 5 * time.Second

// Declared are the metrics of a Collector.
var Declared = []metric.Metric{
	metric.PlatformCondition, metric.PoolCondition, metric.TenantCondition, metric.QuotaUse,
	metric.RefusedWorkloads, metric.BudgetSpent, metric.ConnectionEnd, metric.PolicyInfo, metric.PolicyWarnings, metric.VerifyTime, metric.VerifyResults,
}

// Collector implements prometheus.Collector for the leading operator of this process.
type Collector struct {
	mu     sync.Mutex
	reader client.Reader
}

var collector = &Collector{}

func init() { metrics.Registry.MustRegister(collector) }

// Register adds the exporter to the manager. Only the leader exports the state: otherwise
// several replicas would count everything several times.
func Register(m manager.Manager) error { return m.Add(exporter{m.GetClient()}) }

// exporter gives the Collector its cache while it leads.
type exporter struct{ reader client.Reader }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (exporter) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (e exporter) Start(ctx context.Context) error {
	collector.setReader(e.reader)
	<-ctx.Done()
	collector.removeReader(e.reader)
	return nil
}

func (c *Collector) setReader(r client.Reader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reader = r
}

// removeReader removes a reader, unless another operator of this process has replaced it.
func (c *Collector) removeReader(r client.Reader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reader == r {
		c.reader = nil
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range Declared {
		to <- descriptions[m.Name]
	}
}

// Collect implements prometheus.Collector. If the cache cannot be read, Collect returns no
// state metrics: an error would fail the scrape of all other metrics.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	reader := c.reader
	c.mu.Unlock()
	if reader == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	seen, err := readState(ctx, reader)
	if err != nil {
		log.Log.WithName("statemetrics").Info("the state cannot be read for metrics", "error", err.Error())
		return
	}
	for _, m := range seen.collectSamples() {
		to <- m
	}
}

// state is the input of the metrics.
type state struct {
	platforms v1alpha1.PlatformList
	pools     v1alpha1.PoolList
	tenants   v1alpha1.TenantList
	quotas    corev1.ResourceQuotaList
	policies  admissionv1.ValidatingAdmissionPolicyList
	// connections are open, with an end or without.
	connections []network.OpenConnection
}

// readState lists kinds that controllers watch anyway, without copying the objects.
func readState(ctx context.Context, reader client.Reader) (*state, error) {
	s := &state{}
	for _, list := range []client.ObjectList{&s.platforms, &s.pools, &s.tenants, &s.quotas, &s.policies} {
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
	}
	return s, s.readConnections(ctx, reader)
}

// readConnections lists the network policies for connections between tenants, in the dialects of the
// Platform.
func (s *state) readConnections(ctx context.Context, reader client.Reader) error {
	lists := []client.ObjectList{&networkingv1.NetworkPolicyList{}}
	for i := range s.platforms.Items {
		for _, kind := range network.ListKinds(&estate.Platform{PlatformSpec: s.platforms.Items[i].Spec}) {
			// Controllers watch these kinds without a Go type: another type would have a cache of its own.
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			lists = append(lists, list)
		}
	}
	for _, list := range lists {
		err := reader.List(ctx, list, client.HasLabels{v1alpha1.ConsentLabel}, client.UnsafeDisableDeepCopy)
		if meta.IsNoMatchError(err) {
			continue // the condition of the Platform reports it
		}
		if err != nil {
			return err
		}
		if err := meta.EachListItem(list, s.addConnection); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) addConnection(policy runtime.Object) error {
	o, err := meta.Accessor(policy)
	if err != nil {
		return err
	}
	if c, ok := network.ReadConnection(o); ok {
		s.connections = append(s.connections, c)
	}
	return nil
}
