package store

import (
	"slices"
	"strings"
	"time"

	"croft.dev/croft/internal/cost/ledger"
)

const day = 24 * time.Hour

// always is a period with all records.
var always = ledger.Span{Until: time.Unix(1<<40, 0)}

// FindLast returns the end of the last stored hour, or the zero time.
func (s *Store) FindLast() (time.Time, error) {
	var last time.Time
	hours, err := s.listFiles(hoursDir, always)
	if err != nil {
		return last, err
	}
	for _, f := range hours {
		last = f.period.Until
	}
	days, err := s.listFiles(daysDir, always)
	if err != nil {
		return last, err
	}
	// A day's file may lack its last hours.
	for _, f := range slices.Backward(days) {
		file, err := openFile(f.path, s.onDamage)
		if err != nil {
			return last, err
		}
		if file == nil {
			continue
		}
		file.close()
		if n := len(file.records); n > 0 {
			if until := file.records[n-1].Until; until.After(last) {
				last = until
			}
			break
		}
	}
	return last, nil
}

// Maintain merges the hours of days that ended before now into one file for each day, and deletes files
// that are too old. It can be repeated after a kill at any point.
func (s *Store) Maintain(now time.Time) error {
	s.merging.Lock()
	defer s.merging.Unlock()
	if err := s.checkFence(); err != nil {
		return err
	}
	hours, err := s.listFiles(hoursDir, ledger.Span{Until: now.UTC().Truncate(day)})
	if err != nil {
		return err
	}
	for len(hours) > 0 {
		from := hours[0].period.From.Truncate(day)
		end := slices.IndexFunc(hours, func(f file) bool { return f.period.From.Sub(from) >= day })
		if end < 0 {
			end = len(hours)
		}
		if err := s.mergeDay(ledger.Span{From: from, Until: from.Add(day)}, hours[:end]); err != nil {
			return err
		}
		hours = hours[end:]
	}
	return s.removeOld(now)
}

// mergeDay writes the file of a day and the file of its sum, and then removes the files that these
// replace. A damaged file stays under another name: its intact rows are in no other file.
func (s *Store) mergeDay(of ledger.Span, hours []file) error {
	days, err := s.listFiles(daysDir, of)
	if err != nil {
		return err
	}
	r := &Reading{}
	defer r.Close()
	if err := s.addHours(r, append(slices.Clone(days), hours...), of, Selection{}); err != nil {
		return err
	}
	if err := s.renameFiles(r.damaged, damagedSuffix); err != nil {
		return err
	}
	sums, records, err := mergeHours(of, r)
	if err != nil {
		return err
	}
	name := of.From.Format(dayForm)
	replaced := slices.Clone(hours)
	for _, target := range []struct {
		directory string
		data      []byte
	}{{sumsDir, sums}, {daysDir, records}} {
		before, err := s.listFiles(target.directory, of)
		if err != nil {
			return err
		}
		path := s.nameFile(target.directory, name, s.leader.Epoch)
		if err := s.writeFile(path, target.data); err != nil {
			return err
		}
		replaced = append(replaced, slices.DeleteFunc(before, func(f file) bool { return f.path == path })...)
	}
	// A later leader may have written an hour of this day meanwhile.
	if err := s.checkFence(); err != nil {
		return err
	}
	return s.removeFiles(listPaths(replaced))
}

// mergeHours returns the file of a day's sums, and the file of its hours. The rows of one tenant after the other are in
// memory.
func mergeHours(of ledger.Span, r *Reading) (sums, hours []byte, err error) {
	records, sumOf := sumHours(of, r.Records)
	sumWriter, hourWriter := newFileWriter(records), newFileWriter(r.Records)
	tenants := newTenantReaders(r)
	for {
		tenant, rows, err := nextTenant(tenants, len(r.Records))
		if err != nil {
			return nil, nil, err
		}
		if rows == nil {
			break
		}
		byDay := make([][]ledger.Row, len(records))
		for n := range byDay {
			var lists [][]ledger.Row
			for i := range rows {
				if sumOf[i] == n {
					lists = append(lists, rows[i])
				}
			}
			byDay[n] = sumRows(getKey, lists...)
		}
		if err := sumWriter.addTenant(tenant, byDay); err != nil {
			return nil, nil, err
		}
		if err := hourWriter.addTenant(tenant, rows); err != nil {
			return nil, nil, err
		}
	}
	if sums, err = sumWriter.finish(); err != nil {
		return nil, nil, err
	}
	hours, err = hourWriter.finish()
	return sums, hours, err
}

// tenantReader reads the rows of a file's tenants in the order of their names. One block is in memory.
type tenantReader struct {
	part   *part
	reader blockReader
	// next is the number of the next block. rows are the rest of the present one.
	next int
	rows []numberedRow
	// buffer has the memory of rows.
	buffer []numberedRow
}

// numberedRow is a row with the number of its record in the reading.
type numberedRow struct {
	record int
	row    ledger.Row
}

func newTenantReaders(r *Reading) []*tenantReader {
	readers := make([]*tenantReader, len(r.parts))
	for i := range r.parts {
		readers[i] = &tenantReader{part: &r.parts[i]}
	}
	return readers
}

// fill reads the next block if no row is left.
func (t *tenantReader) fill() error {
	for len(t.rows) == 0 && t.next < len(t.part.blocks) {
		t.buffer = t.buffer[:0]
		err := t.reader.read(t.part.file, t.part.blocks[t.next], func(record int, row *ledger.Row) error {
			if number := t.part.records[record]; number >= 0 {
				t.buffer = append(t.buffer, numberedRow{number, *row})
			}
			return nil
		})
		if err != nil {
			return err
		}
		t.next++
		t.rows = t.buffer
		slices.SortFunc(t.rows, func(a, b numberedRow) int {
			if order := strings.Compare(a.row.Tenant, b.row.Tenant); order != 0 {
				return order
			}
			return compareRows(a.row, b.row)
		})
	}
	return nil
}

// nextTenant returns the rows of the next tenant of all files, by record. After the last tenant, rows is nil.
func nextTenant(readers []*tenantReader, records int) (tenant string, rows [][]ledger.Row, err error) {
	for _, t := range readers {
		if err := t.fill(); err != nil {
			return "", nil, err
		}
		if len(t.rows) > 0 && (rows == nil || t.rows[0].row.Tenant < tenant) {
			tenant, rows = t.rows[0].row.Tenant, make([][]ledger.Row, records)
		}
	}
	for _, t := range readers {
		for len(t.rows) > 0 && t.rows[0].row.Tenant == tenant {
			number := t.rows[0].record
			rows[number] = append(rows[number], t.rows[0].row)
			t.rows = t.rows[1:]
		}
	}
	return tenant, rows, nil
}

func listPaths(files []file) []string {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.path
	}
	return paths
}

// removeOld removes the files that exceed their retention.
func (s *Store) removeOld(now time.Time) error {
	for directory, age := range map[string]time.Duration{daysDir: hourRetention, sumsDir: dayRetention} {
		files, err := s.listFiles(directory, ledger.Span{Until: now.Add(-age).UTC().Truncate(day)})
		if err != nil {
			return err
		}
		if err := s.removeFiles(listPaths(files)); err != nil {
			return err
		}
	}
	return nil
}
