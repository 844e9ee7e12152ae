package store

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
)

// magic begins each file of records. The rows of files that begin with magic1 have no weight.
const (
	magic  = "croft cost 2\n"
	magic1 = "croft cost 1\n"
)

// valueCount is the number of a row's figures.
const valueCount = 8

// keyFields is the number of texts of a row's key.
const keyFields = 10

// listValues returns the figures of a row, in the order of the file.
func listValues(r *ledger.Row) [valueCount]int64 {
	return [valueCount]int64{r.CPU, r.Memory, int64(r.Cost), int64(r.Idle), int64(r.EstimatedCost), int64(r.EstimatedIdle),
		r.Unpriced, r.Weight}
}

func setValues(r *ledger.Row, v [valueCount]int64) {
	r.CPU, r.Memory, r.Cost, r.Idle = v[0], v[1], money.Amount(v[2]), money.Amount(v[3])
	r.EstimatedCost, r.EstimatedIdle, r.Unpriced = money.Amount(v[4]), money.Amount(v[5]), v[6]
	r.Weight = v[7]
}

func listTexts(k ledger.Key) [keyFields]string {
	return [keyFields]string{string(k.Kind), string(k.Resource), k.Pool, k.CapacityType, k.InstanceType, k.Tenant,
		k.CostCode, k.Namespace, k.Workload, k.PriceSource}
}

func makeKey(t [keyFields]string) ledger.Key {
	return ledger.Key{Kind: ledger.Kind(t[0]), Resource: ledger.Resource(t[1]), Pool: t[2], CapacityType: t[3],
		InstanceType: t[4], Tenant: t[5], CostCode: t[6], Namespace: t[7], Workload: t[8], PriceSource: t[9]}
}

// encode returns a file with records. Each text and each key of a row is written once, and then referred
// to by its number. Figures are differences to the preceding record, since most workloads cost the same
// in each hour. Every prefix of complete frames can be read.
func encode(records []Record) ([]byte, error) {
	e := encoder{texts: map[string]uint64{}, keys: map[ledger.Key]uint64{}}
	file := []byte(magic)
	for i := range records {
		e.body = e.body[:0]
		if err := e.addRecord(&records[i]); err != nil {
			return nil, err
		}
		payload, err := compress(e.body)
		if err != nil {
			return nil, err
		}
		if len(payload) > maxFrame {
			return nil, fmt.Errorf("the record of %s has %d bytes, more than %d", records[i].From, len(payload), maxFrame)
		}
		file = appendFrame(file, payload)
	}
	return file, nil
}

func compress(body []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

type encoder struct {
	body     []byte
	texts    map[string]uint64
	keys     map[ledger.Key]uint64
	previous [][valueCount]int64
}

func (e *encoder) addNumber(n uint64) { e.body = binary.AppendUvarint(e.body, n) }

func (e *encoder) addSigned(n int64) { e.body = binary.AppendVarint(e.body, n) }

// addCount adds the length of a list.
func (e *encoder) addCount(n int) { e.addNumber(uint64(n)) } //nolint:gosec // no length is negative

func (e *encoder) addText(text string) {
	number, known := e.texts[text]
	if known {
		e.addNumber(number)
		return
	}
	number = uint64(len(e.texts))
	e.texts[text] = number
	e.addNumber(number)
	e.addCount(len(text))
	e.body = append(e.body, text...)
}

func (e *encoder) addSpans(spans []ledger.Span) {
	e.addCount(len(spans))
	for _, s := range spans {
		e.addSigned(s.From.Unix())
		e.addSigned(s.Until.Unix() - s.From.Unix())
	}
}

func (e *encoder) addRecord(r *Record) error {
	e.addSpans([]ledger.Span{r.Span})
	e.addNumber(r.Epoch)
	e.addNumber(r.Revision)
	e.addText(r.Holder)
	e.addText(r.Currency)
	for _, sum := range []money.Amount{r.Nodes, r.Volumes, r.LoadBalancers} {
		e.addSigned(int64(sum))
	}
	e.addSpans(r.Gaps)
	e.addSpans(r.Missing)
	e.addCount(len(r.Exclusive))
	for _, x := range r.Exclusive {
		e.addText(x.Pool)
		e.addText(x.Tenant)
	}
	return e.addRows(r.Rows)
}

// addRows adds rows in the order of the numbers of their keys.
func (e *encoder) addRows(rows []ledger.Row) error {
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
			for _, text := range listTexts(o.row.Key) {
				e.addText(text)
			}
			e.previous = append(e.previous, [valueCount]int64{})
		}
		values := listValues(o.row)
		for i, v := range values {
			e.addSigned(v - e.previous[o.number][i])
		}
		e.previous[o.number] = values
	}
	return nil
}
