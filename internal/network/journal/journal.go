// Package journal reads systemd's journal files, as far as necessary to find the events of
// a boot: the time, the program and the message of each entry, in the order in which they
// were written.
//
// The file format is documented at https://systemd.io/JOURNAL_FILE_FORMAT/ and stable:
// flags in the header identify the features that a reader must support. systemd's own
// reader needs cgo and libsystemd, or the program journalctl, and croft's image has
// neither. Existing readers in Go interpret all fields and depend on decompressors. The
// entries that croft needs are short, and systemd only compresses fields of 512 bytes and
// more.
package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Entry is one entry of a journal.
type Entry struct {
	Time time.Time
	// Identifier is the program that wrote the entry, such as kernel.
	Identifier string
	// Message is empty if it is compressed or longer than 4 KiB.
	Message string
}

// Signature is the beginning of a journal file.
const Signature = "LPKSHHRH"

// Constants of the file format, and limits of the reader.
const (
	// minHeader is the length of the header fields that are read.
	minHeader = 208

	incompatibleCompact = 1 << 4
	// known are the flags of files that can be read: compression by XZ, LZ4 and ZSTD, keyed
	// hashes, compact mode.
	known = 1<<5 - 1

	objectHeader = 16
	typeData     = 1
	typeEntry    = 3

	entryItems  = 64
	dataPayload = 64
	// In compact files each DATA object has two additional numbers.
	compactDataPayload = 72

	// longest is the maximum length of a field that is read, in bytes.
	longest = 4096
	// maxOther limits the memory of a reader.
	maxOther = 1 << 16
	// maxEntry is the maximum length of an entry's list of fields. A file with a longer one
	// is broken.
	maxEntry = 1 << 20
)

var le = binary.LittleEndian

// Read calls each for the entries of a file with times from since to until, and returns at
// the first later one. If a file is broken in the middle, Read returns an error after the
// entries before the damage.
func Read(file io.ReaderAt, since, until time.Time, each func(Entry)) error {
	f := &reader{file: file, other: map[uint64]bool{}}
	if err := f.readHeader(); err != nil {
		return err
	}
	if f.head.After(until) || f.tail.Before(since) {
		return nil
	}
	for at := f.first; at <= f.last; {
		header, err := f.readAt(at, objectHeader)
		if err != nil {
			return err
		}
		size := le.Uint64(header[8:])
		if size < objectHeader || size > 1<<40 {
			return fmt.Errorf("object at %d has %d bytes", at, size)
		}
		if header[0] == typeEntry {
			entry, err := f.readEntry(at, size, since)
			if err != nil {
				return err
			}
			if entry.Time.After(until) {
				return nil
			}
			if !entry.Time.Before(since) {
				each(entry)
			}
		}
		at += (size + 7) &^ 7
	}
	return nil
}

type reader struct {
	file        io.ReaderAt
	compact     bool
	first, last uint64
	head, tail  time.Time
	// other are the offsets of fields that are neither a message nor an identifier. They
	// are skipped: most entries share them.
	other map[uint64]bool
}

func (f *reader) readAt(at uint64, length int) ([]byte, error) {
	if at > 1<<62 {
		return nil, fmt.Errorf("offset %d is beyond the file", at)
	}
	b := make([]byte, length)
	if _, err := f.file.ReadAt(b, int64(at)); err != nil {
		return nil, fmt.Errorf("read %d bytes at %d: %w", length, at, err)
	}
	return b, nil
}

func (f *reader) readHeader() error {
	h, err := f.readAt(0, minHeader)
	if err != nil {
		return err
	}
	if string(h[:8]) != Signature {
		return errors.New("no journal file of systemd")
	}
	flags := le.Uint32(h[12:])
	if flags&^known != 0 {
		return fmt.Errorf("a journal file with the unknown flags %#x", flags&^known)
	}
	f.compact = flags&incompatibleCompact != 0
	f.first, f.last = le.Uint64(h[88:]), le.Uint64(h[136:])
	f.head, f.tail = parseMicros(h[184:]), parseMicros(h[192:])
	if f.first < minHeader || f.first%8 != 0 {
		return fmt.Errorf("the header has %d bytes", f.first)
	}
	return nil
}

// parseMicros decodes a time in microseconds since 1970.
func parseMicros(b []byte) time.Time {
	return time.UnixMicro(int64(le.Uint64(b) &^ (1 << 63))).UTC() //nolint:gosec // it is below 1<<63
}

// readEntry reads an ENTRY object. For entries before since it only reads the time.
func (f *reader) readEntry(at, size uint64, since time.Time) (Entry, error) {
	if size < entryItems || size > maxEntry {
		return Entry{}, fmt.Errorf("entry at %d has %d bytes", at, size)
	}
	b, err := f.readAt(at, int(size))
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Time: parseMicros(b[24:])}
	if e.Time.Before(since) {
		return e, nil
	}
	width := 16
	if f.compact {
		width = 4
	}
	for items := b[entryItems:]; len(items) >= width; items = items[width:] {
		var offset uint64
		if f.compact {
			offset = uint64(le.Uint32(items))
		} else {
			offset = le.Uint64(items)
		}
		if offset == 0 || f.other[offset] {
			continue
		}
		if err := f.readField(offset, &e); err != nil {
			return e, err
		}
	}
	return e, nil
}

// readField reads a DATA object if Entry contains it. A compressed object begins with the marks
// of its compression instead of a field name.
func (f *reader) readField(at uint64, e *Entry) error {
	header, err := f.readAt(at, objectHeader)
	if err != nil {
		return err
	}
	payload := uint64(dataPayload)
	if f.compact {
		payload = compactDataPayload
	}
	size := le.Uint64(header[8:])
	if header[0] != typeData || size < payload {
		return fmt.Errorf("field at %d is of type %d with %d bytes", at, header[0], size)
	}
	if size-payload > longest {
		return nil
	}
	content, err := f.readAt(at+payload, int(size-payload)) //nolint:gosec // it is at most longest
	if err != nil {
		return err
	}
	if message, ok := bytes.CutPrefix(content, []byte("MESSAGE=")); ok {
		e.Message = string(message)
	} else if identifier, ok := bytes.CutPrefix(content, []byte("SYSLOG_IDENTIFIER=")); ok {
		e.Identifier = string(identifier)
	} else if len(f.other) < maxOther {
		f.other[at] = true
	}
	return nil
}
