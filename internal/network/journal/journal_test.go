package journal_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/network/boot"
	"croft.dev/croft/internal/network/journal"
)

var files = []string{"compact", "regular"}

func loadJournal(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.Open("testdata/" + name + ".journal.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// forever is later than any entry.
var forever = time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)

func readEntries(t *testing.T, content []byte, since, until time.Time) []journal.Entry {
	t.Helper()
	var all []journal.Entry
	err := journal.Read(bytes.NewReader(content), since, until, func(e journal.Entry) { all = append(all, e) })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// readWritten returns the entries that generate.sh writes.
func readWritten(t *testing.T) []journal.Entry {
	t.Helper()
	text, err := os.ReadFile("../boot/testdata/al2023.journal.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []journal.Entry
	for l := range strings.Lines(string(text)) {
		line, ok := boot.ParseLine(strings.TrimSpace(l), forever)
		if !ok {
			t.Fatalf("no time: %s", l)
		}
		all = append(all, journal.Entry{Time: line.Time, Identifier: line.Source, Message: line.Text})
	}
	return all
}

// TestRead expects the entries that systemd's own writer got, in each of its formats.
func TestRead(t *testing.T) {
	want := readWritten(t)
	for _, name := range files {
		var got, long []journal.Entry
		for _, e := range readEntries(t, loadJournal(t, name), time.Time{}, forever) {
			if e.Identifier == "nodeadm" && !strings.HasPrefix(e.Message, "{") {
				long = append(long, e)
				continue
			}
			got = append(got, e)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %d entries, want %d", name, len(got), len(want))
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Errorf("got  %v\nwant %v", got[i], want[i])
				}
			}
		}
		if len(long) != 2 || long[1].Message != "" || long[1].Identifier != "nodeadm" {
			t.Errorf("%s: entries with long messages: %d", name, len(long))
		}
		if want := map[string]string{"regular": strings.Repeat("long ", 400)}[name]; long[0].Message != want {
			t.Errorf("%s: a message of 2000 bytes is read as %.40q", name, long[0].Message)
		}
	}
}

// TestWindow expects the entries from one time to another.
func TestWindow(t *testing.T) {
	all := readWritten(t)
	for _, name := range files {
		content := loadJournal(t, name)
		for _, c := range []struct{ from, to int }{{0, 1}, {10, 12}, {len(all) - 1, len(all)}} {
			since, until := all[c.from].Time, all[c.to-1].Time
			if got := readEntries(t, content, since, until); !slices.Equal(got, all[c.from:c.to]) {
				t.Errorf("%s, from %d to %d: %v", name, c.from, c.to, got)
			}
		}
		if got := readEntries(t, content, forever, forever); len(got) > 0 {
			t.Errorf("%s: %d entries after the last", name, len(got))
		}
		if got := readEntries(t, content, time.Time{}, all[0].Time.Add(-time.Microsecond)); len(got) > 0 {
			t.Errorf("%s: %d entries before the first", name, len(got))
		}
	}
}

// TestBroken expects an error, and neither a panic nor a loop, for a file that is no
// journal or a truncated one.
func TestBroken(t *testing.T) {
	for _, name := range files {
		content := loadJournal(t, name)
		last := int(binary.LittleEndian.Uint64(content[136:]))
		for _, length := range []int{0, 7, 100, 207, 208, last - 100, last + 1, last + 20} {
			err := journal.Read(bytes.NewReader(content[:length]), time.Time{}, forever, func(journal.Entry) {})
			if err == nil {
				t.Errorf("%s of %d bytes: no error", name, length)
			}
		}
		for why, change := range map[string]func([]byte){
			"no journal":       func(b []byte) { b[0] = 'X' },
			"an unknown flag":  func(b []byte) { b[12] |= 1 << 5 },
			"no header":        func(b []byte) { binary.LittleEndian.PutUint64(b[88:], 0) },
			"a crooked header": func(b []byte) { binary.LittleEndian.PutUint64(b[88:], 211) },
		} {
			broken := slices.Clone(content)
			change(broken)
			if err := journal.Read(bytes.NewReader(broken), time.Time{}, forever, func(journal.Entry) {}); err == nil {
				t.Errorf("%s: %s: no error", name, why)
			}
		}
	}
}

// patched is a file with eight replaced bytes.
type patched struct {
	*bytes.Reader
	at    int64
	value [8]byte
}

func (p patched) ReadAt(b []byte, off int64) (int, error) {
	n, err := p.Reader.ReadAt(b, off)
	for i := range p.value {
		if at := p.at + int64(i) - off; at >= 0 && at < int64(n) {
			b[at] = p.value[i]
		}
	}
	return n, err
}

// FuzzRead replaces eight bytes of a journal file, and fails if reading it does not end.
func FuzzRead(f *testing.F) {
	var content [][]byte
	for _, name := range files {
		content = append(content, loadJournal(f, name))
	}
	for _, at := range []uint32{0, 12, 88, 136, 184, 3_735_000, 3_736_000} {
		f.Add(at, uint64(1), true)
		f.Add(at, ^uint64(0), false)
	}
	f.Fuzz(func(t *testing.T, at uint32, value uint64, compact bool) {
		of := content[1]
		if compact {
			of = content[0]
		}
		file := patched{Reader: bytes.NewReader(of), at: int64(at) % int64(len(of))}
		binary.LittleEndian.PutUint64(file.value[:], value)
		entries := 0
		_ = journal.Read(file, time.Time{}, forever, func(e journal.Entry) {
			if entries++; len(e.Message) > 4096 {
				t.Errorf("a message of %d bytes", len(e.Message))
			}
		})
		if entries > 1000 {
			t.Errorf("%d entries", entries)
		}
	})
}
