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
	fieldTable := e.object(typeFieldHashTable, 16*buckets)
	e.hashTable = e.object(typeDataHashTable, 16*buckets)
	offsets := make([]uint64, len(entries))
	for i := range entries {
		offsets[i] = e.entry(uint64(i+1), boot, &entries[i])
	}
	array := e.array(offsets)
	for _, d := range e.data {
		e.put(d.at+40, d.entries[0])
		e.put(d.at+56, uint64(len(d.entries)))
		if len(d.entries) > 1 {
			e.put(d.at+48, e.array(d.entries[1:]))
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
		micros(first.Time), micros(last.Time), uint64(last.Uptime.Microseconds()), uint64(len(e.data)), 0, 0, e.arrays,
	} {
		e.put(uint64(88+8*i), value)
	}
	return e.file
}

func micros(t time.Time) uint64 { return uint64(t.UnixMicro()) }

func (e *encoder) put(at, value uint64) { le.PutUint64(e.file[at:], value) }

// object adds an object with length bytes after its header, and returns its offset.
// Objects begin at multiples of eight.
func (e *encoder) object(kind byte, length int) uint64 {
	at := uint64(len(e.file))
	size := objectHeader + length
	e.file = append(e.file, make([]byte, (size+7)&^7)...)
	e.file[at] = kind
	e.put(at+8, uint64(size))
	e.objects++
	e.last = at
	return at
}

// array adds a list of the offsets of entries.
func (e *encoder) array(entries []uint64) uint64 {
	at := e.object(typeEntryArray, 8+8*len(entries))
	for i, entry := range entries {
		e.put(at+24+8*uint64(i), entry)
	}
	e.arrays++
	return at
}

func (e *encoder) entry(number uint64, boot ID, entry *Entry) uint64 {
	fields := make([]*datum, len(entry.Fields))
	for i, text := range entry.Fields {
		fields[i] = e.field(text)
	}
	at := e.object(typeEntry, 48+16*len(fields))
	e.put(at+16, number)
	e.put(at+24, micros(entry.Time))
	e.put(at+32, uint64(entry.Uptime.Microseconds()))
	copy(e.file[at+40:], boot[:])
	var all uint64
	for i, d := range fields {
		e.put(at+64+16*uint64(i), d.at)
		e.put(at+72+16*uint64(i), d.hash)
		all ^= d.hash
		d.entries = append(d.entries, at)
	}
	e.put(at+56, all)
	return at
}

// field stores a field, unless it is stored already.
func (e *encoder) field(text string) *datum {
	if d := e.byText[text]; d != nil {
		return d
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	d := &datum{hash: h.Sum64()}
	d.at = e.object(typeData, 48+len(text))
	e.put(d.at+16, d.hash)
	copy(e.file[d.at+64:], text)
	e.chain(d)
	e.byText[text] = d
	e.data = append(e.data, d)
	return d
}

// chain adds a field to the list of fields whose hashes share a bucket of the table. The bucket
// has the offsets of the first and the last field, and each field the offset of the next.
func (e *encoder) chain(d *datum) {
	place := e.hashTable + objectHeader + 16*(d.hash%buckets)
	if last := le.Uint64(e.file[place+8:]); last != 0 {
		e.put(last+24, d.at)
	} else {
		e.put(place, d.at)
	}
	e.put(place+8, d.at)
}
