package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// checksums is the file that is signed instead of each file that it names.
const checksums = "checksums.txt"

// checksum is a file's SHA-256 in hexadecimal.
func checksum(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// writeChecksums writes the checksums of all files in a directory, without subdirectories, in
// the format of sha256sum --check.
func writeChecksums(dir string) error {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range entries {
		if !entry.Type().IsRegular() || entry.Name() == checksums {
			continue
		}
		sum, err := checksum(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		text.WriteString(sum + "  " + entry.Name() + "\n")
	}
	return os.WriteFile(filepath.Join(dir, checksums), []byte(text.String()), 0o600)
}
