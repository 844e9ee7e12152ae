package store

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"croft.dev/croft/internal/cost/ledger"
)

// Copy is the file of one hour, for a place outside of the directory.
type Copy struct {
	// From is the beginning of the hour.
	From time.Time
	// Data is the content of the file.
	Data  []byte
	epoch uint64
}

// ParseCopy reads the content of a file with one hour, and compares all of it with its checksums.
func ParseCopy(data []byte) (Copy, error) {
	file, err := readIndex(bytes.NewReader(data))
	if err != nil {
		return Copy{}, err
	}
	if len(file.records) != 1 || file.records[0].Until.Sub(file.records[0].From) != time.Hour {
		return Copy{}, errors.New("the file is not of one hour")
	}
	file.path = "the copy"
	end := int64(0)
	var blocks blockReader
	for _, b := range slices.Concat(file.rows, file.totals) {
		if err := blocks.read(file, b, func(int, *ledger.Row) error { return nil }); err != nil {
			return Copy{}, err
		}
		end = b.offset + int64(b.length)
	}
	if end != 0 && end != int64(len(data)) {
		return Copy{}, errDamaged
	}
	return Copy{From: file.records[0].From, Data: data, epoch: file.records[0].Epoch}, nil
}

// CopyHour returns a copy of an hour, and false if no intact file has the hour. It returns ErrFenced if another process
// leads now: only the leader copies hours.
func (s *Store) CopyHour(from time.Time) (Copy, bool, error) {
	if err := s.checkFence(); err != nil {
		return Copy{}, false, err
	}
	s.merging.RLock()
	defer s.merging.RUnlock()
	r, _, err := s.readHours(ledger.Span{From: from, Until: from.Add(time.Hour)}, Selection{})
	if err != nil {
		return Copy{}, false, err
	}
	defer r.Close()
	records, err := r.Collect()
	if err != nil || len(records) == 0 {
		return Copy{}, false, err
	}
	// The file of the hour may be part of a day. The same record has the same file again, except usage, which days round more.
	data, err := encode(records)
	return Copy{From: from, Data: data, epoch: records[0].Epoch}, err == nil, err
}

// readHours returns the hours of a period in files that are intact where the selected rows are, without the sums of days,
// and the number of these files that have days.
func (s *Store) readHours(period ledger.Span, selection Selection) (r *Reading, days int, err error) {
	hours, err := s.listFiles(hoursDir, period)
	if err != nil {
		return nil, 0, err
	}
	files, err := s.listFiles(daysDir, period)
	if err != nil {
		return nil, 0, err
	}
	r = &Reading{}
	if err := s.addHours(r, append(files, hours...), period, selection); err != nil {
		r.Close()
		return nil, 0, err
	}
	for i := range r.parts {
		if filepath.Dir(r.parts[i].file.path) == filepath.Join(s.directory, daysDir) {
			days++
		}
	}
	return r, days, nil
}

// FindLost returns the given hours that no intact file has. If only the sum of a day is left, its hours are not lost:
// the sum has them, and a merge of some of them would replace it.
func (s *Store) FindLost(hours []time.Time) ([]time.Time, error) {
	s.merging.RLock()
	defer s.merging.RUnlock()
	var lost []time.Time
	byDay := map[time.Time][]time.Time{}
	for _, from := range hours {
		byDay[from.Truncate(day)] = append(byDay[from.Truncate(day)], from)
	}
	for from, of := range byDay {
		found, err := s.findLostOfDay(ledger.Span{From: from, Until: from.Add(day)}, of)
		if err != nil {
			return nil, err
		}
		lost = append(lost, found...)
	}
	slices.SortFunc(lost, time.Time.Compare)
	return slices.Compact(lost), nil
}

func (s *Store) findLostOfDay(of ledger.Span, hours []time.Time) ([]time.Time, error) {
	sums, err := s.listFiles(sumsDir, of)
	if err != nil {
		return nil, err
	}
	var lost []time.Time
	for _, selection := range []Selection{{}, {Totals: true}} {
		r, days, err := s.readHours(of, selection)
		if err != nil {
			return nil, err
		}
		r.Close()
		if len(sums) > 0 && days == 0 {
			return nil, nil
		}
		for _, at := range hours {
			if !slices.ContainsFunc(r.Records, func(stored Record) bool { return stored.From.Equal(at) }) {
				lost = append(lost, at)
			}
		}
	}
	return lost, nil
}

// Restore writes the file of a lost hour again, with its name.
func (s *Store) Restore(c Copy) error {
	if err := s.checkFence(); err != nil {
		return err
	}
	return s.writeFile(s.nameFile(hoursDir, c.From.UTC().Format(hourForm), c.epoch), c.Data)
}
