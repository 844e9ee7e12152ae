package component

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// collectRarely reduces garbage collection: it runs when garbage is four times the live
// heap, or when a component reaches a quarter of the machine's memory. Sandboxes live for
// minutes, and the API server needs a fifth less of a core this way. A limit below the live
// heap would make Go collect permanently: the API server's heap is more than a gibibyte from
// about 3,000 tenants on.
func collectRarely() []string {
	meminfo, _ := os.ReadFile("/proc/meminfo")
	cgroup, _ := os.ReadFile("/sys/fs/cgroup/memory.max")
	return []string{"GOGC=400", fmt.Sprintf("GOMEMLIMIT=%d", computeMemory(string(meminfo), string(cgroup))/4)}
}

const (
	// usual is the assumed memory of a machine without /proc/meminfo.
	usual = int64(16 << 30)
	// least keeps the limit above the heap of an API server with some tenants.
	least = int64(4 << 30)
)

// computeMemory returns the smaller of the machine's memory, from /proc/meminfo, and the container's
// limit, in bytes.
func computeMemory(meminfo, cgroup string) int64 {
	memory := usual
	for line := range strings.Lines(meminfo) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "MemTotal:" {
			if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				memory = kib << 10
			}
		}
	}
	if limit, err := strconv.ParseInt(strings.TrimSpace(cgroup), 10, 64); err == nil { // otherwise it is max
		memory = min(memory, limit)
	}
	return max(least, memory)
}
