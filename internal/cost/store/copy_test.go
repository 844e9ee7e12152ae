package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
)

// copiedHours is the number of hours of these tests. They end in the second day.
const copiedHours = 30

// writeCopied stores hours, each with its own power of two, and returns their files by beginning.
func writeCopied(t *testing.T, s *Store) map[time.Time][]byte {
	t.Helper()
	files := map[time.Time][]byte{}
	for n := range copiedHours {
		r := makeRecord(n, uint64(n)) //nolint:gosec // small numbers
		r.Nodes = 1 << n
		if err := s.WriteHour(r); err != nil {
			t.Fatal(err)
		}
		found, err := s.listFiles(hoursDir, r.Span)
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		if files[r.From], err = os.ReadFile(found[0].path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// copyAll returns a copy of each hour, which must have the content of its file.
func copyAll(t *testing.T, s *Store, files map[time.Time][]byte) []Copy {
	t.Helper()
	var copies []Copy
	for n := range copiedHours {
		from := makeHour(n).From
		c, found, err := s.CopyHour(from)
		if err != nil || !found || !bytes.Equal(c.Data, files[from]) {
			t.Fatalf("the copy of %s: %t %v, with the content of the file: %t", from, found, err, bytes.Equal(c.Data, files[from]))
		}
		parsed, err := ParseCopy(c.Data)
		if err != nil || !parsed.From.Equal(from) || parsed.epoch != c.epoch {
			t.Fatalf("%s of epoch %d: %v, want %s of epoch %d", parsed.From, parsed.epoch, err, from, c.epoch)
		}
		copies = append(copies, parsed)
	}
	return copies
}

// restoreLost restores the copies of lost hours, and returns their number.
func restoreLost(t *testing.T, s *Store, copies []Copy) int {
	t.Helper()
	var hours []time.Time
	for _, c := range copies {
		hours = append(hours, c.From)
	}
	lost, err := s.FindLost(hours)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range copies {
		if slices.Contains(lost, c.From) {
			if err := s.Restore(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	return len(lost)
}

// TestCopy copies hours before and after the merge of their day, each with the content of its file. Restored in another
// directory, each has the same name and the same content again.
func TestCopy(t *testing.T) {
	s := openLeader(t, t.TempDir(), 1)
	files := writeCopied(t, s)
	copies := copyAll(t, s, files)
	if err := s.Maintain(makeHour(copiedHours).From); err != nil {
		t.Fatal(err)
	}
	copies = append(copies[:copiedHours/2], copyAll(t, s, files)[copiedHours/2:]...)
	if _, found, err := s.CopyHour(makeHour(copiedHours).From); found || err != nil {
		t.Errorf("the copy of an hour that is not stored: %t %v", found, err)
	}
	other := openLeader(t, t.TempDir(), 1)
	if n := restoreLost(t, other, copies); n != copiedHours {
		t.Errorf("%d hours were lost, want %d", n, copiedHours)
	}
	for from, want := range files {
		got, err := os.ReadFile(other.nameFile(hoursDir, from.Format(hourForm), s.leader.Epoch))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("the hour of %s: %v, %d bytes, want %d", from, err, len(got), len(want))
		}
	}
}

// TestPartlyLost loses parts of a directory. Restored hours count once, before and after the merge of their days.
func TestPartlyLost(t *testing.T) {
	const everything = money.Amount(1)<<copiedHours - 1
	remove := func(t *testing.T, pattern string) {
		t.Helper()
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(found, err)
		}
		for _, path := range found {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	damage := func(t *testing.T, pattern string, fromEnd int) {
		t.Helper()
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		data, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)-fromEnd] ^= 1
		if err := os.WriteFile(found[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		// merged means that the loss follows the merge of the first day.
		merged bool
		lose   func(t *testing.T, directory string)
		// first is the first hour with a copy, and lost the number of lost hours with a copy.
		first, lost int
	}{
		"nothing":               {false, func(*testing.T, string) {}, 0, 0},
		"nothing of a day":      {true, func(*testing.T, string) {}, 0, 0},
		"two hours":             {false, func(t *testing.T, d string) { remove(t, d+"/hours/20261123T1[01].*") }, 0, 2},
		"all hours":             {false, func(t *testing.T, d string) { remove(t, d+"/hours/*") }, 0, 30},
		"the totals of an hour": {false, func(t *testing.T, d string) { damage(t, d+"/hours/20261123T10.*", 1) }, 0, 1},
		"the rows of an hour":   {false, func(t *testing.T, d string) { damage(t, d+"/hours/20261123T10.*", 300) }, 0, 1},
		"the hours of today":    {true, func(t *testing.T, d string) { remove(t, d+"/hours/*") }, 0, 6},
		"the sum of a day":      {true, func(t *testing.T, d string) { remove(t, d+"/sums/*") }, 0, 0},
		"the hours of a day":    {true, func(t *testing.T, d string) { remove(t, d+"/days/*") }, 12, 0},
		"the totals of a day":   {true, func(t *testing.T, d string) { damage(t, d+"/days/*", 1) }, 12, 0},
		"the rows of a day":     {true, func(t *testing.T, d string) { damage(t, d+"/days/*", 5000) }, 12, 0},
		"a day and its sum":     {true, func(t *testing.T, d string) { remove(t, d+"/days/*"); remove(t, d+"/sums/*") }, 0, 24},
		"all files": {true, func(t *testing.T, d string) {
			if err := os.RemoveAll(d); err != nil {
				t.Fatal(err)
			}
		}, 0, 30},
	} {
		t.Run(name, func(t *testing.T) {
			directory := filepath.Join(t.TempDir(), "ledger")
			s := openLeader(t, directory, 1)
			copies := copyAll(t, s, writeCopied(t, s))
			if c.merged {
				if err := s.Maintain(makeHour(copiedHours).From); err != nil {
					t.Fatal(err)
				}
			}
			c.lose(t, directory)
			next, err := Open(directory, func(string, error) {})
			if err != nil {
				t.Fatal(err)
			}
			if err := next.Lead(Leader{"next", "lease", 2}); err != nil {
				t.Fatal(err)
			}
			if n := restoreLost(t, next, copies[c.first:]); n != c.lost {
				t.Errorf("%d hours were lost, want %d", n, c.lost)
			}
			if n := restoreLost(t, next, copies[c.first:]); n != 0 {
				t.Errorf("%d hours are lost after they were restored", n)
			}
			always := ledger.Span{From: monday, Until: monday.Add(2 * day)}
			for range 2 {
				records := readAll(t, next, always)
				if sum := sumNodes(records); sum != everything {
					t.Errorf("%b, want %b", sum, everything)
				}
				if missing := FindMissing(ledger.Span{From: monday, Until: makeHour(copiedHours).From}, records); len(missing) > 0 {
					t.Errorf("missing: %v", missing)
				}
				if err := next.Maintain(makeHour(copiedHours).From); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestDamagedCopy changes each byte of a copy, and cuts it at each byte.
func TestDamagedCopy(t *testing.T) {
	s := openLeader(t, t.TempDir(), 1)
	if err := s.WriteHour(makeRecord(0, 3)); err != nil {
		t.Fatal(err)
	}
	c, found, err := s.CopyHour(monday)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	for i := range c.Data {
		changed := slices.Clone(c.Data)
		changed[i] ^= 4
		if _, err := ParseCopy(changed); err == nil {
			t.Errorf("no error after a change of byte %d", i)
		}
		if _, err := ParseCopy(c.Data[:i]); err == nil {
			t.Errorf("no error after the first %d bytes", i)
		}
	}
	if _, err := ParseCopy(append(slices.Clone(c.Data), 0)); err == nil {
		t.Error("no error with a further byte")
	}
	two, err := encode([]Record{makeRecord(0, 1), makeRecord(1, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseCopy(two); err == nil || !strings.Contains(err.Error(), "one hour") {
		t.Errorf("two hours: %v", err)
	}
}

// TestFormerLeaderCopies expects that a process that does not lead any more neither copies nor restores.
func TestFormerLeaderCopies(t *testing.T) {
	directory := t.TempDir()
	former := openLeader(t, directory, 1)
	if err := former.WriteHour(makeRecord(0, 3)); err != nil {
		t.Fatal(err)
	}
	c, _, err := former.CopyHour(monday)
	if err != nil {
		t.Fatal(err)
	}
	openLeader(t, directory, 2)
	if _, _, err := former.CopyHour(monday); !errors.Is(err, ErrFenced) {
		t.Errorf("copy: %v", err)
	}
	if err := former.Restore(c); !errors.Is(err, ErrFenced) {
		t.Errorf("restore: %v", err)
	}
}

// TestLostLeaderFile loses the file that names the leader. The next leader has a higher epoch than the journal and the
// hours that are left.
func TestLostLeaderFile(t *testing.T) {
	for name, write := range map[string]func(*Store) error{
		"a journal": func(s *Store) error { return s.ReplaceJournal([][]byte{[]byte("old")}) },
		"an hour":   func(s *Store) error { return s.WriteHour(makeRecord(0, 3)) },
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			openLeader(t, directory, 1)
			s := openLeader(t, directory, 2)
			if err := write(s); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(s.fenceFile()); err != nil {
				t.Fatal(err)
			}
			next := openLeader(t, directory, 3)
			if next.leader.Epoch != 3 {
				t.Errorf("epoch %d, want 3", next.leader.Epoch)
			}
			if err := next.ReplaceJournal([][]byte{[]byte("new")}); err != nil {
				t.Fatal(err)
			}
			entries, err := next.ReadJournal()
			if err != nil || len(entries) != 1 || string(entries[0]) != "new" {
				t.Errorf("%q %v", entries, err)
			}
		})
	}
}
