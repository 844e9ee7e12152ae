package operatortest

import (
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/internal/operate/metric"
)

// ReadMetric returns the operator's series with these labels, each as "name=value". ok is false
// if the series does not exist.
func (f *Fixture) ReadMetric(name string, labels ...string) (value float64, ok bool) {
	f.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		f.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			has := map[string]bool{}
			for _, l := range m.GetLabel() {
				has[l.GetName()+"="+l.GetValue()] = true
			}
			found := true
			for _, l := range labels {
				found = found && has[l]
			}
			if found {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue(), true
			}
		}
	}
	return 0, false
}

// CountRepairs returns how many objects of a kind the operator has restored for a tenant, or for
// the Platform and Pools if tenant is "".
func (f *Fixture) CountRepairs(tenant, kind string) float64 {
	f.Helper()
	n, _ := f.ReadMetric(metric.Repairs.Name, "tenant="+tenant, "kind="+kind)
	return n
}
