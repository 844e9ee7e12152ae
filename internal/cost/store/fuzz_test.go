package store

import (
	"bytes"
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
		records, err := decodeFile(data)
		if err != nil {
			return
		}
		again, err := encode(records)
		if err != nil {
			t.Skip(err) // only a valid checksum of a file that croft did not write leads here
		}
		got, err := decodeFile(again)
		if err != nil || !equalRecords(got, records) {
			t.Errorf("%v: %+v, want %+v", err, got, records)
		}
	})
}

// FuzzReadIndex reads the content of an index, without its checksum. The places of blocks stay within the limits.
func FuzzReadIndex(f *testing.F) {
	for n := range 4 {
		data, err := encode([]Record{makeRecord(0, uint64(n)), makeRecord(1, 9)}[:n%3]) //nolint:gosec // small numbers
		if err != nil {
			f.Fatal(err)
		}
		payloads, _ := readFrames(data[len(magic):])
		f.Add(payloads[0])
	}
	f.Fuzz(func(t *testing.T, index []byte) {
		file := &recordFile{ReaderAt: bytes.NewReader(nil)}
		if err := file.parseIndex(index, 100); err != nil {
			return
		}
		offset := int64(100)
		for _, b := range append(file.rows, file.totals...) {
			if b.offset != offset || b.length < 0 || b.length > maxFrame+frameHeader {
				t.Errorf("%+v", b)
			}
			offset += int64(b.length)
		}
		tenant := "t-03"
		for _, s := range []Selection{{}, {Totals: true}, {Tenant: &tenant}} {
			if blocks := file.listBlocks(s); len(blocks) > 0 && file.checkBlocks(blocks, new([]byte)) == nil {
				t.Errorf("blocks of an empty file: %+v", blocks)
			}
		}
	})
}

// FuzzReadBody reads the content of a block, without its checksum and its compression.
func FuzzReadBody(f *testing.F) {
	for n := range 4 {
		e := newRowEncoder(2)
		for i := range 2 {
			if err := e.addRows(makeRecord(n, uint64(n+i)).Rows); err != nil { //nolint:gosec // small numbers
				f.Fatal(err)
			}
		}
		for range 2 {
			payload, err := new(packer).pack(e.listColumns(), plainForm)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(payload[1:])
			for i := range e.masks {
				e.masks[i] = 0xf0 * byte(i%2) // figures that do not exist
			}
		}
	}
	f.Fuzz(func(_ *testing.T, body []byte) {
		var r blockReader
		_ = r.readPayload(append([]byte{plainForm}, body...), 2, func(int, *ledger.Row) error { return nil })
	})
}
