package store

import (
	"errors"
	"maps"
	"os"
	"slices"

	"croft.dev/croft/internal/cost/ledger"
)

// Selection are the rows of an answer. The zero value selects all.
type Selection struct {
	// Tenant selects the rows of one tenant. The rows without a tenant, such as idle capacity, have an empty one.
	Tenant *string
	// Totals selects totals instead of the rows of all tenants: the sum of the rows that differ only in their
	// namespace, workload, capacity type and instance type. Such a row has AnyNamespace if its rows are in
	// namespaces. Rows keep their types if their cost is unknown, and their workload if it requests nothing.
	Totals bool
}

// Reading are records whose rows are read one after the other. Close it.
type Reading struct {
	// Records have no rows. They are in the order of time.
	Records []Record
	parts   []part
	tenant  *string
	// damaged are the paths of files that are damaged where the selected rows are.
	damaged []string
	// buffer has the block whose checksum is compared.
	buffer []byte
}

// part has the rows of some records of a reading.
type part struct {
	file   *recordFile
	blocks []block
	// records are the numbers in the reading of the file's records. Those that are not in the reading have -1.
	records []int
	// Without a file, rows has the rows of the record with this number.
	rows   []ledger.Row
	number int
}

// NewReading returns a reading of records in memory.
func NewReading(records []Record) *Reading {
	r := &Reading{}
	r.Add(records...)
	return r
}

// Add adds later records, with all their rows.
func (r *Reading) Add(records ...Record) {
	for _, record := range records {
		r.parts = append(r.parts, part{rows: record.Rows, number: len(r.Records)})
		record.Rows = nil
		r.Records = append(r.Records, record)
	}
}

// Close closes the files.
func (r *Reading) Close() {
	for i := range r.parts {
		if file := r.parts[i].file; file != nil {
			file.close()
		}
	}
}

// EachRow calls visit for each row, with the number of its record. visit may change the row, and must not keep it. The
// rows are in the order of days, and have no order within a day. An error of visit ends the reading.
func (r *Reading) EachRow(visit func(record int, row *ledger.Row) error) error {
	var blocks blockReader
	for i := range r.parts {
		if err := r.readPart(&r.parts[i], &blocks, visit); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reading) readPart(p *part, blocks *blockReader, visit func(record int, row *ledger.Row) error) error {
	if p.file == nil {
		for i := range p.rows {
			row := p.rows[i]
			if err := r.visitRow(p.number, &row, visit); err != nil {
				return err
			}
		}
		return nil
	}
	for _, b := range p.blocks {
		if err := blocks.read(p.file, b, func(record int, row *ledger.Row) error {
			return r.visitRow(p.records[record], row, visit)
		}); err != nil {
			return err
		}
	}
	return nil
}

// visitRow leaves out the rows of other records and tenants in the same block.
func (r *Reading) visitRow(record int, row *ledger.Row, visit func(record int, row *ledger.Row) error) error {
	if record < 0 || r.tenant != nil && row.Tenant != *r.tenant {
		return nil
	}
	return visit(record, row)
}

// Collect returns the records with their rows, in the order of their keys. It needs memory for all of them.
func (r *Reading) Collect() ([]Record, error) {
	all := slices.Clone(r.Records)
	err := r.EachRow(func(record int, row *ledger.Row) error {
		all[record].Rows = append(all[record].Rows, *row)
		return nil
	})
	for i := range all {
		slices.SortFunc(all[i].Rows, compareRows)
	}
	return all, err
}

// Select returns the records of a period in the order of time, without overlaps: the sums of complete days, and
// the hours of other days. The first and the last record may exceed the period. A file that is damaged where the
// selected rows are has no records: its cost is unknown, and not 0.
func (s *Store) Select(period ledger.Span, selection Selection) (*Reading, error) {
	s.merging.RLock()
	defer s.merging.RUnlock()
	r := &Reading{tenant: selection.Tenant}
	if err := s.addDays(r, period, selection); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Read is like Select, for all rows, and returns them in memory.
func (s *Store) Read(period ledger.Span) ([]Record, error) {
	r, err := s.Select(period, Selection{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Collect()
}

// addDays adds the records of a period to a reading.
func (s *Store) addDays(r *Reading, period ledger.Span, selection Selection) error {
	whole := ledger.Span{From: period.From.UTC().Truncate(day), Until: period.Until.UTC().Add(day - 1).Truncate(day)}
	hours, err := s.listByDay(hoursDir, whole)
	if err != nil {
		return err
	}
	days, err := s.listByDay(daysDir, whole)
	if err != nil {
		return err
	}
	sums, err := s.listByDay(sumsDir, whole)
	if err != nil {
		return err
	}
	for from := whole.From; from.Before(period.Until); from = from.Add(day) {
		n := from.Unix()
		isWhole := !from.Before(period.From) && !from.Add(day).After(period.Until)
		if len(hours[n]) == 0 && (isWhole || len(days[n]) == 0) {
			found, err := s.addSums(r, sums[n], selection)
			if err != nil {
				return err
			}
			if found {
				continue
			}
		}
		if err := s.addHours(r, append(days[n], hours[n]...), period, selection); err != nil {
			return err
		}
	}
	return nil
}

// listByDay returns the files in a directory by the beginnings of their days, in seconds since 1970.
func (s *Store) listByDay(directory string, period ledger.Span) (map[int64][]file, error) {
	files, err := s.listFiles(directory, period)
	byDay := map[int64][]file{}
	for _, f := range files {
		n := f.period.From.Truncate(day).Unix()
		byDay[n] = append(byDay[n], f)
	}
	return byDay, err
}

// addSums adds the sums of a day from the latest of its files. It returns false if this file has none, or is damaged.
func (s *Store) addSums(r *Reading, files []file, selection Selection) (found bool, err error) {
	if len(files) == 0 {
		return false, nil
	}
	p, err := s.addFile(r, files[len(files)-1], selection)
	if err != nil || p == nil {
		return false, err
	}
	for i := range p.records {
		p.records[i] = len(r.Records)
		r.Records = append(r.Records, p.file.records[i])
	}
	return len(p.records) > 0, nil
}

// addHours adds the hours that intersect a period, in the order of time. Of several versions of one hour, the latest
// counts.
func (s *Store) addHours(r *Reading, files []file, period ledger.Span, selection Selection) error {
	type place struct {
		*Record
		part, number int
	}
	latest := map[int64]place{}
	first := len(r.parts)
	for _, f := range files {
		p, err := s.addFile(r, f, selection)
		if err != nil {
			return err
		}
		if p == nil {
			continue
		}
		for i := range p.file.records {
			record := &p.file.records[i]
			if !record.From.Before(period.Until) || !record.Until.After(period.From) {
				continue
			}
			if old, found := latest[record.From.Unix()]; !found || record.Compare(old.Version) >= 0 {
				latest[record.From.Unix()] = place{record, len(r.parts) - 1, i}
			}
		}
	}
	for _, at := range slices.SortedFunc(maps.Values(latest), func(a, b place) int { return a.From.Compare(b.From) }) {
		r.parts[at.part].records[at.number] = len(r.Records)
		r.Records = append(r.Records, *at.Record)
	}
	for i := first; i < len(r.parts); i++ {
		p := &r.parts[i]
		if !slices.ContainsFunc(p.records, func(n int) bool { return n >= 0 }) {
			p.blocks = nil // other files have later versions of all its hours
		}
	}
	return nil
}

// addFile adds a file to a reading, without its records. It returns nil for a file that has no records for the selection.
func (s *Store) addFile(r *Reading, f file, selection Selection) (*part, error) {
	onDamage := func(path string, err error) {
		r.damaged = append(r.damaged, path)
		s.onDamage(path, err)
	}
	file, err := openFile(f.path, onDamage)
	if err != nil || file == nil {
		return nil, err
	}
	blocks := file.listBlocks(selection)
	if err := file.checkBlocks(blocks, &r.buffer); err != nil {
		file.close()
		onDamage(f.path, err)
		return nil, nil
	}
	r.parts = append(r.parts, part{file: file, blocks: blocks, records: slices.Repeat([]int{-1}, len(file.records))})
	return &r.parts[len(r.parts)-1], nil
}

// openFile opens a file. It returns nil for a file with a damaged index, after a call of onDamage, and for one that was
// removed meanwhile: its records are in another file.
func openFile(path string, onDamage func(path string, err error)) (*recordFile, error) {
	opened, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	file, err := readIndex(opened)
	if err != nil {
		opened.Close()
		onDamage(path, err)
		return nil, nil
	}
	file.path = path
	return file, nil
}
