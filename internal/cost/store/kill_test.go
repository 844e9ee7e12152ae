package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
)

var errKilled = errors.New("killed")

// The workload begins in the evening of a day and ends on the next one.
const firstHour, hourCount = 21, 7

// runWorkload is the life of a process: it continues at the first hour that is not stored, writes hours of
// two days, merges days and keeps a journal. acknowledged has the hours whose write returned, and
// entries counts such entries.
func runWorkload(s *Store, acknowledged map[int]bool, entries *int) error {
	if err := s.ReplaceJournal(makeEntries(*entries)); err != nil {
		return err
	}
	last, err := s.FindLast()
	if err != nil {
		return err
	}
	first := 0
	if !last.IsZero() {
		first = int(last.Sub(makeHour(firstHour).From) / time.Hour)
	}
	for n := first; n < hourCount; n++ {
		if err := s.AppendJournal([][]byte{fmt.Appendf(nil, "%d", *entries)}); err != nil {
			return err
		}
		*entries++
		r := Record{Span: makeHour(firstHour + n), Currency: "USD", Nodes: 1 << n,
			Rows: []ledger.Row{{Key: ledger.Key{Tenant: "shop"}, Cost: money.Amount(1) << n}}}
		if err := s.WriteHour(r); err != nil {
			return err
		}
		acknowledged[n] = true
		if n == 1 { // the same hour again, as after a kill before the journal was replaced
			if err := s.WriteHour(r); err != nil {
				return err
			}
		}
		if err := s.Maintain(makeHour(firstHour + n).Until); err != nil {
			return err
		}
		if n%3 == 2 {
			if err := s.ReplaceJournal(makeEntries(*entries)); err != nil {
				return err
			}
		}
	}
	return nil
}

func makeEntries(n int) [][]byte {
	var all [][]byte
	for i := range n {
		all = append(all, fmt.Appendf(nil, "%d", i))
	}
	return all
}

// TestKill kills a process at each step of its writes, between two halves of a write, too. After each
// kill, another process finds each acknowledged hour once, and each acknowledged entry. After it has
// continued, each hour exists exactly once.
func TestKill(t *testing.T) {
	always := ledger.Span{From: monday, Until: monday.Add(72 * time.Hour)}
	everything := money.Amount(1)<<hourCount - 1
	steps := 0
	for kill := 0; ; kill++ {
		directory := t.TempDir()
		s, err := Open(directory, func(string, error) {})
		if err != nil {
			t.Fatal(err)
		}
		steps = 0
		s.OnStep = func(string) error {
			if steps++; steps > kill {
				return errKilled
			}
			return nil
		}
		acknowledged, entries := map[int]bool{}, 0
		err = s.Lead(Leader{"first", "lease", 1})
		if err == nil {
			err = runWorkload(s, acknowledged, &entries)
		}
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatalf("kill at step %d: %v", kill, err)
		}
		checkSurvivor(t, directory, kill, acknowledged, entries)
		if sum := readAll(t, openLeader(t, directory, 3), always); sumNodes(sum) != everything || sumCosts(sum) != everything {
			t.Fatalf("kill at step %d: nodes %b and rows %b", kill, sumNodes(sum), sumCosts(sum))
		}
		if err == nil {
			break // no step is left
		}
	}
	t.Logf("killed at up to %d steps", steps)
}

// checkSurvivor reads the directory of a killed process, and continues its work.
func checkSurvivor(t *testing.T, directory string, kill int, acknowledged map[int]bool, entries int) {
	t.Helper()
	s, err := Open(directory, func(file string, err error) {
		if filepath.Base(filepath.Dir(file)) != journalDir {
			t.Errorf("kill at step %d: %s: %v", kill, file, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	found := sumNodes(readAll(t, s, ledger.Span{From: monday, Until: monday.Add(72 * time.Hour)}))
	for n := range acknowledged {
		if found&(1<<n) == 0 {
			t.Fatalf("kill at step %d: hour %d is lost: %b", kill, n, found)
		}
	}
	// One more hour may be stored without an acknowledgement. A hour that counts twice would
	// carry into a further bit.
	if extra := found &^ (1<<len(acknowledged) - 1); extra != 0 && extra != 1<<len(acknowledged) {
		t.Fatalf("kill at step %d: %b after %d hours", kill, found, len(acknowledged))
	}
	journal, err := s.ReadJournal()
	if err != nil {
		t.Fatal(err)
	}
	if len(journal) < entries || len(journal) > entries+1 {
		t.Fatalf("kill at step %d: the journal has %d entries, want %d", kill, len(journal), entries)
	}
	for i, entry := range journal {
		if string(entry) != fmt.Sprint(i) {
			t.Fatalf("kill at step %d: entry %d is %q", kill, i, entry)
		}
	}
	if err := s.Lead(Leader{"second", "lease", 2}); err != nil {
		t.Fatal(err)
	}
	entries = len(journal)
	if err := runWorkload(s, acknowledged, &entries); err != nil {
		t.Fatalf("kill at step %d: %v", kill, err)
	}
}

func sumCosts(records []Record) (sum money.Amount) {
	for i := range records {
		for j := range records[i].Rows {
			sum += records[i].Rows[j].Cost
		}
	}
	return sum
}

// TestTornJournal cuts a journal at each byte. All complete entries are read, and new entries do not
// follow the torn one.
func TestTornJournal(t *testing.T) {
	directory := t.TempDir()
	s := openLeader(t, directory, 1)
	if err := s.ReplaceJournal(makeEntries(3)); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendJournal([][]byte{[]byte("3")}); err != nil {
		t.Fatal(err)
	}
	names, err := s.listJournals()
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	for length := range len(data) {
		if err := os.WriteFile(names[0], data[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		reports := 0
		reader, err := Open(directory, func(string, error) { reports++ })
		if err != nil {
			t.Fatal(err)
		}
		entries, err := reader.ReadJournal()
		if err != nil {
			t.Fatal(err)
		}
		body := length - len(journalMagic)
		if want := max(body/(frameHeader+1), 0); len(entries) != want || (reports == 0) != (body >= 0 && body%(frameHeader+1) == 0) {
			t.Fatalf("%d of %d bytes: %d entries, want %d, and %d reports", length, len(data), len(entries), want, reports)
		}
	}
	s.OnStep = func(step string) error {
		if step == "write" {
			return errKilled
		}
		return nil
	}
	if err := s.AppendJournal(makeEntries(1)); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	s.OnStep = func(string) error { return nil }
	if err := s.AppendJournal(makeEntries(1)); !errors.Is(err, errNoJournal) {
		t.Errorf("entries may follow a torn one: %v", err)
	}
}
