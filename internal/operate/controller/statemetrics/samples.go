package statemetrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/metric"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/walls/wall/network"
	"croft.dev/croft/internal/walls/wall/policy"
)

// collectSamples returns the state as metrics.
func (s *state) collectSamples() []prometheus.Metric {
	var all samples
	for i := range s.platforms.Items {
		p := &s.platforms.Items[i]
		all.addConditions(metric.PlatformCondition, p.Status.Status)
		if p.Name == v1alpha1.PlatformName {
			all.addVerification(p.Status.Verify)
		}
	}
	for i := range s.pools.Items {
		p := &s.pools.Items[i]
		all.addConditions(metric.PoolCondition, p.Status.Status, p.Name)
	}
	for i := range s.tenants.Items {
		t := &s.tenants.Items[i]
		all.addConditions(metric.TenantCondition, t.Status.Status, t.Name)
		if refused := t.Status.RefusedPods; refused != nil {
			all.addSample(metric.RefusedWorkloads, float64(refused.Workloads), t.Name)
		}
		if b := t.Status.Budget; b != nil && b.Spent != "" {
			all.addSample(metric.BudgetSpent, float64(b.Percent)/100, t.Name)
		}
	}
	all.addQuotas(s.quotas.Items)
	all.addConnections(s.connections)
	for i := range s.policies.Items {
		p := &s.policies.Items[i]
		all.addSample(metric.PolicyInfo, 1, p.Name, p.Labels[v1alpha1.WallLabel])
		// The API server has not yet type-checked a newer generation.
		if p.Status.ObservedGeneration == p.Generation && p.Status.TypeChecking != nil {
			warnings := 0
			for _, w := range p.Status.TypeChecking.ExpressionWarnings {
				if !admissionpolicy.IsUntypedWarning(w.Warning) {
					warnings++
				}
			}
			all.addSample(metric.PolicyWarnings, float64(warnings), p.Name)
		}
	}
	return all
}

type samples []prometheus.Metric

// descriptions are shared, because there may be thousands of samples of each.
var descriptions = func() map[string]*prometheus.Desc {
	all := map[string]*prometheus.Desc{}
	for _, m := range Declared {
		all[m.Name] = m.Desc()
	}
	return all
}()

func (s *samples) addSample(m metric.Metric, value float64, labels ...string) {
	*s = append(*s, prometheus.MustNewConstMetric(descriptions[m.Name], prometheus.GaugeValue, value, labels...))
}

func (s *samples) addConditions(m metric.Metric, status v1alpha1.Status, object ...string) {
	for _, c := range status.Conditions {
		labels := append(append([]string{}, object...), c.Type, string(c.Status), c.Reason)
		s.addSample(m, 1, labels...)
	}
}

func (s *samples) addVerification(v *v1alpha1.VerifyStatus) {
	if v == nil {
		return
	}
	s.addSample(metric.VerifyTime, float64(v.Time.Unix()))
	for result, n := range map[string]int32{
		"held": v.Held, "breached": v.Breached, "blocked_elsewhere": v.BlockedElsewhere, "not_tried": v.NotTried,
	} {
		s.addSample(metric.VerifyResults, float64(n), result)
	}
}

// addConnections adds the first end for each pair of tenants: several namespaces have policies for the
// same connection, and TenantCallers may have different ends.
func (s *samples) addConnections(open []network.OpenConnection) {
	type pair struct{ callee, caller string }
	first := map[pair]time.Time{}
	for _, c := range open {
		key := pair{c.Callee, c.Caller}
		if end, ok := first[key]; !c.End.IsZero() && (!ok || c.End.Before(end)) {
			first[key] = c.End
		}
	}
	for key, end := range first {
		s.addSample(metric.ConnectionEnd, float64(end.Unix()), key.callee, key.caller)
	}
}

// addQuotas adds up the quotas of each tenant's namespaces. It omits unused resources:
// otherwise most series would be object counts that every tenant has.
func (s *samples) addQuotas(quotas []corev1.ResourceQuota) {
	type key struct{ tenant, resource string }
	used, hard := map[key]float64{}, map[key]float64{}
	for i := range quotas {
		q := &quotas[i]
		tenant := q.Labels[v1alpha1.TenantLabel]
		if q.Name != policy.Name || tenant == "" {
			continue
		}
		for resource, limit := range q.Status.Hard {
			k := key{tenant, string(resource)}
			is := q.Status.Used[resource]
			hard[k] += limit.AsApproximateFloat64()
			used[k] += is.AsApproximateFloat64()
		}
	}
	for k, is := range used {
		if is > 0 && hard[k] > 0 {
			s.addSample(metric.QuotaUse, is/hard[k], k.tenant, strings.ToValidUTF8(k.resource, ""))
		}
	}
}
