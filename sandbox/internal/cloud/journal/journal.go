// Package journal contains the lines that an instance's programs write to its journal as it
// boots. The lines are from real nodes (see internal/network/boot/testdata in croft's module), with the
// times of the simulated boot.
package journal

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"croft.dev/croft/sandbox/internal/journalfile"
)

// System is the operating system of an image.
type System string

// The systems. Amazon Linux 2 keeps no journal on its disk.
const (
	AmazonLinux2023 System = "Amazon Linux 2023"
	AmazonLinux2    System = "Amazon Linux 2"
	Bottlerocket    System = "Bottlerocket"
)

// Boot is one boot of an instance.
type Boot struct {
	System System
	// Instance is its ID, and Node the name of its node.
	Instance, Node string
	// Kernel is the time at which the machine runs, Registers the time at which its kubelet
	// registers the node, and Ready the time at which the node is ready; zero for never.
	Kernel, Registers, Ready time.Time
}

// line is one entry. at is its time in thousandths: up to 1000, of the time from the kernel to
// the registration, then of the time until the node is ready. The names in capitals in text
// are placeholders.
type line struct {
	at      int
	program string
	pid     int
	text    string
}

// BuildEntries returns the boot's entries in the order of their times. A node that never gets ready
// has none after its registration.
func (b Boot) BuildEntries() []journalfile.Entry {
	lines := map[System][]line{AmazonLinux2023: amazonLinux2023, Bottlerocket: bottlerocket}[b.System]
	all := make([]journalfile.Entry, 0, len(lines))
	for _, l := range lines {
		if l.at > 1000 && b.Ready.IsZero() {
			break
		}
		all = append(all, b.buildEntry(l))
	}
	return all
}

// Machine returns the ID of the machine that boots.
func (b Boot) Machine() journalfile.ID { return hashID(b.Instance) }

// ID returns the ID of the boot.
func (b Boot) ID() journalfile.ID { return hashID(b.Instance + b.Kernel.String()) }

func hashID(of string) journalfile.ID {
	sum := sha256.Sum256([]byte(of))
	return journalfile.ID(sum[:16])
}

func (b Boot) buildEntry(l line) journalfile.Entry {
	at := b.Kernel.Add(b.Registers.Sub(b.Kernel) * time.Duration(min(l.at, 1000)) / 1000)
	if l.at > 1000 {
		at = at.Add(b.Ready.Sub(b.Registers) * time.Duration(l.at-1000) / 1000)
	}
	e := journalfile.Entry{Time: at, Uptime: at.Sub(b.Kernel), Fields: []string{
		"MESSAGE=" + b.fillText(l, at), "SYSLOG_IDENTIFIER=" + l.program, "PRIORITY=6", "_HOSTNAME=" + b.Node,
		fmt.Sprintf("_BOOT_ID=%x", b.ID()), fmt.Sprintf("_MACHINE_ID=%x", b.Machine()),
	}}
	if l.pid != 0 {
		e.Fields = append(e.Fields, fmt.Sprintf("_PID=%d", l.pid), "_TRANSPORT=journal")
	} else {
		e.Fields = append(e.Fields, "_TRANSPORT=kernel")
	}
	return e
}

// fillText returns the text of a line with its time and node.
func (b Boot) fillText(l line, at time.Time) string {
	at = at.UTC()
	return strings.NewReplacer(
		"CLOUDINIT", at.Format(time.RFC1123Z)+fmt.Sprintf(". Up %.2f seconds", at.Sub(b.Kernel).Seconds()),
		"DATASOURCE", at.Format(time.RFC1123Z)+fmt.Sprintf(". Datasource DataSourceEc2.  Up %.2f seconds", at.Sub(b.Kernel).Seconds()),
		"KLOG", "I"+at.Format("0102 15:04:05.000000")+fmt.Sprintf(" %7d", l.pid),
		"STAMP", at.Format(time.RFC3339Nano), "SECONDS", fmt.Sprintf("%.3f", float64(at.UnixMilli())/1000), "NODE", b.Node,
	).Replace(l.text)
}
