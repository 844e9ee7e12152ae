package netpol

import (
	"maps"
	"slices"
)

// MaxPairs is the maximum number of pairs of namespaces that are all evaluated, which takes
// seconds. If there are more, a sample is evaluated.
const MaxPairs = 100_000

// EachPair calls do for each pair of namespaces of different tenants, or for at most limit of
// them, evenly distributed. It stops when do returns false, and returns the number of calls
// and the number of pairs.
func (m *Map) EachPair(limit int, do func(from, to string) bool) (judged, total int) {
	tenants := m.Tenants()
	var all []string
	for _, tenant := range slices.Sorted(maps.Keys(tenants)) {
		all = append(all, tenants[tenant]...)
		total -= len(tenants[tenant]) * len(tenants[tenant])
	}
	total += len(all) * len(all)
	// With a stride that is coprime to the number of namespaces, each namespace is the
	// destination equally often.
	stride := (total + limit - 1) / limit
	for stride > 1 && gcd(stride, len(all)) > 1 {
		stride++
	}
	for i := 0; i < len(all)*len(all); i += max(1, stride) {
		from, to := all[i/len(all)], all[i%len(all)]
		if m.Tenant(from) == m.Tenant(to) {
			continue
		}
		judged++
		if !do(from, to) {
			break
		}
	}
	return judged, total
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
