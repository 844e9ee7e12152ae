package account

import (
	_ "embed"
	"encoding/csv"
	"strconv"
	"strings"
	"sync"

	"croft.dev/croft/sandbox/internal/instancetypes"
)

// Type is an instance type.
type Type struct {
	Name, Arch string // Arch is AWS's name: x86_64 or arm64
	VCPUs      int
	MemoryMiB  int64
	Price      float64
	// Interfaces is the maximum number of network interfaces, Addresses the maximum number of
	// addresses of each. They determine a node's number of pods.
	Interfaces, Addresses int
	Manufacturer          string
	Burstable             bool
}

// interfaceTable contains the maximum numbers of network interfaces, and of addresses of each,
// of the sandbox's types. They are from Karpenter's AWS provider 1.14.1
// (pkg/providers/instancetype/zz_generated.vpclimits.go).
//
//go:embed interfaces.csv
var interfaceTable string

// readInterfaceTable returns the rows of the table, by type.
func readInterfaceTable() (map[string][2]int, error) {
	rows, err := csv.NewReader(strings.NewReader(interfaceTable)).ReadAll()
	if err != nil {
		return nil, err
	}
	all := map[string][2]int{}
	for _, row := range rows[1:] {
		count, err := strconv.Atoi(row[1])
		if err != nil {
			return nil, err
		}
		addresses, err := strconv.Atoi(row[2])
		if err != nil {
			return nil, err
		}
		all[row[0]] = [2]int{count, addresses}
	}
	return all, nil
}

// Types returns the available types: t, m, c and r, without accelerators.
var Types = sync.OnceValue(func() []Type {
	table, err := instancetypes.ReadTable()
	if err != nil {
		panic(err) // it is part of this program
	}
	networks, err := readInterfaceTable()
	if err != nil {
		panic(err) // so is this
	}
	var out []Type
	for _, t := range table {
		family, _, _ := strings.Cut(t.Name, ".")
		network, ok := networks[t.Name]
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

// FindType returns a type by its name; nil if it is not available.
func FindType(name string) *Type {
	for _, t := range Types() {
		if t.Name == name {
			return &t
		}
	}
	return nil
}
