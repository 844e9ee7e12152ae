// Package statemetrics serves the state of what is declared as metrics: conditions, use of
// quotas, policies and the last run of croft verify. They are computed from the cache when
// they are asked for, so that none is left of an object that is gone.
package statemetrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/metric"
)

// patience is how long reading from the cache may take: it waits while the cache is filled.
const patience = 5 * time.Second

// Declared are the metrics that a Collector has.
var Declared = []metric.Metric{
	metric.PlatformCondition, metric.PoolCondition, metric.TenantCondition, metric.QuotaUse,
	metric.RefusedWorkloads, metric.PolicyInfo, metric.PolicyWarnings, metric.VerifyTime, metric.VerifyResults,
}

// Collector implements prometheus.Collector for the operator that leads in this process.
type Collector struct {
	mu     sync.Mutex
	reader client.Reader
}

var collector = &Collector{}

func init() { metrics.Registry.MustRegister(collector) }

// Register makes the manager serve the state while it leads: several replicas would count
// everything several times.
func Register(m manager.Manager) error { return m.Add(exporter{m.GetClient()}) }

// exporter lends its cache to the Collector for as long as it leads.
type exporter struct{ reader client.Reader }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (exporter) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (e exporter) Start(ctx context.Context) error {
	collector.use(e.reader)
	<-ctx.Done()
	collector.drop(e.reader)
	return nil
}

func (c *Collector) use(r client.Reader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reader = r
}

// drop takes a reader away, unless another operator of the process came after it.
func (c *Collector) drop(r client.Reader) {
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

// Collect implements prometheus.Collector. Where the cache cannot be read there is no state:
// an error would take all other metrics along.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	reader := c.reader
	c.mu.Unlock()
	if reader == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	seen, err := read(ctx, reader)
	if err != nil {
		log.Log.WithName("statemetrics").Info("the state cannot be read for metrics", "error", err.Error())
		return
	}
	for _, m := range seen.samples() {
		to <- m
	}
}

// state is what the metrics are computed from.
type state struct {
	platforms v1alpha1.PlatformList
	pools     v1alpha1.PoolList
	tenants   v1alpha1.TenantList
	quotas    corev1.ResourceQuotaList
	policies  admissionv1.ValidatingAdmissionPolicyList
}

// read reads kinds that controllers watch anyway, and copies nothing.
func read(ctx context.Context, reader client.Reader) (*state, error) {
	s := &state{}
	for _, list := range []client.ObjectList{&s.platforms, &s.pools, &s.tenants, &s.quotas, &s.policies} {
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
	}
	return s, nil
}
