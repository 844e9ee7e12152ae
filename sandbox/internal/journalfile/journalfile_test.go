package journalfile

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/network/journal"
)

var at = time.Date(2026, 11, 25, 9, 0, 0, 123_456_000, time.UTC)

// makeEntries returns entries that share fields, one of them long.
func makeEntries() []Entry {
	all := []Entry{
		{at, 0, []string{"MESSAGE=Linux version 6.1", "SYSLOG_IDENTIFIER=kernel", "_TRANSPORT=kernel"}},
		{at.Add(time.Second), time.Second, []string{"MESSAGE=Starting Kubelet...", "SYSLOG_IDENTIFIER=systemd", "_PID=1"}},
		{at.Add(time.Minute), time.Minute, []string{"MESSAGE=Started Kubelet.", "SYSLOG_IDENTIFIER=systemd", "_PID=1"}},
		{at.Add(time.Minute), time.Minute, []string{"MESSAGE=" + strings.Repeat("long ", 300), "SYSLOG_IDENTIFIER=kubelet", "_PID=7"}},
	}
	for i := range all {
		all[i].Fields = append(all[i].Fields, "_HOSTNAME=a", "PRIORITY=6", "_BOOT_ID="+strings.Repeat("01", 16))
	}
	return all
}

func encodeEntries() []byte {
	var id ID
	for i := range id {
		id[i] = 1
	}
	return Encode(id, id, makeEntries())
}

// TestAgent reads a file with the code of croft's agent.
func TestAgent(t *testing.T) {
	var got []string
	if err := journal.Read(bytes.NewReader(encodeEntries()), at, at.Add(time.Hour), func(e journal.Entry) {
		got = append(got, e.Time.Format(time.RFC3339Nano)+" "+e.Identifier+" "+strings.TrimRight(e.Message, "long "))
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"2026-11-25T09:00:00.123456Z kernel Linux version 6.1", "2026-11-25T09:00:01.123456Z systemd Starting Kubelet...",
		"2026-11-25T09:01:00.123456Z systemd Started Kubelet.", "2026-11-25T09:01:00.123456Z kubelet "}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if file := Encode(ID{}, ID{}, nil); file != nil {
		t.Errorf("without entries there are %d bytes", len(file))
	}
}

// TestJournalctl reads a file with systemd's own reader.
func TestJournalctl(t *testing.T) {
	journalctl, err := exec.LookPath("journalctl")
	if err != nil {
		t.Skip("there is no journalctl")
	}
	path := filepath.Join(t.TempDir(), "system.journal")
	if err := os.WriteFile(path, encodeEntries(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), journalctl, "--file", path, "--utc", "--no-pager", "-o", "short-iso-precise").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{
		"2026-11-25T09:00:00.123456+0000 a kernel: Linux version 6.1\n", "2026-11-25T09:00:01.123456+0000 a systemd[1]: Starting Kubelet...\n",
		"2026-11-25T09:01:00.123456+0000 a systemd[1]: Started Kubelet.\n", "a kubelet[7]: long long",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s\nis without %s", out, want)
		}
	}
}
