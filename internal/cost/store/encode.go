package store

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
)

// magic begins each file of records. Its number is the version of the form of files.
const (
	magicName = "croft cost "
	magic     = magicName + "4\n"
)

// valueCount is the number of a row's figures.
const valueCount = 12

// The places of a row's weight and usage among its figures.
const (
	weightValue     = 7
	usedCPUValue    = 8
	usedMemoryValue = 9
)

// keyFields is the number of texts of a row's key.
const keyFields = 10

// maxShared limits the common beginning of two texts, whose length is one byte.
const maxShared = 255

// listValues returns the figures of a row, in the order of the file.
func listValues(r *ledger.Row) [valueCount]int64 {
	return [valueCount]int64{r.CPU, r.Memory, int64(r.Cost), int64(r.Idle), int64(r.EstimatedCost), int64(r.EstimatedIdle),
		r.Unpriced, r.Weight, r.UsedCPU, r.UsedMemory, r.Measured, r.Unmeasured}
}

func setValues(r *ledger.Row, v [valueCount]int64) {
	r.CPU, r.Memory, r.Cost, r.Idle = v[0], v[1], money.Amount(v[2]), money.Amount(v[3])
	r.EstimatedCost, r.EstimatedIdle, r.Unpriced = money.Amount(v[4]), money.Amount(v[5]), v[6]
	r.Weight = v[weightValue]
	r.UsedCPU, r.UsedMemory, r.Measured, r.Unmeasured = v[usedCPUValue], v[usedMemoryValue], v[10], v[11]
}

// predictWeight returns the weight of a row if all its requests have a price. Files have the difference, which is mostly
// 0. The factors belong to the form of files: they stay if the rule of the weight changes.
func predictWeight(r *ledger.Row) int64 {
	if r.Resource != ledger.NodeResource {
		return 0
	}
	return r.CPU*9216 + r.Memory*1000
}

func listTexts(k ledger.Key) [keyFields]string {
	return [keyFields]string{string(k.Kind), string(k.Resource), k.Pool, k.CapacityType, k.InstanceType, k.Tenant,
		k.CostCode, k.Namespace, k.Workload, k.PriceSource}
}

func makeKey(t [keyFields]string) ledger.Key {
	return ledger.Key{Kind: ledger.Kind(t[0]), Resource: ledger.Resource(t[1]), Pool: t[2], CapacityType: t[3],
		InstanceType: t[4], Tenant: t[5], CostCode: t[6], Namespace: t[7], Workload: t[8], PriceSource: t[9]}
}

// encoder writes numbers and texts. Each text is written once, and then referred to by its number, from 1 on.
type encoder struct {
	body  []byte
	texts map[string]uint64
}

func newEncoder() encoder { return encoder{texts: map[string]uint64{}} }

func (e *encoder) addNumber(n uint64) { e.body = binary.AppendUvarint(e.body, n) }

func (e *encoder) addSigned(n int64) { e.body = binary.AppendVarint(e.body, n) }

// addCount adds the length of a list.
func (e *encoder) addCount(n int) { e.addNumber(uint64(n)) } //nolint:gosec // no length is negative

// addText adds a text. A new text is written without the beginning that it has in common with an earlier one. It follows a 0, which
// compresses better than its number, since this is another one each time.
func (e *encoder) addText(text, earlier string) {
	if number, known := e.texts[text]; known {
		e.addNumber(number)
		return
	}
	e.texts[text] = uint64(len(e.texts)) + 1
	e.addNumber(0)
	shared := 0
	for shared < min(len(text), len(earlier), maxShared) && text[shared] == earlier[shared] {
		shared++
	}
	e.body = append(e.body, byte(shared)) //nolint:gosec // at most maxShared
	e.addCount(len(text) - shared)
	e.body = append(e.body, text[shared:]...)
}

func (e *encoder) addSpans(spans []ledger.Span) {
	e.addCount(len(spans))
	for _, s := range spans {
		e.addSigned(s.From.Unix())
		e.addSigned(s.Until.Unix() - s.From.Unix())
	}
}

// addRecord adds a record without its rows.
func (e *encoder) addRecord(r *Record) {
	e.addSpans([]ledger.Span{r.Span})
	e.addNumber(r.Epoch)
	e.addNumber(r.Revision)
	e.addText(r.Holder, "")
	e.addText(r.Currency, "")
	for _, sum := range []money.Amount{r.Nodes, r.Volumes, r.LoadBalancers} {
		e.addSigned(int64(sum))
	}
	e.addSpans(r.Gaps)
	e.addSpans(r.Missing)
	e.addCount(len(r.Exclusive))
	for _, x := range r.Exclusive {
		e.addText(x.Pool, "")
		e.addText(x.Tenant, "")
	}
}

// addBlocks adds the places of blocks.
func (e *encoder) addBlocks(blocks []block) {
	e.addCount(len(blocks))
	last := ""
	for _, b := range blocks {
		e.addText(b.last, last)
		e.addCount(b.length)
		last = b.last
	}
}

// rowEncoder writes the rows of a block. Each key is written once, with the fields that differ from the key before,
// and then referred to by its number. Of the figures, only those are written that differ from the preceding record,
// as differences, since most workloads cost the same in each hour.
type rowEncoder struct {
	// encoder has the keys, and masks the numbers of the figures that follow in values.
	encoder
	precision precision
	masks     []byte
	values    [valueCount][]byte
	keys      map[ledger.Key]uint64
	lastKey   [keyFields]string
	previous  [][valueCount]int64
}

// newRowEncoder returns an encoder for the rows of some records.
func newRowEncoder(records int) *rowEncoder {
	return &rowEncoder{encoder: newEncoder(), precision: choosePrecision(records), keys: map[ledger.Key]uint64{}}
}

// addRows adds the rows of the next record, in the order of the numbers of their keys.
func (e *rowEncoder) addRows(rows []ledger.Row) error {
	type numbered struct {
		number uint64
		row    *ledger.Row
	}
	order := make([]numbered, 0, len(rows))
	known := uint64(len(e.keys))
	for i := range rows {
		number, found := e.keys[rows[i].Key]
		if !found {
			number = uint64(len(e.keys))
			e.keys[rows[i].Key] = number
		}
		order = append(order, numbered{number, &rows[i]})
	}
	slices.SortFunc(order, func(a, b numbered) int { return cmp.Compare(a.number, b.number) })
	e.addCount(len(order))
	next := uint64(0)
	for _, o := range order {
		if o.number < next {
			return errors.New("two rows have the same key")
		}
		e.addNumber(o.number - next)
		next = o.number + 1
		if o.number >= known {
			e.addKey(o.row.Key)
			e.previous = append(e.previous, [valueCount]int64{})
		}
		values := listValues(o.row)
		values[weightValue] -= predictWeight(o.row)
		values[usedCPUValue], values[usedMemoryValue] = e.precision.packUsage(o.row)
		e.addValues(values, &e.previous[o.number])
	}
	return nil
}

func (e *rowEncoder) addKey(key ledger.Key) {
	texts := listTexts(key)
	mask := uint64(0)
	for i := range texts {
		if texts[i] != e.lastKey[i] {
			mask |= 1 << i
		}
	}
	e.addNumber(mask)
	for i := range texts {
		if texts[i] != e.lastKey[i] {
			e.addText(texts[i], e.lastKey[i])
		}
	}
	e.lastKey = texts
}

func (e *rowEncoder) addValues(values [valueCount]int64, previous *[valueCount]int64) {
	mask := uint16(0)
	for i, v := range values {
		if v != previous[i] {
			mask |= 1 << i
			e.values[i] = binary.AppendVarint(e.values[i], v-previous[i])
		}
	}
	e.masks = binary.LittleEndian.AppendUint16(e.masks, mask)
	*previous = values
}

// listColumns returns the columns of a block. Similar bytes are next to each other, so that they compress better.
func (e *rowEncoder) listColumns() [][]byte {
	return append([][]byte{e.body, e.masks}, e.values[:]...)
}

// The forms of a block's content.
const (
	plainForm   = byte(0)
	deflateForm = byte(1)
)

// packer joins and compresses the columns of blocks. The memory of a compressor is used for all of them.
type packer struct{ deflate *flate.Writer }

func (p *packer) pack(columns [][]byte, form byte) ([]byte, error) {
	var lengths encoder
	for _, column := range columns {
		lengths.addCount(len(column))
	}
	body := slices.Concat(lengths.body, slices.Concat(columns...))
	if len(body) > maxBody {
		return nil, fmt.Errorf("a block has %d bytes, more than %d", len(body), maxBody)
	}
	if form == plainForm {
		return append([]byte{form}, body...), nil
	}
	out := bytes.NewBuffer([]byte{form})
	if p.deflate == nil {
		var err error
		if p.deflate, err = flate.NewWriter(out, flate.DefaultCompression); err != nil {
			return nil, err
		}
	}
	p.deflate.Reset(out)
	if _, err := p.deflate.Write(body); err != nil {
		return nil, err
	}
	if err := p.deflate.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// encode returns a file with records.
func encode(records []Record) ([]byte, error) {
	w := newFileWriter(records)
	// rest are the numbers of the rows that are not written yet, in the order of tenants.
	rest := make([][]int, len(records))
	for i := range records {
		rows := records[i].Rows
		for j := range rows {
			rest[i] = append(rest[i], j)
		}
		slices.SortStableFunc(rest[i], func(a, b int) int { return strings.Compare(rows[a].Tenant, rows[b].Tenant) })
	}
	for {
		var tenant string
		found := false
		for i := range records {
			if len(rest[i]) > 0 {
				if first := records[i].Rows[rest[i][0]].Tenant; !found || first < tenant {
					tenant, found = first, true
				}
			}
		}
		if !found {
			return w.finish()
		}
		rows := make([][]ledger.Row, len(records))
		for i := range records {
			for len(rest[i]) > 0 && records[i].Rows[rest[i][0]].Tenant == tenant {
				rows[i] = append(rows[i], records[i].Rows[rest[i][0]])
				rest[i] = rest[i][1:]
			}
		}
		if err := w.addTenant(tenant, rows); err != nil {
			return nil, err
		}
	}
}
