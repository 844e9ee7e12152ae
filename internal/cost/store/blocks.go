package store

import (
	"fmt"

	"croft.dev/croft/internal/cost/ledger"
)

// A file of records begins with an index: the records without their rows, and the places of blocks. The blocks follow.
// A block has the rows of some tenants in all records of the file, so that the rows of one tenant are in one block. The
// first blocks have all rows. The others have the totals, from which most answers about all tenants follow.

const (
	// rowsInBlock is the number of rows in one record after which a block ends. An answer about one tenant
	// decompresses a block of each file. Smaller blocks compress worse.
	rowsInBlock = 200
	// totalsInBlock limits the memory of a merge. Only answers about all tenants read totals.
	totalsInBlock = 1000
	// mostPlainRecords is the number of records in a file whose totals are not compressed: decompression would
	// take longer than all the rest of an answer. In the file of a day's hours, most figures do not change from
	// one hour to the next, so that compression saves more and takes less time.
	mostPlainRecords = 2
)

// block is the place of the rows of some tenants in a file.
type block struct {
	// last is the last tenant of the block. Blocks are in the order of tenants.
	last string
	// offset is where the frame with the rows begins, and length its size.
	offset int64
	length int
}

// fileWriter builds a file of records. Only the rows of incomplete blocks are in memory.
type fileWriter struct {
	records      []Record
	rows, totals section
	packer       packer
}

// section has the blocks of all rows, or of all totals.
type section struct {
	// limit is the number of rows after which a block ends.
	limit int
	form  byte
	// rows are the rows of the incomplete block, by record, and size the highest number of rows of a record.
	rows   [][]ledger.Row
	size   int
	last   string
	blocks []block
	frames []byte
}

// newFileWriter returns a writer of a file with records, whose rows must be added.
func newFileWriter(records []Record) *fileWriter {
	w := &fileWriter{records: records, rows: section{limit: rowsInBlock, form: deflateForm}, totals: section{limit: totalsInBlock, form: deflateForm}}
	if len(records) <= mostPlainRecords {
		w.totals.form = plainForm
	}
	return w
}

// addTenant adds the rows of a tenant, by record. Tenants are in the order of their names.
func (w *fileWriter) addTenant(tenant string, rows [][]ledger.Row) error {
	if err := w.rows.add(tenant, rows, &w.packer); err != nil {
		return err
	}
	totals := make([][]ledger.Row, len(rows))
	for i := range rows {
		totals[i] = sumRows(makeTotalKey, rows[i])
	}
	return w.totals.add(tenant, totals, &w.packer)
}

func (s *section) add(tenant string, rows [][]ledger.Row, p *packer) error {
	if s.rows == nil {
		s.rows = make([][]ledger.Row, len(rows))
	}
	for i := range rows {
		s.rows[i] = append(s.rows[i], rows[i]...)
		s.size = max(s.size, len(s.rows[i]))
	}
	s.last = tenant
	if s.size < s.limit {
		return nil
	}
	return s.endBlock(p)
}

// endBlock writes the block, if it has rows.
func (s *section) endBlock(p *packer) error {
	if s.size == 0 {
		return nil
	}
	e := newRowEncoder(len(s.rows))
	for i := range s.rows {
		if err := e.addRows(s.rows[i]); err != nil {
			return err
		}
		s.rows[i] = s.rows[i][:0]
	}
	payload, err := p.pack(e.listColumns(), s.form)
	if err != nil {
		return err
	}
	if len(payload) > maxFrame {
		return fmt.Errorf("the block until tenant %q has %d bytes, more than %d", s.last, len(payload), maxFrame)
	}
	before := len(s.frames)
	s.frames = appendFrame(s.frames, payload)
	s.blocks = append(s.blocks, block{last: s.last, length: len(s.frames) - before})
	s.size = 0
	return nil
}

// finish returns the file.
func (w *fileWriter) finish() ([]byte, error) {
	index := newEncoder()
	index.addCount(len(w.records))
	for i := range w.records {
		index.addRecord(&w.records[i])
	}
	for _, s := range []*section{&w.rows, &w.totals} {
		if err := s.endBlock(&w.packer); err != nil {
			return nil, err
		}
		index.addBlocks(s.blocks)
	}
	if len(index.body) > maxFrame {
		return nil, fmt.Errorf("the index has %d bytes, more than %d", len(index.body), maxFrame)
	}
	file := appendFrame([]byte(magic), index.body)
	file = append(file, w.rows.frames...)
	return append(file, w.totals.frames...), nil
}
