package secondary

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Limits are the most that an instance type takes.
type Limits struct {
	// Interfaces are network interfaces, the node's own among them.
	Interfaces int
	// Addresses are IPv4 addresses of each interface, its own among them.
	Addresses int
}

// Carries says whether a node has an interface for each of some networks, beside the one
// that it comes with.
func (l Limits) Carries(networks int) bool { return l.Interfaces > networks }

// LimitsOf are those of an instance type of AWS, if it is known.
func LimitsOf(instanceType string) (Limits, bool) {
	l, known := allLimits()[instanceType]
	return l, known
}

// InstanceTypes are the names of all instance types whose limits are known, sorted.
func InstanceTypes() []string { return slices.Sorted(maps.Keys(allLimits())) }

var allLimits = sync.OnceValue(func() map[string]Limits {
	all := map[string]Limits{}
	for family, sizes := range interfaceLimits {
		for entry := range strings.FieldsSeq(sizes) {
			size, limits, _ := strings.Cut(entry, ":")
			var l Limits
			if _, err := fmt.Sscanf(limits, "%dx%d", &l.Interfaces, &l.Addresses); err != nil {
				panic("interfaceLimits: " + entry) // generated, and read by TestLimits
			}
			all[family+"."+size] = l
		}
	}
	return all
})
