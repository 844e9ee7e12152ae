// Package journalfile writes systemd's journal files, with the parts that journalctl and
// croft's agent read: the entries in their order, each field stored once. The format is
// documented at https://systemd.io/JOURNAL_FILE_FORMAT/.
//
// Searches by a field's value use hashes. Here they are FNV-1a, in systemd another function:
// journalctl prints such a file as a whole, and finds nothing with --unit.
package journalfile

import (
	"encoding/binary"
	"hash/fnv"
	"time"
)

// Entry is one entry of a journal.
type Entry struct {
	Time time.Time
	// Uptime is the time since the kernel started.
	Uptime time.Duration
	// Fields are NAME=value.
	Fields []string
}

// The format's numbers.
const (
	signature    = "LPKSHHRH"
	headerSize   = 240
	objectHeader = 16
	buckets      = 64

	typeData           = 1
	typeEntry          = 3
	typeDataHashTable  = 4
	typeFieldHashTable = 5
	typeEntryArray     = 6

	stateOffline = 0
)

var le = binary.LittleEndian

// ID is the identity of a machine, of a boot or of a file.
type ID [16]byte

// datum is a stored field.
type datum struct {
	at, hash uint64
	entries  []uint64
}

type encoder struct {
	file          []byte
	objects, last uint64
	arrays        uint64
	hashTable     uint64
	byText        map[string]*datum
	data          []*datum
}

// Encode returns a journal file of one boot of a machine. Entries must be in the order of their
// times. Without entries, it returns nil, because the file's header needs a first and a last time.
func Encode(machine, boot ID, entries []Entry) []byte {
	if len(entries) == 0 {
		return nil
	}
	e := &encoder{file: make([]byte, headerSize), byText: map[string]*datum{}}
	fieldTable := e.addObject(typeFieldHashTable, 16*buckets)
	e.hashTable = e.addObject(typeDataHashTable, 16*buckets)
	offsets := make([]uint64, len(entries))
	for i := range entries {
		offsets[i] = e.addEntry(uint64(i+1), boot, &entries[i])
	}
	array := e.addArray(offsets)
	for _, d := range e.data {
		e.putUint64(d.at+40, d.entries[0])
		e.putUint64(d.at+56, uint64(len(d.entries)))
		if len(d.entries) > 1 {
			e.putUint64(d.at+48, e.addArray(d.entries[1:]))
		}
	}
	first, last := &entries[0], &entries[len(entries)-1]
	h := e.file[:headerSize]
	copy(h, signature)
	h[16] = stateOffline
	copy(h[24:], boot[:]) // a file for each boot
	copy(h[40:], machine[:])
	copy(h[56:], boot[:])
	copy(h[72:], boot[:])
	for i, value := range []uint64{
		headerSize, uint64(len(e.file) - headerSize), e.hashTable + objectHeader, 16 * buckets, fieldTable + objectHeader, 16 * buckets,
		e.last, e.objects, uint64(len(entries)), uint64(len(entries)), 1, array,
		toMicroseconds(first.Time), toMicroseconds(last.Time), uint64(last.Uptime.Microseconds()), uint64(len(e.data)), 0, 0, e.arrays,
	} {
		e.putUint64(uint64(88+8*i), value)
	}
	return e.file
}

func toMicroseconds(t time.Time) uint64 { return uint64(t.UnixMicro()) }

func (e *encoder) putUint64(at, value uint64) { le.PutUint64(e.file[at:], value) }

// addObject adds an object with length bytes after its header, and returns its offset.
// Objects begin at multiples of eight.
func (e *encoder) addObject(kind byte, length int) uint64 {
	at := uint64(len(e.file))
	size := objectHeader + length
	e.file = append(e.file, make([]byte, (size+7)&^7)...)
	e.file[at] = kind
	e.putUint64(at+8, uint64(size))
	e.objects++
	e.last = at
	return at
}

// addArray adds a list of the offsets of entries.
func (e *encoder) addArray(entries []uint64) uint64 {
	at := e.addObject(typeEntryArray, 8+8*len(entries))
	for i, entry := range entries {
		e.putUint64(at+24+8*uint64(i), entry)
	}
	e.arrays++
	return at
}

func (e *encoder) addEntry(number uint64, boot ID, entry *Entry) uint64 {
	fields := make([]*datum, len(entry.Fields))
	for i, text := range entry.Fields {
		fields[i] = e.addField(text)
	}
	at := e.addObject(typeEntry, 48+16*len(fields))
	e.putUint64(at+16, number)
	e.putUint64(at+24, toMicroseconds(entry.Time))
	e.putUint64(at+32, uint64(entry.Uptime.Microseconds()))
	copy(e.file[at+40:], boot[:])
	var all uint64
	for i, d := range fields {
		e.putUint64(at+64+16*uint64(i), d.at)
		e.putUint64(at+72+16*uint64(i), d.hash)
		all ^= d.hash
		d.entries = append(d.entries, at)
	}
	e.putUint64(at+56, all)
	return at
}

// addField stores a field, unless it is stored already.
func (e *encoder) addField(text string) *datum {
	if d := e.byText[text]; d != nil {
		return d
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	d := &datum{hash: h.Sum64()}
	d.at = e.addObject(typeData, 48+len(text))
	e.putUint64(d.at+16, d.hash)
	copy(e.file[d.at+64:], text)
	e.chainField(d)
	e.byText[text] = d
	e.data = append(e.data, d)
	return d
}

// chainField adds a field to the list of fields whose hashes share a bucket of the table. The bucket
// has the offsets of the first and the last field, and each field the offset of the next.
func (e *encoder) chainField(d *datum) {
	place := e.hashTable + objectHeader + 16*(d.hash%buckets)
	if last := le.Uint64(e.file[place+8:]); last != 0 {
		e.putUint64(last+24, d.at)
	} else {
		e.putUint64(place, d.at)
	}
	e.putUint64(place+8, d.at)
}
