package netpol

import (
	"maps"
	"slices"
)

// MaxPairs is the maximum number of pairs of namespaces that are judged one by one,
// which takes seconds. Beyond that a sample is judged.
const MaxPairs = 100_000

// EachPair calls do for each pair of namespaces of different tenants, or for at most
// limit of them, spread evenly. It stops when do returns false, and returns the number
// of calls and the number of pairs.
func (m *Map) EachPair(limit int, do func(from, to string) bool) (judged, total int) {
	tenants := m.Tenants()
	var all []string
	for _, tenant := range slices.Sorted(maps.Keys(tenants)) {
		all = append(all, tenants[tenant]...)
		total -= len(tenants[tenant]) * len(tenants[tenant])
	}
	total += len(all) * len(all)
	// With a stride that shares no factor with the number of namespaces, each of
	// them is the destination as often as any other.
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
