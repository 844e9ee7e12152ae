package boot_test

import (
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/network/boot"
)

var near = time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)

// initializes is a line of cloud-init-output.log.
const initializes = "Cloud-init v. 22.2.2 running 'init' at Mon, 21 Aug 2023 14:59:33 +0200. Up 4.48 seconds."

// TestParseLine covers a line of each format.
func TestParseLine(t *testing.T) {
	for text, want := range map[string]string{
		// journalctl, /var/log/messages
		"Jan  2 02:59:07 ip-10-0-0-1 kernel: Linux version 6.1":       "2026-01-02T02:59:07Z|kernel|Linux version 6.1",
		"Dec 31 23:59:59 host kubelet[12]: I1231 a: b":                "2025-12-31T23:59:59Z|kubelet|I1231 a: b",
		"Feb 29 00:00:00 host systemd[1]: Started a.":                 "2026-03-01T00:00:00Z|systemd|Started a.", // this day does not exist
		"Jan  2 02:59:07 ip-10-0-0-1 last message repeated 2 times":   "2026-01-02T02:59:07Z||",
		"Jan  2 02:59:07 host containerd[7]: time=\"x\" msg=\"a: b\"": `2026-01-02T02:59:07Z|containerd|time="x" msg="a: b"`,
		// journalctl -o short-iso, short-iso-precise; rsyslog
		"2022-11-28T02:59:07+0000 host kernel: Linux version":        "2022-11-28T02:59:07Z|kernel|Linux version",
		"2022-11-28T02:59:07.123456+0100 host systemd[1]: Started a": "2022-11-28T01:59:07.123456Z|systemd|Started a",
		"2022-11-28T02:59:07.123456+00:00 kernel: Linux version":     "2022-11-28T02:59:07.123456Z|kernel|Linux version",
		// a container's log
		"2022-11-28T02:59:07.123456789Z stdout F Successfully copied CNI plugin": "2022-11-28T02:59:07.123456789Z||Successfully copied CNI plugin",
		// cloud-init.log, cloud-init-output.log
		"2022-11-28 02:59:10,123 - util.py[DEBUG]: Cloud-init v. 22.2.2 finished at": "2022-11-28T02:59:10.123Z||Cloud-init v. 22.2.2 finished at",
		initializes: "2023-08-21T12:59:33Z|cloud-init|" + initializes,
		// journalctl -o json
		`{"__REALTIME_TIMESTAMP":"1700000000123456","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"Linux version"}`: "2023-11-14T22:13:20.123456Z|kernel|Linux version",

		"":                "",
		"-- Boot 1234 --": "",
		"Cloud-init v. 22.2.2 running 'init' at noon":       "",
		"Jan 32 02:59:07 host a: b":                         "",
		"2022-13-28T02:59:07+0000 host kernel: a":           "",
		"2022-11-28 02:59:10 - util.py[DEBUG]: no comma":    "",
		`{"__REALTIME_TIMESTAMP":"x","MESSAGE":"a"}`:        "",
		`{"__REALTIME_TIMESTAMP":"-5","MESSAGE":"a"}`:       "",
		`{"__REALTIME_TIMESTAMP":"5","MESSAGE":[1,2]}`:      "",
		`{"__REALTIME_TIMESTAMP":"5"}`:                      "",
		`{"__REALTIME_TIMESTAMP":"5","MESSAGE":"unfinished`: "",
	} {
		got := ""
		if line, ok := boot.ParseLine(text, near); ok {
			got = line.Time.Format(time.RFC3339Nano) + "|" + line.Source + "|" + line.Text
		}
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// TestLongLines expects the beginning of a line that is too long to count, and the next
// line to be read.
func TestLongLines(t *testing.T) {
	for _, length := range []int{4000, 4096, 5000, 9000, 1 << 20} {
		for _, end := range []string{"\n", "\r\n"} {
			text := "Jan  2 02:59:07 host kernel: Linux version " + strings.Repeat("x", length) + end +
				"Jan  2 02:59:08 host systemd[1]: Starting Kubelet..." + end +
				"Jan  2 02:59:09 host systemd[1]: Reached target Network."
			var log boot.Log
			timed, err := log.Read(strings.NewReader(text), near)
			if got := log.Boot(time.Time{}); err != nil || timed != 3 || len(got) != 3 {
				t.Errorf("%d bytes and %q: %d lines, %v, %v", length, end, timed, got, err)
			}
		}
	}
}

// TestRestOfLongLine expects the rest of a long line not to be read as a line, wherever it
// is cut.
func TestRestOfLongLine(t *testing.T) {
	text := "Jan  2 02:59:07 host kubelet[1]: " + strings.Repeat("Cloud-init v. 1 finished at Mon, 21 Aug 2023 14:59:33 +0200 ", 500)
	for skip := range 59 {
		var log boot.Log
		timed, err := log.Read(strings.NewReader(text[:33]+text[34+skip:]+"\n"), near)
		if got := log.Boot(time.Time{}); err != nil || timed != 1 || len(got) > 0 {
			t.Errorf("%d lines, %v, %v", timed, got, err)
		}
	}
}

// FuzzRead fails if a text breaks the reader, or results in times and events that cannot be
// encoded.
func FuzzRead(f *testing.F) {
	for _, line := range []string{
		"Jan  2 02:59:07 ip-10-0-0-1 kernel: Linux version 6.1",
		"2022-11-28T02:59:07.123456+0000 host systemd[1]: Started kubelet.service - Kubernetes Kubelet.",
		"2022-11-28 02:59:10,123 - util.py[DEBUG]: Cloud-init v. 22.2.2 finished at",
		"Cloud-init v. 22.2.2 running 'init' at Mon, 21 Aug 2023 14:59:33 +0000. Up 4.48 seconds.",
		`{"__REALTIME_TIMESTAMP":"1700000000123456","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"Linux version"}`,
		"2022-11-28T02:59:07Z stdout F Successfully copied CNI plugin binary and config file.",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var log boot.Log
		timed, err := log.Read(strings.NewReader(text), near)
		if err != nil || timed > strings.Count(text, "\n")+1 {
			t.Fatalf("%d lines with times: %v", timed, err)
		}
		times := log.Boot(time.Time{})
		if len(times) > len(boot.Events()) {
			t.Fatalf("%d events", len(times))
		}
		again, err := boot.Decode(boot.Encode(times))
		if err != nil {
			t.Fatal(err)
		}
		for e, at := range again {
			if off := times[e].Sub(at); off < 0 || off >= time.Millisecond {
				t.Errorf("%s at %s is read as %s", e, times[e], at)
			}
		}
	})
}
