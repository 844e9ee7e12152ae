package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/test/sandbox"
)

// makeRows returns random rows of some tenants and of the platform, with all kinds of rows. No two have the same key.
func makeRows(r *rand.Rand, tenants, workloads int) []ledger.Row {
	byKey := map[ledger.Key]ledger.Row{}
	pick := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	for range r.IntN(tenants*workloads + 1) {
		tenant := fmt.Sprintf("t-%03d", r.IntN(tenants))
		key := ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource, Pool: pick("apps", "jobs"), CapacityType: pick("spot", "on-demand"),
			InstanceType: pick("", "m5.large", "c5.large"), Tenant: tenant, CostCode: pick("", "org-1", "org-2"), Namespace: tenant + pick("-a", "-b"),
			Workload: fmt.Sprintf("Deployment/%d", r.IntN(workloads)), PriceSource: pick("list", "prices.yaml")}
		switch r.IntN(8) {
		case 0:
			key = ledger.Key{Kind: pickKind(r), Resource: ledger.NodeResource, Pool: key.Pool, InstanceType: key.InstanceType}
		case 1:
			key.Kind, key.Tenant, key.Namespace = ledger.Platform, "", "kube-system"
		case 2:
			key.Resource, key.Pool, key.CapacityType = ledger.VolumeResource, "", ""
		}
		row := ledger.Row{Key: key}
		setValues(&row, [valueCount]int64{r.Int64N(3) * 3_600_000, r.Int64N(2) * 3_600_000, r.Int64N(1 << 30), r.Int64N(1 << 20), r.Int64N(9), r.Int64N(2),
			max(r.Int64N(4000)-3600, 0), r.Int64N(1 << 50), 0, 0, r.Int64N(1 << 20), r.Int64N(3)})
		if r.IntN(2) == 0 {
			row.Weight = predictWeight(&row)
		}
		byKey[key] = row
	}
	return slices.SortedFunc(maps.Values(byKey), compareRows)
}

func pickKind(r *rand.Rand) ledger.Kind {
	return []ledger.Kind{ledger.Idle, ledger.Unallocated}[r.IntN(2)]
}

// figures are sums of rows, by the texts of the groups that totals keep.
type figures map[string][valueCount]int64

func (f figures) addRow(at time.Time, currency string, row *ledger.Row) {
	key := fmt.Sprint(at.UTC().Truncate(day).Format(dayForm), currency, row.Kind, row.Resource, row.Pool, row.Tenant, row.CostCode, row.PriceSource)
	sum, values := f[key], listValues(row)
	for i := range values {
		sum[i] += values[i]
	}
	f[key] = sum
}

// sumSelected adds up the answer to a selection, and the cost of nodes of its records.
func sumSelected(t *testing.T, s *Store, period ledger.Span, selection Selection) (figures, money.Amount) {
	t.Helper()
	r, err := s.Select(period, selection)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sums := figures{}
	err = r.EachRow(func(record int, row *ledger.Row) error {
		sums.addRow(r.Records[record].From, r.Records[record].Currency, row)
		*row = ledger.Row{} // visitors may change it
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums, sumNodes(r.Records)
}

// sumPlain adds up all rows of the hours of a period, one by one.
func sumPlain(hours map[int]Record, period ledger.Span, selection Selection) (figures, money.Amount) {
	sums, nodes := figures{}, money.Amount(0)
	for _, h := range hours {
		if !h.From.Before(period.Until) || !h.Until.After(period.From) {
			continue
		}
		nodes += h.Nodes
		for i := range h.Rows {
			if selection.Tenant == nil || h.Rows[i].Tenant == *selection.Tenant {
				sums.addRow(h.From, h.Currency, &h.Rows[i])
			}
		}
	}
	return sums, nodes
}

// TestSelectExactly compares the sums of random selections, after random writes, merges and changes of the leader, with the
// sums of all rows that were written, to the unit.
func TestSelectExactly(t *testing.T) {
	seeds := uint64(8)
	if sandbox.All() {
		seeds = 25
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a test repeats its numbers
		directory := t.TempDir()
		s := openLeader(t, directory, 1)
		hours := map[int]Record{}
		tenants, workloads := 1+r.IntN(60), 1+r.IntN(12)
		for n := range 60 {
			for range []int{0, 1, 1, 1, 1, 2}[r.IntN(6)] {
				h := Record{Span: makeHour(n), Currency: []string{"USD", "USD", "EUR"}[r.IntN(3)], Nodes: money.Amount(r.Int64N(1 << 40)), Rows: makeRows(r, tenants, workloads)}
				if err := s.WriteHour(h); err != nil {
					t.Fatal(err)
				}
				hours[n] = h
			}
			switch r.IntN(12) {
			case 0:
				s = openLeader(t, directory, int64(n)+2)
			case 1, 2:
				if err := s.Maintain(makeHour(n).Until); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 25 {
			from := monday.Add(time.Duration(r.IntN(60*60)) * time.Minute)
			period := ledger.Span{From: from, Until: from.Add(time.Duration(r.IntN(60*60)) * time.Minute)}
			tenant := fmt.Sprintf("t-%03d", r.IntN(tenants+1))
			selection := []Selection{{}, {Totals: true}, {Tenant: &tenant}, {Tenant: new(string)}}[r.IntN(4)]
			got, nodes := sumSelected(t, s, period, selection)
			want, wantNodes := sumPlain(hours, period, selection)
			if !maps.Equal(got, want) || nodes != wantNodes {
				t.Fatalf("seed %d, %+v of %s until %s: %v with nodes of %d, want %v with %d", seed, selection, period.From, period.Until, got, nodes, want, wantNodes)
			}
		}
	}
}

// TestTotals expects one total for the workloads of a tenant, and that the workloads that reports name stay.
func TestTotals(t *testing.T) {
	key := ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource, Pool: "apps", CapacityType: "spot", InstanceType: "m5.large", Tenant: "shop",
		Namespace: "shop-dev", Workload: "Deployment/web"}
	with := func(change func(*ledger.Row)) ledger.Row {
		row := ledger.Row{Key: key, CPU: 10, Cost: 1}
		change(&row)
		return row
	}
	total := key
	total.Namespace, total.Workload, total.CapacityType, total.InstanceType = AnyNamespace, "", "", ""
	for name, c := range map[string]struct {
		rows []ledger.Row
		want []ledger.Row
	}{
		"workloads, namespaces and types": {
			rows: []ledger.Row{with(func(*ledger.Row) {}), with(func(r *ledger.Row) { r.Workload = "Job/a" }), with(func(r *ledger.Row) { r.Namespace = "shop-prod" }),
				with(func(r *ledger.Row) { r.InstanceType = "c5.large" }), with(func(r *ledger.Row) { r.CapacityType = "on-demand" })},
			want: []ledger.Row{{Key: total, CPU: 50, Cost: 5}},
		},
		"another pool": {
			rows: []ledger.Row{with(func(*ledger.Row) {}), with(func(r *ledger.Row) { r.Pool = "jobs" })},
			want: []ledger.Row{{Key: total, CPU: 10, Cost: 1}, with(func(r *ledger.Row) { r.Key = total; r.Pool = "jobs" })},
		},
		"no price": {
			rows: []ledger.Row{with(func(*ledger.Row) {}), with(func(r *ledger.Row) { r.Unpriced = 3600; r.Cost = 0 })},
			want: []ledger.Row{{Key: total, CPU: 10, Cost: 1},
				with(func(r *ledger.Row) { r.Unpriced = 3600; r.Cost = 0; r.Namespace, r.Workload = AnyNamespace, "" })},
		},
		"no requests": {
			rows: []ledger.Row{with(func(*ledger.Row) {}), with(func(r *ledger.Row) { r.CPU = 0; r.Cost = 0 })},
			want: []ledger.Row{{Key: total, CPU: 10, Cost: 1}, with(func(r *ledger.Row) { r.CPU = 0; r.Cost = 0; r.CapacityType, r.InstanceType = "", "" })},
		},
		"no namespace": {
			rows: []ledger.Row{{Key: ledger.Key{Kind: ledger.Idle, Resource: ledger.NodeResource, Pool: "apps", InstanceType: "m5.large"}, Cost: 4}},
			want: []ledger.Row{{Key: ledger.Key{Kind: ledger.Idle, Resource: ledger.NodeResource, Pool: "apps"}, Cost: 4}},
		},
	} {
		if got := sumRows(makeTotalKey, c.rows); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// makeManyHours writes the hours of Monday and of two hours of Tuesday, with more tenants than a block has, and merges
// Monday. t-050 has no rows.
func makeManyHours(t *testing.T, directory string) map[int]Record {
	t.Helper()
	s := openLeader(t, directory, 1)
	hours := map[int]Record{}
	for n := range 26 {
		h := Record{Span: makeHour(n), Currency: "USD", Nodes: money.Amount(n)}
		for i := range 100 {
			for w := range 5 {
				if i != 50 {
					tenant := fmt.Sprintf("t-%03d", i)
					h.Rows = append(h.Rows, ledger.Row{Key: ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource, Tenant: tenant, Namespace: tenant,
						Workload: fmt.Sprint("Deployment/", w)}, CPU: 1, Cost: money.Amount(n*1000 + i)})
				}
			}
		}
		if err := s.WriteHour(h); err != nil {
			t.Fatal(err)
		}
		hours[n] = h
	}
	if err := s.Maintain(makeHour(25).Until); err != nil {
		t.Fatal(err)
	}
	return hours
}

// TestSelect reads tenants, totals and all rows of a day and of hours, with intact files and with damaged ones. A file that is
// damaged where the selected rows are has no records, so that reports name its time.
func TestSelect(t *testing.T) {
	const hour, dayOfHours, sum = "hours/20261124T01.000000000001", "days/20261123.000000000001", "sums/20261123.000000000001"
	two := ledger.Span{From: monday, Until: makeHour(25).Until}
	part := ledger.Span{From: makeHour(1).From, Until: makeHour(25).Until}
	// Each figure is in the last block of one kind, or in the index.
	cutLast := func(blocks func(*recordFile) []block) func(t *testing.T, data []byte) []byte {
		return func(t *testing.T, data []byte) []byte {
			t.Helper()
			file, err := readIndex(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			all := blocks(file)
			if len(all) < 2 && len(file.rows) < 2 {
				t.Fatalf("%d blocks", len(all))
			}
			last := all[len(all)-1]
			data[last.offset+int64(last.length)-1] ^= 1
			return data
		}
	}
	lastRows := cutLast(func(f *recordFile) []block { return f.rows })
	lastTotals := cutLast(func(f *recordFile) []block { return f.totals })
	index := func(_ *testing.T, data []byte) []byte { data[len(magic)+frameHeader+4] ^= 1; return data }
	noIndex := func(_ *testing.T, data []byte) []byte { return data[:len(magic)] }
	empty := func(*testing.T, []byte) []byte { return nil }
	for name, c := range map[string]struct {
		damaged string
		damage  func(*testing.T, []byte) []byte
		period  ledger.Span
		tenant  string
		totals  bool
		// lost are the hours without a record, and records the number of records.
		lost    []int
		records int
		reports bool
	}{
		"one tenant":                            {period: two, tenant: "t-001", records: 3},
		"the last tenant":                       {period: two, tenant: "t-099", records: 3},
		"an absent tenant":                      {period: two, tenant: "t-050", records: 3},
		"an absent tenant after all others":     {period: two, tenant: "z", records: 3},
		"no tenant":                             {period: two, tenant: "", records: 3},
		"all tenants":                           {period: two, tenant: "*", records: 3},
		"all tenants, as totals":                {period: two, tenant: "*", totals: true, records: 3},
		"one tenant, a part of a day":           {period: part, tenant: "t-001", records: 25},
		"all tenants, a part of a day":          {period: part, tenant: "*", records: 25},
		"totals, a part of a day":               {period: part, tenant: "*", totals: true, records: 25},
		"another tenant's block is damaged":     {damaged: hour, damage: lastRows, period: two, tenant: "t-001", records: 3},
		"the tenant's block is damaged":         {damaged: hour, damage: lastRows, period: two, tenant: "t-099", records: 2, lost: []int{25}, reports: true},
		"a block is damaged":                    {damaged: hour, damage: lastRows, period: two, tenant: "*", records: 2, lost: []int{25}, reports: true},
		"totals of intact blocks":               {damaged: hour, damage: lastRows, period: two, tenant: "*", totals: true, records: 3},
		"damaged totals":                        {damaged: hour, damage: lastTotals, period: two, tenant: "*", totals: true, records: 2, lost: []int{25}, reports: true},
		"one tenant and damaged totals":         {damaged: hour, damage: lastTotals, period: two, tenant: "t-001", records: 3},
		"a damaged index":                       {damaged: hour, damage: index, period: two, tenant: "t-001", records: 2, lost: []int{25}, reports: true},
		"no index":                              {damaged: hour, damage: noIndex, period: two, tenant: "*", records: 2, lost: []int{25}, reports: true},
		"an empty file":                         {damaged: hour, damage: empty, period: two, tenant: "*", totals: true, records: 2, lost: []int{25}, reports: true},
		"hours replace a damaged sum":           {damaged: sum, damage: index, period: two, tenant: "t-001", records: 26, reports: true},
		"hours replace damaged totals of a sum": {damaged: sum, damage: lastTotals, period: two, tenant: "*", totals: true, records: 26, reports: true},
		"a sum does not need a damaged day":     {damaged: dayOfHours, damage: noIndex, period: two, tenant: "t-001", records: 3},
		"a day without an index": {damaged: dayOfHours, damage: noIndex, period: part, tenant: "t-001", records: 2, reports: true,
			lost: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
	} {
		directory := t.TempDir()
		hours := makeManyHours(t, directory)
		if c.damaged != "" {
			path := filepath.Join(directory, c.damaged)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, c.damage(t, data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		reports := 0
		s, err := Open(directory, func(string, error) { reports++ })
		if err != nil {
			t.Fatal(err)
		}
		selection := Selection{Tenant: &c.tenant, Totals: c.totals}
		if c.tenant == "*" {
			selection.Tenant = nil
		}
		r, err := s.Select(c.period, selection)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		for _, n := range c.lost {
			delete(hours, n)
		}
		got, nodes := sumSelected(t, s, c.period, selection)
		want, wantNodes := sumPlain(hours, c.period, selection)
		if !maps.Equal(got, want) || nodes != wantNodes || len(r.Records) != c.records || reports > 0 != c.reports {
			t.Errorf("%s: %d sums of %d records with nodes of %d, want %d of %d with %d; %d reports", name, len(got), len(r.Records), nodes, len(want), c.records,
				wantNodes, reports)
		}
		var missing time.Duration
		for _, m := range FindMissing(c.period, r.Records) {
			missing += m.Until.Sub(m.From)
		}
		if missing != time.Duration(len(c.lost))*time.Hour {
			t.Errorf("%s: %s are missing, want %d hours", name, missing, len(c.lost))
		}
	}
}

// TestDamaged cuts a file at each byte, changes each byte, and fills the end with zeros, as file systems may. Each answer is
// then the same as before, or has no record, and a report.
func TestDamaged(t *testing.T) {
	records := []Record{makeRecord(0, 1), makeRecord(1, 2), makeRecord(2, 3)}
	intact, err := encode(records)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	reports := 0
	s, err := Open(directory, func(string, error) { reports++ })
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(directory, daysDir, "20261123.000000000001")
	whole := ledger.Span{From: monday, Until: monday.Add(day)}
	tenant := records[0].Rows[0].Tenant
	selections := []Selection{{}, {Totals: true}, {Tenant: &tenant}}
	if err := os.WriteFile(path, intact, 0o600); err != nil {
		t.Fatal(err)
	}
	var want []figures
	for _, selection := range selections {
		sums, _ := sumSelected(t, s, whole, selection)
		want = append(want, sums)
	}
	if len(want[0]) < 2 || reports > 0 {
		t.Fatalf("%d sums, %d reports", len(want[0]), reports)
	}
	lost := 0
	for at := range intact {
		if !sandbox.All() && at%4 != 0 {
			continue
		}
		changed := slices.Clone(intact)
		changed[at] ^= 1 << (at / 4 % 8)
		for name, data := range map[string][]byte{"cut": intact[:at], "changed": changed, "zeros": append(slices.Clone(intact[:at]), make([]byte, 64)...)} {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			for i, selection := range selections {
				reports = 0
				got, nodes := sumSelected(t, s, whole, selection)
				if reports == 0 && !maps.Equal(got, want[i]) || reports > 0 && (len(got) > 0 || nodes != 0) {
					t.Fatalf("%s at byte %d of %d, %+v: %v, want %v or nothing; %d reports", name, at, len(intact), selection, got, want[i], reports)
				}
				lost += reports
			}
		}
	}
	if lost == 0 {
		t.Error("nothing was damaged")
	}
}

// TestReadingStays expects a reading to have the same rows after a merge has removed its files.
func TestReadingStays(t *testing.T) {
	s := openLeader(t, t.TempDir(), 1)
	for n := range 3 {
		if err := s.WriteHour(makeRecord(n, uint64(n+1))); err != nil { //nolint:gosec // small numbers
			t.Fatal(err)
		}
	}
	r, err := s.Select(ledger.Span{From: monday, Until: monday.Add(day)}, Selection{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	before, err := r.Collect()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Maintain(monday.Add(day)); err != nil {
		t.Fatal(err)
	}
	after, err := r.Collect()
	if err != nil || len(before) != 3 || !equalRecords(before, after) {
		t.Errorf("%v: %+v, want %+v", err, after, before)
	}
	end := errors.New("enough")
	if err := r.EachRow(func(int, *ledger.Row) error { return end }); !errors.Is(err, end) {
		t.Errorf("the error of a visitor: %v", err)
	}
}

// TestBlocks expects many tenants in blocks that are in order, each tenant in one of them.
func TestBlocks(t *testing.T) {
	directory := t.TempDir()
	makeManyHours(t, directory)
	for _, name := range []string{"hours/20261124T01.000000000001", "days/20261123.000000000001", "sums/20261123.000000000001"} {
		data, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			t.Fatal(err)
		}
		file, err := readIndex(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		// 99 tenants with five rows each.
		if len(file.rows) != 3 || len(file.totals) != 1 {
			t.Errorf("%s: %d blocks of rows and %d of totals", name, len(file.rows), len(file.totals))
		}
		blockOf := map[string]string{}
		for _, b := range file.rows {
			err := new(blockReader).read(file, b, func(_ int, row *ledger.Row) error {
				if last, found := blockOf[row.Tenant]; found && last != b.last || strings.Compare(row.Tenant, b.last) > 0 {
					t.Errorf("%s: %s is in the blocks until %s and until %s", name, row.Tenant, last, b.last)
				}
				blockOf[row.Tenant] = b.last
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if end := file.totals[0].offset + int64(file.totals[0].length); end != int64(len(data)) {
			t.Errorf("%s: the last block ends at %d of %d bytes", name, end, len(data))
		}
	}
}
