package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
)

// monday is the first hour of these tests.
var monday = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

func makeHour(n int) ledger.Span {
	from := monday.Add(time.Duration(n) * time.Hour)
	return ledger.Span{From: from, Until: from.Add(time.Hour)}
}

// makeRecord returns a record of an hour with random rows in the order of their keys.
func makeRecord(n int, seed uint64) Record {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test repeats its numbers
	record := Record{Span: makeHour(n), Currency: "USD", Nodes: money.Amount(r.Int64N(1 << 40)), Volumes: 7, LoadBalancers: -1}
	if r.IntN(3) == 0 {
		record.Gaps = []ledger.Span{{From: record.From, Until: record.From.Add(time.Minute)}}
		record.Exclusive = []Exclusive{{"apps", "shop"}}
	}
	for i := range r.IntN(20) {
		if r.IntN(2) == 0 {
			continue
		}
		row := ledger.Row{Key: ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource, Pool: "apps",
			Tenant: fmt.Sprintf("t-%02d", i), Namespace: "ns", Workload: fmt.Sprintf("Deployment/%02d", i), PriceSource: "list"}}
		setValues(&row, [valueCount]int64{r.Int64N(9), r.Int64(), -r.Int64(), r.Int64N(1000), 0, 5, r.Int64N(3600), r.Int64(),
			r.Int64N(1 << hourPrecision), r.Int64N(1<<hourPrecision) << 20, r.Int64N(7200), r.Int64N(2) * 60})
		record.Rows = append(record.Rows, row)
	}
	return record
}

// openLeader opens a store and leads it. Damage fails the test.
func openLeader(t *testing.T, directory string, transitions int64) *Store {
	t.Helper()
	s, err := Open(directory, func(file string, err error) { t.Errorf("%s: %v", file, err) })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Lead(Leader{fmt.Sprintf("pod-%d", transitions), "lease", transitions}); err != nil {
		t.Fatal(err)
	}
	return s
}

func readAll(t *testing.T, s *Store, period ledger.Span) []Record {
	t.Helper()
	records, err := s.Read(period)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// sumNodes returns the sum of the nodes of records: each hour of these tests has its own power of two.
func sumNodes(records []Record) (sum money.Amount) {
	for i := range records {
		sum += records[i].Nodes
	}
	return sum
}

// TestEncode reads random records as they were written.
func TestEncode(t *testing.T) {
	for seed := range uint64(300) {
		var records []Record
		for n := range int(seed % 5) {
			r := makeRecord(n, seed*10+uint64(n)) //nolint:gosec // small numbers
			r.Version, r.Holder = Version{seed, 3}, "pod-1"
			records = append(records, r)
		}
		data, err := encode(records)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeFile(data)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !equalRecords(got, records) {
			t.Fatalf("seed %d: %+v, want %+v", seed, got, records)
		}
	}
	twice := makeRecord(0, 1)
	twice.Rows = append(twice.Rows, twice.Rows[0])
	if _, err := encode([]Record{twice}); err == nil {
		t.Error("two rows with the same key are no error")
	}
}

// equalRecords compares records. An empty list is equal to a missing one.
func equalRecords(a, b []Record) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if len(x.Rows) == 0 && len(y.Rows) == 0 {
			x.Rows, y.Rows = nil, nil
		}
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// decodeFile returns the records of a file with all their rows.
func decodeFile(data []byte) ([]Record, error) {
	file, err := readIndex(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	p := part{file: file, blocks: file.rows}
	for i := range file.records {
		p.records = append(p.records, i)
	}
	return (&Reading{Records: file.records, parts: []part{p}}).Collect()
}

// TestReplace expects the last write of an hour only, also after it is part of a day.
func TestReplace(t *testing.T) {
	s := openLeader(t, t.TempDir(), 1)
	for _, nodes := range []money.Amount{1, 2, 4} {
		if err := s.WriteHour(Record{Span: makeHour(3), Currency: "USD", Nodes: nodes}); err != nil {
			t.Fatal(err)
		}
	}
	if records := readAll(t, s, makeHour(3)); len(records) != 1 || records[0].Nodes != 4 {
		t.Errorf("%+v", records)
	}
	tuesday := monday.Add(day)
	if err := s.Maintain(tuesday); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteHour(Record{Span: makeHour(3), Currency: "USD", Nodes: 8}); err != nil {
		t.Fatal(err)
	}
	whole := ledger.Span{From: monday, Until: tuesday}
	for range 2 {
		if records := readAll(t, s, whole); sumNodes(records) != 8 {
			t.Errorf("%+v", records)
		}
		if err := s.Maintain(tuesday); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDays expects the sums of a complete day, its hours for a part of it, and the times without records.
func TestDays(t *testing.T) {
	s := openLeader(t, t.TempDir(), 1)
	row := ledger.Row{Key: ledger.Key{Kind: ledger.Tenant, Tenant: "shop"}, Cost: 3, CPU: 5}
	for n := 2; n < 30; n++ {
		r := Record{Span: makeHour(n), Currency: "USD", Nodes: 3, Rows: []ledger.Row{row}, Exclusive: []Exclusive{{"jobs", "shop"}}}
		if n == 4 {
			r.Currency = "EUR"
		}
		if n != 5 {
			r.Exclusive = append(r.Exclusive, Exclusive{"apps", "shop"})
		}
		if err := s.WriteHour(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Maintain(monday.Add(30 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	records := readAll(t, s, ledger.Span{From: monday, Until: monday.Add(26 * time.Hour)})
	if len(records) != 4 || records[0].Currency != "EUR" || records[1].Nodes != 63 || records[1].Rows[0].Cost != 63 ||
		records[1].Rows[0].CPU != 105 || records[2].From != makeHour(24).From {
		t.Errorf("%+v", records)
	}
	if !reflect.DeepEqual(records[1].Exclusive, []Exclusive{{"jobs", "shop"}}) {
		t.Errorf("exclusive in all hours: %v", records[1].Exclusive)
	}
	if missing := FindMissing(ledger.Span{From: monday, Until: monday.Add(27 * time.Hour)}, records); !reflect.DeepEqual(missing,
		[]ledger.Span{{From: monday, Until: monday.Add(2 * time.Hour)}, makeHour(26)}) {
		t.Errorf("missing: %v", missing)
	}
	if records := readAll(t, s, ledger.Span{From: makeHour(3).From.Add(time.Minute), Until: makeHour(6).From}); len(records) != 3 {
		t.Errorf("a part of a day: %+v", records)
	}
	if last, err := s.FindLast(); err != nil || !last.Equal(makeHour(29).Until) {
		t.Errorf("the last hour ends at %s: %v", last, err)
	}
}

// TestRetention expects old hours to be deleted, and their sums to stay.
func TestRetention(t *testing.T) {
	s := openLeader(t, t.TempDir(), 1)
	if err := s.WriteHour(Record{Span: makeHour(1), Currency: "USD", Nodes: 5}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		age  time.Duration
		want money.Amount
	}{{day, 5}, {hourRetention + 2*day, 5}, {dayRetention + 2*day, 0}} {
		if err := s.Maintain(monday.Add(c.age)); err != nil {
			t.Fatal(err)
		}
		if got := sumNodes(readAll(t, s, makeHour(1))); got != c.want {
			t.Errorf("after %s: %d, want %d", c.age, got, c.want)
		}
	}
}

// TestTwoLeaders expects that a former leader writes nothing that counts.
func TestTwoLeaders(t *testing.T) {
	directory := t.TempDir()
	former := openLeader(t, directory, 1)
	if err := former.WriteHour(Record{Span: makeHour(1), Nodes: 1}); err != nil {
		t.Fatal(err)
	}
	if err := former.ReplaceJournal(nil); err != nil {
		t.Fatal(err)
	}
	later := openLeader(t, directory, 2)
	if err := later.WriteHour(Record{Span: makeHour(1), Nodes: 2}); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"an hour": former.WriteHour(Record{Span: makeHour(1), Nodes: 4}), "a day": former.Maintain(monday.Add(day)),
		"entries": former.AppendJournal([][]byte{{1}}), "a journal": former.ReplaceJournal(nil),
		"leading": former.Lead(Leader{"pod-1", "lease", 1}),
	} {
		if !errors.Is(err, ErrFenced) {
			t.Errorf("the former leader writes %s: %v", name, err)
		}
	}
	// It may have passed the check before the other began to lead.
	data, err := encode([]Record{{Span: makeHour(1), Nodes: 8, Version: Version{1, 9}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, hoursDir, "20261123T01.000000000001"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := sumNodes(readAll(t, later, makeHour(1))); got != 2 {
			t.Errorf("%d, want 2", got)
		}
		if err := later.Maintain(monday.Add(day)); err != nil {
			t.Fatal(err)
		}
	}
	// A new lease begins to count again.
	if err := former.Lead(Leader{"pod-3", "another lease", 0}); err != nil {
		t.Error(err)
	}
}

// TestMergeKeepsDamaged expects a merge to keep damaged files of hours and of the day, and to use the intact ones.
func TestMergeKeepsDamaged(t *testing.T) {
	directory := t.TempDir()
	s := openLeader(t, directory, 1)
	reports := 0
	s.onDamage = func(string, error) { reports++ }
	merge := func(damaged string, nodes money.Amount) {
		t.Helper()
		path := filepath.Join(directory, damaged)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(magic)+frameHeader+4] ^= 1
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Maintain(monday.Add(day)); err != nil {
			t.Fatal(err)
		}
		if kept, err := os.ReadFile(path + damagedSuffix); err != nil || !bytes.Equal(kept, data) {
			t.Errorf("%s: %d of %d bytes are left: %v", damaged, len(kept), len(data), err)
		}
		if reports == 0 {
			t.Errorf("%s: no report", damaged)
		}
		reports = 0
		if got := sumNodes(readAll(t, s, ledger.Span{From: monday, Until: monday.Add(day)})); got != nodes || reports > 0 {
			t.Errorf("%s: after the merge %d, want %d; %d reports", damaged, got, nodes, reports)
		}
	}
	write := func(hour int, nodes money.Amount) {
		t.Helper()
		if err := s.WriteHour(Record{Span: makeHour(hour), Nodes: nodes}); err != nil {
			t.Fatal(err)
		}
	}
	write(1, 1)
	write(2, 2)
	merge("hours/20261123T01.000000000001", 2)
	write(3, 4)
	merge("days/20261123.000000000001", 4)
}

// TestLeadRefusesOtherVersion expects that a process does not lead a store with files of another version of croft,
// since a merge would remove them.
func TestLeadRefusesOtherVersion(t *testing.T) {
	for _, name := range []string{"hours/20261123T01.000000000001", "days/20261123.000000000001", "sums/20261123.000000000001"} {
		directory := t.TempDir()
		reports := 0
		s, err := Open(directory, func(string, error) { reports++ })
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte("croft cost 2\nrecords"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Lead(Leader{"pod-1", "lease", 1}); !errors.Is(err, errOtherForm) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if records := readAll(t, s, ledger.Span{From: monday, Until: monday.Add(day)}); len(records) > 0 || reports == 0 {
			t.Errorf("%s: %d records, %d reports", name, len(records), reports)
		}
		// A damaged file is no other form.
		for _, start := range []string{"croft", magicName, magic[:len(magic)-1]} {
			if err := os.WriteFile(path, []byte(start), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := s.Lead(Leader{"pod-1", "lease", 1}); err != nil {
				t.Errorf("%s with %q: %v", name, start, err)
			}
		}
	}
}
