package store

import (
	"testing"

	"croft.dev/croft/internal/cost/ledger"
)

// FuzzReadRecords expects the reader to end with any content of a file, and records that it has read to
// survive another write.
func FuzzReadRecords(f *testing.F) {
	for n := range 4 {
		data, err := encode([]Record{makeRecord(0, uint64(n)), makeRecord(1, 9)}[:n%3]) //nolint:gosec // small numbers
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		records, _ := decode(data)
		again, err := encode(records)
		if err != nil {
			t.Skip(err) // only a valid checksum of a file that croft did not write leads here
		}
		got, err := decode(again)
		if err != nil || !equalRecords(got, records) {
			t.Errorf("%v: %+v, want %+v", err, got, records)
		}
	})
}

// FuzzReadBody reads the content of a frame, without its checksum and its compression.
func FuzzReadBody(f *testing.F) {
	for n := range 4 {
		e := encoder{texts: map[string]uint64{}, keys: map[ledger.Key]uint64{}}
		r := makeRecord(n, uint64(n)) //nolint:gosec // small numbers
		if err := e.addRecord(&r); err != nil {
			f.Fatal(err)
		}
		f.Add(e.body)
	}
	f.Fuzz(func(_ *testing.T, body []byte) {
		d := decoder{body: body}
		_, _ = d.readRecord()
	})
}
