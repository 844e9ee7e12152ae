package secondary

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Limits are the maximum numbers of interfaces and addresses of an instance type.
type Limits struct {
	// Interfaces is the number of network interfaces, including the node's primary one.
	Interfaces int
	// Addresses is the number of IPv4 addresses of each interface, including its own.
	Addresses int
}

// Carries reports whether a node can have an interface for each of the networks in addition
// to its primary one.
func (l Limits) Carries(networks int) bool { return l.Interfaces > networks }

// LimitsOf returns the limits of an AWS instance type, and whether they are known.
func LimitsOf(instanceType string) (Limits, bool) {
	l, known := allLimits()[instanceType]
	return l, known
}

// InstanceTypes returns the sorted names of all instance types with known limits.
func InstanceTypes() []string { return slices.Sorted(maps.Keys(allLimits())) }

var allLimits = sync.OnceValue(func() map[string]Limits {
	all := map[string]Limits{}
	for family, sizes := range interfaceLimits {
		for entry := range strings.FieldsSeq(sizes) {
			size, limits, _ := strings.Cut(entry, ":")
			var l Limits
			if _, err := fmt.Sscanf(limits, "%dx%d", &l.Interfaces, &l.Addresses); err != nil {
				panic("interfaceLimits: " + entry) // generated, and checked by TestLimits
			}
			all[family+"."+size] = l
		}
	}
	return all
})
