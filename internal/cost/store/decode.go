package store

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
)

// maxBody limits the size of a decompressed record.
const maxBody = 512 << 20

var errDamaged = errors.New("the record is damaged")

// decode returns the intact records at the beginning of a file. The error describes the rest.
func decode(file []byte) ([]Record, error) {
	d := decoder{}
	data, found := bytes.CutPrefix(file, []byte(magic))
	if !found {
		d.missing = 1
		if data, found = bytes.CutPrefix(file, []byte(magic1)); !found {
			return nil, errors.New("the file does not begin as a file of croft's costs")
		}
	}
	payloads, torn := readFrames(data)
	var records []Record
	for _, payload := range payloads {
		body, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(payload)), maxBody))
		if err != nil {
			return records, fmt.Errorf("record %d: %w", len(records)+1, err)
		}
		d.body = body
		r, err := d.readRecord()
		if err != nil {
			return records, fmt.Errorf("record %d: %w", len(records)+1, err)
		}
		records = append(records, r)
	}
	if torn > 0 {
		return records, fmt.Errorf("the last %d of %d bytes are damaged, after %d records", torn, len(file), len(records))
	}
	return records, nil
}

type decoder struct {
	// missing is the number of figures, the last ones, that the rows of the file lack.
	missing  int
	body     []byte
	failed   bool
	texts    []string
	keys     []ledger.Key
	previous [][valueCount]int64
}

func (d *decoder) fail() {
	d.failed, d.body = true, nil
}

func (d *decoder) readNumber() uint64 {
	n, size := binary.Uvarint(d.body)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.body = d.body[size:]
	return n
}

func (d *decoder) readSigned() int64 {
	n, size := binary.Varint(d.body)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.body = d.body[size:]
	return n
}

// readCount reads the length of a list. Each element has a byte at least.
func (d *decoder) readCount() int {
	n := d.readNumber()
	if n > uint64(len(d.body)) {
		d.fail()
		return 0
	}
	return int(n) //nolint:gosec // at most the length of the body
}

func (d *decoder) readText() string {
	number := d.readNumber()
	switch {
	case number < uint64(len(d.texts)):
		return d.texts[number]
	case number > uint64(len(d.texts)):
		d.fail()
		return ""
	}
	length := d.readCount()
	text := string(d.body[:length])
	d.body = d.body[length:]
	d.texts = append(d.texts, text)
	return text
}

func (d *decoder) readSpans() []ledger.Span {
	var spans []ledger.Span
	for range d.readCount() {
		from := d.readSigned()
		spans = append(spans, ledger.Span{From: time.Unix(from, 0).UTC(), Until: time.Unix(from+d.readSigned(), 0).UTC()})
	}
	return spans
}

func (d *decoder) readRecord() (Record, error) {
	d.failed = false
	spans := d.readSpans()
	if len(spans) != 1 {
		return Record{}, errDamaged
	}
	r := Record{Span: spans[0]}
	r.Epoch, r.Revision = d.readNumber(), d.readNumber()
	r.Holder, r.Currency = d.readText(), d.readText()
	for _, sum := range []*money.Amount{&r.Nodes, &r.Volumes, &r.LoadBalancers} {
		*sum = money.Amount(d.readSigned())
	}
	r.Gaps, r.Missing = d.readSpans(), d.readSpans()
	for range d.readCount() {
		r.Exclusive = append(r.Exclusive, Exclusive{d.readText(), d.readText()})
	}
	r.Rows = d.readRows()
	if d.failed || len(d.body) > 0 {
		return Record{}, errDamaged
	}
	return r, nil
}

func (d *decoder) readRows() []ledger.Row {
	count := d.readCount()
	figures := valueCount - d.missing
	if count > len(d.body)/(1+figures) { // each row has a byte at least for its key and each figure
		d.fail()
		return nil
	}
	rows := make([]ledger.Row, 0, count)
	next := uint64(0)
	for range count {
		number := next + d.readNumber()
		switch {
		case d.failed || number < next || number > uint64(len(d.keys)):
			d.fail()
			return nil
		case number == uint64(len(d.keys)):
			var texts [keyFields]string
			for i := range texts {
				texts[i] = d.readText()
			}
			d.keys, d.previous = append(d.keys, makeKey(texts)), append(d.previous, [valueCount]int64{})
		}
		for i := range figures {
			d.previous[number][i] += d.readSigned()
		}
		row := ledger.Row{Key: d.keys[number]}
		setValues(&row, d.previous[number])
		rows = append(rows, row)
		next = number + 1
	}
	slices.SortFunc(rows, func(a, b ledger.Row) int { return a.Compare(b.Key) })
	return rows
}
