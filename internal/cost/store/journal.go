package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// journalMagic begins each file of the journal.
const journalMagic = "croft journal 1\n"

// errNoJournal means that the journal has to be replaced before an entry can be appended.
var errNoJournal = errors.New("the journal must be written again")

// ReadJournal returns the entries of the last complete journal. Entries that were being written when a
// process was killed are cut, and reported.
func (s *Store) ReadJournal() ([][]byte, error) {
	names, err := s.listJournals()
	if err != nil || len(names) == 0 {
		return nil, err
	}
	path := names[len(names)-1]
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	rest, found := bytes.CutPrefix(data, []byte(journalMagic))
	if !found {
		s.onDamage(path, errors.New("the file does not begin as a journal"))
		return nil, nil
	}
	entries, torn := readFrames(rest)
	if torn > 0 {
		s.onDamage(path, fmt.Errorf("the last %d of %d bytes are no complete entry", torn, len(data)))
	}
	return entries, nil
}

// listJournals returns the paths of the journals in the order of their leaders.
func (s *Store) listJournals() ([]string, error) {
	directory := filepath.Join(s.directory, journalDir)
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), temporary) {
			names = append(names, filepath.Join(directory, entry.Name()))
		}
	}
	slices.Sort(names) // their numbers have a fixed length
	return names, nil
}

// ReplaceJournal replaces all entries. A kill leaves either the old or the new ones.
func (s *Store) ReplaceJournal(entries [][]byte) error {
	if err := s.checkFence(); err != nil {
		return err
	}
	s.closeJournal()
	s.journals++
	data := []byte(journalMagic)
	for _, entry := range entries {
		data = appendFrame(data, entry)
	}
	before, err := s.listJournals()
	if err != nil {
		return err
	}
	path := filepath.Join(s.directory, journalDir, fmt.Sprintf("%012d.%012d", s.leader.Epoch, s.journals))
	if err := s.writeFile(path, data); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s.journal = f
	// A former leader's later files have smaller names.
	return s.removeFiles(slices.DeleteFunc(before, func(name string) bool { return name >= path }))
}

// AppendJournal adds entries, and flushes them to the disk. After an error, the journal must be replaced:
// entries behind a torn one would be lost.
func (s *Store) AppendJournal(entries [][]byte) error {
	if s.journal == nil {
		return errNoJournal
	}
	if err := s.checkFence(); err != nil {
		return err
	}
	var data []byte
	for _, entry := range entries {
		data = appendFrame(data, entry)
	}
	err := s.appendData(s.journal, data)
	if err != nil {
		s.closeJournal()
	}
	return err
}

func (s *Store) closeJournal() {
	if s.journal != nil {
		s.journal.Close()
		s.journal = nil
	}
}
