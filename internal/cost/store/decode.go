package store

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
)

// maxBody limits the size of a decompressed block.
const maxBody = 512 << 20

var errDamaged = errors.New("the content is damaged")

// decoder reads numbers and texts.
type decoder struct {
	body   []byte
	failed bool
	texts  []string
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

// readText reads a text. A new text begins as an earlier one.
func (d *decoder) readText(earlier string) string {
	number := d.readNumber()
	if number > 0 && number <= uint64(len(d.texts)) {
		return d.texts[number-1]
	}
	if number > 0 || len(d.body) == 0 || int(d.body[0]) > len(earlier) {
		d.fail()
		return ""
	}
	shared := int(d.body[0])
	d.body = d.body[1:]
	length := d.readCount()
	text := earlier[:shared] + string(d.body[:length])
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

// readRecord reads a record without its rows.
func (d *decoder) readRecord() (Record, error) {
	spans := d.readSpans()
	if len(spans) != 1 {
		return Record{}, errDamaged
	}
	r := Record{Span: spans[0]}
	r.Epoch, r.Revision = d.readNumber(), d.readNumber()
	r.Holder, r.Currency = d.readText(""), d.readText("")
	for _, sum := range []*money.Amount{&r.Nodes, &r.Volumes, &r.LoadBalancers} {
		*sum = money.Amount(d.readSigned())
	}
	r.Gaps, r.Missing = d.readSpans(), d.readSpans()
	for range d.readCount() {
		r.Exclusive = append(r.Exclusive, Exclusive{d.readText(""), d.readText("")})
	}
	if d.failed {
		return Record{}, errDamaged
	}
	return r, nil
}

// readBlocks reads the places of blocks, of which the first begins at an offset, and returns the offset after the last.
func (d *decoder) readBlocks(offset int64) ([]block, int64, error) {
	var blocks []block
	last := ""
	for range d.readCount() {
		b := block{last: d.readText(last), offset: offset}
		length := d.readNumber()
		if d.failed || length > maxFrame+frameHeader || len(blocks) > 0 && b.last <= last {
			return nil, 0, errDamaged
		}
		b.length = int(length) //nolint:gosec // at most maxFrame and a header
		blocks = append(blocks, b)
		offset += int64(length) //nolint:gosec // at most maxFrame and a header
		last = b.last
	}
	if d.failed {
		return nil, 0, errDamaged
	}
	return blocks, offset, nil
}

// rowDecoder reads the rows of a block. Its memory is used for all blocks.
type rowDecoder struct {
	// decoder has the keys, and masks the numbers of the figures that follow in values.
	decoder
	precision precision
	masks     []byte
	values    [valueCount][]byte
	keys      []ledger.Key
	lastKey   [keyFields]string
	previous  [][valueCount]int64
	row       ledger.Row
}

// begin begins a block.
func (d *rowDecoder) begin(body []byte) error {
	d.decoder = decoder{body: body, texts: d.texts[:0]}
	d.keys, d.previous, d.lastKey = d.keys[:0], d.previous[:0], [keyFields]string{}
	var lengths [2 + valueCount]int
	for i := range lengths {
		lengths[i] = d.readCount()
	}
	rest := d.body
	for i, length := range lengths {
		if d.failed || length > len(rest) {
			return errDamaged
		}
		switch i {
		case 0:
			d.body = rest[:length]
		case 1:
			d.masks = rest[:length]
		default:
			d.values[i-2] = rest[:length]
		}
		rest = rest[length:]
	}
	if len(rest) > 0 {
		return errDamaged
	}
	return nil
}

// end returns an error if the block has more than was read.
func (d *rowDecoder) end() error {
	rest := len(d.body) + len(d.masks)
	for _, column := range d.values {
		rest += len(column)
	}
	if d.failed || rest > 0 {
		return errDamaged
	}
	return nil
}

// readRows reads the rows of the next record. visit must not keep a row.
func (d *rowDecoder) readRows(visit func(*ledger.Row) error) error {
	next := uint64(0)
	count := d.readNumber()
	if d.failed || count > uint64(len(d.masks)) {
		return errDamaged
	}
	for range count {
		number := next + d.readNumber()
		if d.failed || number < next || number > uint64(len(d.keys)) {
			return errDamaged
		}
		if number == uint64(len(d.keys)) {
			d.keys, d.previous = append(d.keys, d.readKey()), append(d.previous, [valueCount]int64{})
		}
		if !d.readValues(&d.previous[number]) {
			return errDamaged
		}
		d.row = ledger.Row{Key: d.keys[number]}
		setValues(&d.row, d.previous[number])
		d.row.Weight += predictWeight(&d.row)
		d.precision.unpackUsage(&d.row)
		if err := visit(&d.row); err != nil {
			return err
		}
		next = number + 1
	}
	return nil
}

func (d *rowDecoder) readKey() ledger.Key {
	mask := d.readNumber()
	for i := range d.lastKey {
		if mask&(1<<i) != 0 {
			d.lastKey[i] = d.readText(d.lastKey[i])
		}
	}
	return makeKey(d.lastKey)
}

// readValues changes figures by their differences. It returns false at the end of the data, and for a figure that does not exist.
func (d *rowDecoder) readValues(values *[valueCount]int64) bool {
	if d.failed || len(d.masks) < 2 {
		return false
	}
	mask := binary.LittleEndian.Uint16(d.masks)
	d.masks = d.masks[2:]
	if mask>>valueCount != 0 {
		return false
	}
	for ; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros16(mask)
		n, size := binary.Varint(d.values[i])
		if size <= 0 {
			return false
		}
		values[i] += n
		d.values[i] = d.values[i][size:]
	}
	return true
}
