package store

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"croft.dev/croft/internal/cost/ledger"
)

// indexGuess is the number of bytes at the beginning of a file in which its index mostly ends.
const indexGuess = 16 << 10

var errNoRecords = errors.New("the file does not begin as a file of croft's costs")

// recordFile is an open file of records. Other processes may remove or replace the file meanwhile: its content stays.
type recordFile struct {
	path string
	io.ReaderAt
	// records have no rows.
	records []Record
	// rows are the blocks with all rows, and totals those with the totals.
	rows, totals []block
}

func (f *recordFile) close() {
	if closer, ok := f.ReaderAt.(io.Closer); ok {
		closer.Close()
	}
}

// checkMagic returns an error unless data begins as a file of records in the present form.
func checkMagic(data []byte) error {
	switch {
	case bytes.HasPrefix(data, []byte(magic)):
		return nil
	case bytes.HasPrefix(data, []byte(magicName)) && len(data) >= len(magic):
		return errOtherForm
	default:
		return errNoRecords
	}
}

// readIndex reads the index of a file.
func readIndex(file io.ReaderAt) (*recordFile, error) {
	start := make([]byte, indexGuess)
	n, err := file.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	start = start[:n]
	if err := checkMagic(start); err != nil {
		return nil, err
	}
	place := block{offset: int64(len(magic))}
	if n >= len(magic)+frameHeader {
		place.length = frameHeader + int(min(binary.LittleEndian.Uint32(start[len(magic):]), maxFrame))
	}
	source := file
	if n >= len(magic)+place.length {
		source = bytes.NewReader(start) // without another read
	}
	var buffer []byte
	payload, err := readFrame(source, place, &buffer)
	if err != nil {
		return nil, fmt.Errorf("the index: %w", err)
	}
	r := &recordFile{ReaderAt: file}
	if err := r.parseIndex(payload, place.offset+int64(place.length)); err != nil {
		return nil, err
	}
	return r, nil
}

// parseIndex reads the content of an index. The first block begins at an offset.
func (f *recordFile) parseIndex(index []byte, offset int64) error {
	d := decoder{body: index}
	for range d.readCount() {
		r, err := d.readRecord()
		if err != nil {
			return fmt.Errorf("the index: %w", err)
		}
		f.records = append(f.records, r)
	}
	var err error
	if f.rows, offset, err = d.readBlocks(offset); err == nil {
		f.totals, _, err = d.readBlocks(offset)
	}
	if err == nil && len(d.body) > 0 {
		err = errDamaged
	}
	if err != nil {
		return fmt.Errorf("the index: %w", err)
	}
	return nil
}

// listBlocks returns the blocks that have the selected rows.
func (f *recordFile) listBlocks(s Selection) []block {
	switch {
	case s.Tenant != nil:
		i, _ := slices.BinarySearchFunc(f.rows, *s.Tenant, func(b block, tenant string) int { return strings.Compare(b.last, tenant) })
		return f.rows[i:min(i+1, len(f.rows))]
	case s.Totals:
		return f.totals
	default:
		return f.rows
	}
}

// checkBlocks compares blocks with their checksums.
func (f *recordFile) checkBlocks(blocks []block, buffer *[]byte) error {
	for _, b := range blocks {
		if _, err := readFrame(f, b, buffer); err != nil {
			return fmt.Errorf("the block until tenant %q: %w", b.last, err)
		}
	}
	return nil
}

// readFrame reads the frame at a place into a buffer, and returns its payload.
func readFrame(file io.ReaderAt, place block, buffer *[]byte) ([]byte, error) {
	if place.length <= frameHeader {
		return nil, errDamaged
	}
	*buffer = slices.Grow((*buffer)[:0], place.length)[:place.length]
	frame := *buffer
	if n, err := file.ReadAt(frame, place.offset); n < len(frame) {
		return nil, fmt.Errorf("%w after %d of %d bytes: %w", errDamaged, n, len(frame), err)
	}
	payload := frame[frameHeader:]
	if int(binary.LittleEndian.Uint32(frame)) != len(payload) ||
		binary.LittleEndian.Uint32(frame[4:]) != crc32.Checksum(payload, castagnoli) {
		return nil, errDamaged
	}
	return payload, nil
}

// blockReader reads blocks. Its memory is used for all of them.
type blockReader struct {
	frame    []byte
	body     bytes.Buffer
	inflater io.ReadCloser
	decoder  rowDecoder
}

// read calls visit for each row of a block, with the number of its record in the file.
func (r *blockReader) read(f *recordFile, b block, visit func(record int, row *ledger.Row) error) error {
	payload, err := readFrame(f, b, &r.frame)
	if err == nil {
		err = r.readPayload(payload, len(f.records), visit)
	}
	if err != nil {
		return fmt.Errorf("%s: the block until tenant %q: %w", f.path, b.last, err)
	}
	return nil
}

// readPayload calls visit for each row in the payload of a block.
func (r *blockReader) readPayload(payload []byte, records int, visit func(record int, row *ledger.Row) error) error {
	body, err := r.unpack(payload)
	if err != nil {
		return err
	}
	if err := r.decoder.begin(body); err != nil {
		return err
	}
	r.decoder.precision = choosePrecision(records)
	record := 0
	visitRow := func(row *ledger.Row) error { return visit(record, row) }
	for ; record < records; record++ {
		if err := r.decoder.readRows(visitRow); err != nil {
			return err
		}
	}
	return r.decoder.end()
}

// unpack returns the content of a block.
func (r *blockReader) unpack(payload []byte) ([]byte, error) {
	if len(payload) == 0 {
		return nil, errDamaged
	}
	form, content := payload[0], payload[1:]
	switch form {
	case plainForm:
		return content, nil
	case deflateForm:
		if err := r.beginInflate(bytes.NewReader(content)); err != nil {
			return nil, err
		}
		r.body.Reset()
		_, err := r.body.ReadFrom(io.LimitReader(r.inflater, maxBody))
		return r.body.Bytes(), err
	default:
		return nil, errDamaged
	}
}

func (r *blockReader) beginInflate(content io.Reader) error {
	if used, ok := r.inflater.(flate.Resetter); ok {
		return used.Reset(content, nil)
	}
	r.inflater = flate.NewReader(content)
	return nil
}
