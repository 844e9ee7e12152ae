// Package store keeps the cost of each hour for 35 days, and of each day for 13 months, in files that
// survive a kill at any point. An answer about one tenant reads only this tenant's part of each file.
//
// A complete hour is a file of its own, which is written under another name, flushed and renamed. When a
// day is complete, its hours become one file, and their sum another one. An hour has an identity: a
// second write replaces the first, and files that exist twice after a kill count once. The journal has
// the observations that are not yet part of a complete hour.
//
// One process writes at a time, the leader. Each leader has an epoch, which is higher than all earlier
// ones. A former leader that still runs is refused, and records that it wrote meanwhile lose against
// records with a higher epoch.
package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"croft.dev/croft/internal/cost/ledger"
)

const (
	// hourRetention and dayRetention are the ages at which files are deleted.
	hourRetention = 35 * 24 * time.Hour
	dayRetention  = 396 * 24 * time.Hour
)

// The directories of a store.
const (
	hoursDir   = "hours"
	daysDir    = "days"
	sumsDir    = "sums"
	journalDir = "journal"
)

// The forms of the times in the names of files.
const (
	hourForm = "20060102T15"
	dayForm  = "20060102"
)

// ErrFenced means that another process leads now: this one must not write.
var ErrFenced = errors.New("another process leads now")

// errOtherForm means that a file of records has another form than the present one. There is no release of croft whose
// files have one.
var errOtherForm = errors.New("another version of croft wrote this file: run that version, or name an empty directory")

// Leader is a holder of the lease.
type Leader struct {
	Identity string `json:"identity"`
	// Lease is the UID of the lease, and Transitions its number of changes of the holder.
	Lease       string `json:"lease"`
	Transitions int64  `json:"transitions"`
}

// fence is the content of the file that names the leader.
type fence struct {
	Leader
	Epoch uint64 `json:"epoch"`
}

// Store is a directory with records. It is not safe for concurrent writes; Select and Read may be concurrent.
type Store struct {
	// OnStep is called before each step of a write. An error ends the write there, as a kill
	// would. Only tests set it.
	OnStep func(step string) error

	directory string
	leader    fence
	// revision is the number of writes of hours, and journals the number of journals.
	revision, journals uint64
	// journal is the file to which entries are appended, or nil if it must be replaced first.
	journal *os.File
	// merging excludes reads while files replace others.
	merging sync.RWMutex
	// onDamage is called for files that cannot be read completely.
	onDamage func(file string, err error)
}

// Open opens a directory, and creates it if it does not exist. onDamage is called for each file that
// cannot be read completely.
func Open(directory string, onDamage func(file string, err error)) (*Store, error) {
	for _, name := range []string{hoursDir, daysDir, sumsDir, journalDir} {
		if err := os.MkdirAll(filepath.Join(directory, name), 0o700); err != nil {
			return nil, err
		}
	}
	return &Store{directory: directory, onDamage: onDamage, OnStep: func(string) error { return nil }}, nil
}

// Lead makes this process the writer. It returns ErrFenced if a later holder of the same lease leads, and an error if
// another version of croft wrote a file: Maintain would remove it as damaged.
func (s *Store) Lead(leader Leader) error {
	if err := s.checkForms(); err != nil {
		return err
	}
	current, err := s.readFence()
	if err != nil {
		return err
	}
	if current.Lease == leader.Lease && current.Transitions > leader.Transitions {
		return fmt.Errorf("%w: %s, by transition %d of the lease", ErrFenced, current.Identity, current.Transitions)
	}
	epoch, err := s.findEpoch()
	if err != nil {
		return err
	}
	s.leader = fence{leader, max(current.Epoch, epoch) + 1}
	data, err := json.Marshal(s.leader)
	if err != nil {
		return err
	}
	if err := s.removeTemporary(); err != nil {
		return err
	}
	return s.writeFile(s.fenceFile(), data)
}

// findEpoch returns the highest epoch in the names of files. The file that names the leader may be lost.
func (s *Store) findEpoch() (epoch uint64, err error) {
	for _, directory := range []string{hoursDir, daysDir, sumsDir} {
		files, err := s.listFiles(directory, always)
		if err != nil {
			return 0, err
		}
		for _, f := range files {
			epoch = max(epoch, f.epoch)
		}
	}
	journals, err := s.listJournals()
	for _, path := range journals {
		text, _, _ := strings.Cut(filepath.Base(path), ".")
		if number, err := strconv.ParseUint(text, 10, 64); err == nil {
			epoch = max(epoch, number)
		}
	}
	return epoch, err
}

// checkForms returns an error if a file of records has another form.
func (s *Store) checkForms() error {
	for _, directory := range []string{hoursDir, daysDir, sumsDir} {
		files, err := s.listFiles(directory, always)
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := checkForm(f.path); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkForm(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the leader removed it meanwhile
	}
	if err != nil {
		return err
	}
	defer f.Close()
	start := make([]byte, len(magic))
	n, _ := io.ReadFull(f, start) // a file that cannot be read is damaged
	if err := checkMagic(start[:n]); errors.Is(err, errOtherForm) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (s *Store) fenceFile() string { return filepath.Join(s.directory, "leader.json") }

func (s *Store) readFence() (fence, error) {
	var f fence
	data, err := os.ReadFile(s.fenceFile())
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("%s: %w", s.fenceFile(), err)
	}
	return f, nil
}

// checkFence returns ErrFenced unless this process is the last that began to lead.
func (s *Store) checkFence() error {
	current, err := s.readFence()
	if err == nil && current != s.leader {
		err = fmt.Errorf("%w: %s", ErrFenced, current.Identity)
	}
	return err
}

// WriteHour stores a complete hour. It replaces an earlier write of the same hour.
func (s *Store) WriteHour(r Record) error {
	if err := s.checkFence(); err != nil {
		return err
	}
	s.revision++
	r.Version, r.Holder = Version{s.leader.Epoch, s.revision}, s.leader.Identity
	data, err := encode([]Record{r})
	if err != nil {
		return err
	}
	return s.writeFile(s.nameFile(hoursDir, r.From.UTC().Format(hourForm), s.leader.Epoch), data)
}

// nameFile returns the path of a file of the leader with an epoch.
func (s *Store) nameFile(directory, period string, epoch uint64) string {
	return filepath.Join(s.directory, directory, fmt.Sprintf("%s.%012d", period, epoch))
}

// file is the name of a file of records.
type file struct {
	path   string
	period ledger.Span
	epoch  uint64
}

// listFiles returns the files in a directory whose periods intersect a period, in the order of time and
// epoch.
func (s *Store) listFiles(directory string, period ledger.Span) ([]file, error) {
	form, length := dayForm, 24*time.Hour
	if directory == hoursDir {
		form, length = hourForm, time.Hour
	}
	entries, err := os.ReadDir(filepath.Join(s.directory, directory))
	if err != nil {
		return nil, err
	}
	var files []file
	for _, entry := range entries {
		text, number, _ := strings.Cut(entry.Name(), ".")
		from, err := time.Parse(form, text)
		epoch, numberErr := strconv.ParseUint(number, 10, 64)
		if err != nil || numberErr != nil {
			continue // a temporary file, or not the store's
		}
		f := file{filepath.Join(s.directory, directory, entry.Name()), ledger.Span{From: from, Until: from.Add(length)}, epoch}
		if f.period.From.Before(period.Until) && f.period.Until.After(period.From) {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(a.period.From.Compare(b.period.From), cmp.Compare(a.epoch, b.epoch))
	})
	return files, nil
}
