package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// temporary ends the names of files that are not complete.
const temporary = ".tmp"

// damagedSuffix ends the names of damaged files that a merge left out. Only people read them.
const damagedSuffix = ".damaged"

// writeFile writes a file so that it exists completely or not at all: under another name, which is
// flushed to the disk and then renamed.
func (s *Store) writeFile(path string, data []byte) error {
	if err := s.OnStep("create"); err != nil {
		return err
	}
	f, err := os.OpenFile(path+temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.appendData(f, data); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := s.OnStep("rename"); err != nil {
		return err
	}
	if err := os.Rename(path+temporary, path); err != nil {
		return err
	}
	return s.syncDirectory(filepath.Dir(path))
}

// appendData writes data to a file, and flushes it. In tests, a step is between two halves.
func (s *Store) appendData(f *os.File, data []byte) error {
	half := len(data) / 2
	for _, part := range [][]byte{data[:half], data[half:]} {
		if err := s.OnStep("write"); err != nil {
			return err
		}
		if _, err := f.Write(part); err != nil {
			return err
		}
	}
	if err := s.OnStep("flush"); err != nil {
		return err
	}
	return f.Sync()
}

// syncDirectory flushes the names in a directory.
func (s *Store) syncDirectory(path string) error {
	if err := s.OnStep("flush the directory"); err != nil {
		return err
	}
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	defer directory.Close()
	return directory.Sync()
}

// renameFiles appends a suffix to the names of files.
func (s *Store) renameFiles(paths []string, suffix string) error {
	for _, path := range paths {
		if err := s.OnStep("rename"); err != nil {
			return err
		}
		if err := os.Rename(path, path+suffix); err != nil {
			return err
		}
		if err := s.syncDirectory(filepath.Dir(path)); err != nil {
			return err
		}
	}
	return nil
}

// removeFiles removes files that other files have replaced.
func (s *Store) removeFiles(paths []string) error {
	for _, path := range paths {
		if err := s.OnStep("remove"); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeTemporary removes the incomplete files of killed processes.
func (s *Store) removeTemporary() error {
	var paths []string
	for _, directory := range []string{".", hoursDir, daysDir, sumsDir, journalDir} {
		entries, err := os.ReadDir(filepath.Join(s.directory, directory))
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if strings.HasSuffix(entry.Name(), temporary) {
				paths = append(paths, filepath.Join(s.directory, directory, entry.Name()))
			}
		}
	}
	return s.removeFiles(paths)
}
