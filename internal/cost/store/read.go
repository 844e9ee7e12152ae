package store

import (
	"slices"
	"time"

	"croft.dev/croft/internal/cost/ledger"
)

const day = 24 * time.Hour

// Read returns the records of a period in the order of time, without overlaps: the sums of complete days,
// and the hours of other days. The first and the last record may exceed the period.
func (s *Store) Read(period ledger.Span) ([]Record, error) {
	s.merging.RLock()
	defer s.merging.RUnlock()
	var all []Record
	for from := period.From.UTC().Truncate(day); from.Before(period.Until); from = from.Add(day) {
		records, err := s.readDay(ledger.Span{From: from, Until: from.Add(day)}, period)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	return all, nil
}

// readDay returns the records of a day that intersect a period.
func (s *Store) readDay(of, period ledger.Span) ([]Record, error) {
	hours, err := s.listFiles(hoursDir, of)
	if err != nil {
		return nil, err
	}
	days, err := s.listFiles(daysDir, of)
	if err != nil {
		return nil, err
	}
	isWhole := !of.From.Before(period.From) && !of.Until.After(period.Until)
	if len(hours) == 0 && (isWhole || len(days) == 0) {
		sums, err := s.readSums(of)
		if err != nil || len(sums) > 0 {
			return sums, err
		}
	}
	records, err := s.readHours(append(days, hours...))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(records, func(r Record) bool {
		return !r.From.Before(period.Until) || !r.Until.After(period.From)
	}), nil
}

// readSums returns the sums of a day from its latest file.
func (s *Store) readSums(of ledger.Span) ([]Record, error) {
	files, err := s.listFiles(sumsDir, of)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	return s.readFile(files[len(files)-1])
}

// readHours returns the latest version of each hour in files, in the order of time.
func (s *Store) readHours(files []file) ([]Record, error) {
	latest := map[int64]Record{}
	for _, f := range files {
		records, err := s.readFile(f)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			if old, found := latest[r.From.Unix()]; !found || r.Compare(old.Version) >= 0 {
				latest[r.From.Unix()] = r
			}
		}
	}
	all := make([]Record, 0, len(latest))
	for _, r := range latest {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Record) int { return a.From.Compare(b.From) })
	return all, nil
}

// FindLast returns the end of the last stored hour, or the zero time.
func (s *Store) FindLast() (time.Time, error) {
	always := ledger.Span{Until: time.Unix(1<<40, 0)}
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
	for i := len(days) - 1; i >= 0; i-- {
		records, err := s.readHours(days[i : i+1])
		if err != nil {
			return last, err
		}
		if n := len(records); n > 0 {
			if records[n-1].Until.After(last) {
				last = records[n-1].Until
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
// replace.
func (s *Store) mergeDay(of ledger.Span, hours []file) error {
	days, err := s.listFiles(daysDir, of)
	if err != nil {
		return err
	}
	records, err := s.readHours(append(slices.Clone(days), hours...))
	if err != nil {
		return err
	}
	name := of.From.Format(dayForm)
	replaced := slices.Clone(hours)
	for _, target := range []struct {
		directory string
		records   []Record
	}{{sumsDir, sumDay(of, records)}, {daysDir, records}} {
		data, err := encode(target.records)
		if err != nil {
			return err
		}
		before, err := s.listFiles(target.directory, of)
		if err != nil {
			return err
		}
		path := s.nameFile(target.directory, name)
		if err := s.writeFile(path, data); err != nil {
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
