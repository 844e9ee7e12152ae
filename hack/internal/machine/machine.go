// Package machine describes the machine of a measurement, without which figures cannot be
// interpreted, and reads a process' memory and CPU time. It needs Linux.
package machine

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"croft.dev/croft/internal/test/sandbox"
)

// Machine describes the machine on which figures were measured.
type Machine struct {
	OS          string  `json:"os"`
	Cores       int     `json:"cores"`
	MemoryBytes float64 `json:"memoryBytes"`
	// Load is the load average of the last minute before the measurement. If it is well above
	// zero, other processes were running.
	Load string `json:"load"`
	Go   string `json:"go"`
	// Sandbox maps a sandbox's components to their versions.
	Sandbox map[string]string `json:"sandbox"`
}

// Describe describes the current machine. Call it before the measurements.
func Describe(ctx context.Context) (Machine, error) {
	m := Machine{OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return m, fmt.Errorf("%w: the benchmark needs Linux", err)
	}
	m.Load, _, _ = strings.Cut(string(load), " ")
	if m.MemoryBytes, err = readSize("/proc/meminfo", "MemTotal"); err != nil {
		return m, err
	}
	binary, err := sandbox.FindBinary()
	if err != nil {
		return m, err
	}
	versions, err := exec.CommandContext(ctx, binary, "version").Output()
	if err != nil {
		return m, fmt.Errorf("%s version: %w", binary, err)
	}
	m.Sandbox = map[string]string{}
	for line := range strings.Lines(string(versions)) {
		if words := strings.Fields(line); len(words) == 2 {
			m.Sandbox[words[0]] = words[1]
		}
	}
	return m, nil
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s of memory, load %s at the start; %s, Kubernetes %s, Karpenter %s",
		m.OS, m.Cores, FormatBytes(m.MemoryBytes), m.Load, m.Go, m.Sandbox["kubernetes"], m.Sandbox["karpenter"])
}

// readSize reads a size from a file of lines such as "VmRSS:  51232 kB".
func readSize(path, key string) (float64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), key+":")
		if !ok {
			continue
		}
		var kilobytes float64
		if _, err := fmt.Sscanf(rest, "%g kB", &kilobytes); err != nil {
			return 0, fmt.Errorf("%s: %q: %w", path, lines.Text(), err)
		}
		return kilobytes * 1024, nil
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return 0, fmt.Errorf("%s: there is no %s", path, key)
}

// ReadResident returns a process' current and maximum resident memory.
func ReadResident(pid int) (now, most float64, err error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	if now, err = readSize(path, "VmRSS"); err != nil {
		return 0, 0, err
	}
	most, err = readSize(path, "VmHWM")
	return now, most, err
}

// ticksPerSecond is the unit of the times in /proc/PID/stat. It is the same on every architecture
// that Go supports.
const ticksPerSecond = 100

// ReadCPU returns the CPU time of a process since its start, in seconds.
func ReadCPU(pid int) (float64, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	stat, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	seconds, err := parseCPU(string(stat))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return seconds, nil
}

// parseCPU returns the sum of the user and the system time in the content of /proc/PID/stat
// (proc_pid_stat(5)). The second field, the name of the program, may contain spaces and parentheses.
func parseCPU(stat string) (float64, error) {
	const user, system = 11, 12 // the fields' positions after the name
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) <= system {
		return 0, fmt.Errorf("%d fields after the name of the program", len(fields))
	}
	sum := 0.0
	for _, field := range []string{fields[user], fields[system]} {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, err
		}
		sum += ticks / ticksPerSecond
	}
	return sum, nil
}

// FormatBytes formats an amount of memory.
func FormatBytes(v float64) string {
	switch {
	case v >= 1<<30:
		return fmt.Sprintf("%.1f GiB", v/(1<<30))
	case v >= 1<<20:
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	default:
		return fmt.Sprintf("%.0f KiB", v/(1<<10))
	}
}
