package account

import (
	"strings"
	"sync"

	"croft.dev/croft/sandbox/internal/instancetypes"
)

// Type is a type of instance.
type Type struct {
	Name, Arch string // as AWS has it: x86_64, arm64
	VCPUs      int
	MemoryMiB  int64
	Price      float64
	// Interfaces and Addresses are how many network interfaces it may have, and how
	// many addresses each: what a node's number of pods comes from.
	Interfaces, Addresses int
	Manufacturer          string
	Burstable             bool
}

// interfaces are how many network interfaces and addresses the sizes have.
var interfaces = map[string][2]int{
	"nano": {2, 2}, "micro": {2, 2}, "small": {3, 4}, "medium": {3, 6}, "large": {3, 10},
	"xlarge": {4, 15}, "2xlarge": {4, 15}, "4xlarge": {8, 30}, "8xlarge": {8, 30}, "9xlarge": {8, 30},
	"12xlarge": {8, 30}, "16xlarge": {15, 50}, "18xlarge": {15, 50}, "24xlarge": {15, 50},
	"32xlarge": {15, 50}, "48xlarge": {15, 50},
}

// Types are those on offer: the general ones, without accelerators.
var Types = sync.OnceValue(func() []Type {
	table, err := instancetypes.Table()
	if err != nil {
		panic(err) // it is part of this program
	}
	var out []Type
	for _, t := range table {
		family, size, _ := strings.Cut(t.Name, ".")
		network, ok := interfaces[size]
		if !ok || !strings.ContainsAny(family[:1], "tmcr") {
			continue
		}
		offered := Type{
			Name: t.Name, Arch: "x86_64", VCPUs: int(t.CPU.Value()), MemoryMiB: t.Memory.Value() >> 20, Price: t.Price,
			Interfaces: network[0], Addresses: network[1], Manufacturer: "Intel", Burstable: family[0] == 't',
		}
		switch {
		case t.Arch == "arm64":
			offered.Arch, offered.Manufacturer = "arm64", "AWS"
		case strings.HasSuffix(family, "a"):
			offered.Manufacturer = "AMD"
		}
		out = append(out, offered)
	}
	return out
})

// Find finds a type by its name; nil if it is not on offer.
func Find(name string) *Type {
	for _, t := range Types() {
		if t.Name == name {
			return &t
		}
	}
	return nil
}
