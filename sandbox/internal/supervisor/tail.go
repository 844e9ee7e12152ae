package supervisor

import (
	"bytes"
	"io"
	"os"
	"strings"
)

// tailBytes is the number of bytes that are read from the end of a log.
const tailBytes = 16 << 10

// ReadTail returns the last lines of a file.
func ReadTail(path string, lines int) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-tailBytes)
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, tailBytes))
	if err != nil {
		return nil, err
	}
	if from > 0 { // the first line is cut
		_, content, _ = bytes.Cut(content, []byte("\n"))
	}
	content = bytes.TrimRight(content, "\n")
	if len(content) == 0 {
		return nil, nil
	}
	all := strings.Split(string(content), "\n")
	return all[max(0, len(all)-lines):], nil
}
