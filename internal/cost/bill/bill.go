// Package bill reads a cloud's bill: AWS' Cost and Usage Report 2.0 or FOCUS 1.2, as CSV, plain or compressed
// with gzip. It adds up the lines while it reads them, so that memory does not depend on the size of the
// bill. It does no I/O of its own.
package bill

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"croft.dev/croft/internal/cost/money"
)

// Class is the type of a bill's line.
type Class string

// The classes of lines. The first three are in the ledger, too.
const (
	Nodes         Class = "nodes"
	Volumes       Class = "volumes"
	LoadBalancers Class = "load balancers"
	// NodeVolumes are the disks of nodes: volumes with the tag of a pool.
	NodeVolumes Class = "disks of nodes"
	// Discounts are lines that only reduce the bill, such as credits.
	Discounts Class = "discounts"
	// Other is everything else, such as traffic, taxes and fees.
	Other Class = "other services"
)

// Key identifies lines that are added up.
type Key struct {
	// From and Until are whole days in UTC that contain the lines, in seconds since 1970.
	From, Until int64
	// CostCode and Pool are the values of tags, or empty.
	CostCode, Pool string
	Class          Class
}

// Sums are the sums of lines.
type Sums struct {
	// Effective is the cost after all discounts, with the parts of commitments that the lines used.
	Effective money.Decimal
	// List is the cost at list prices.
	List money.Decimal
	// Roundings is the number of amounts that each side may have rounded: one for each line and hour.
	Roundings int64
}

// Bill is a bill, added up.
type Bill struct {
	// Form is the name of the form.
	Form     string
	Currency string
	// From and Until contain all usage of nodes, volumes and load balancers.
	From, Until time.Time
	Lines       int64
	Sums        map[Key]*Sums
}

// Options name the tags that croft sets on instances.
type Options struct{ CostCodeTag, PoolTag string }

// maxRow limits the memory for one row. A quote without an end would otherwise read the whole file.
const maxRow = 1 << 20

// maxSums limits the memory for the sums: a year of days with 5,000 cost codes, three classes each.
const maxSums = 6_000_000

// line is one line of a bill.
type line struct {
	from, until     time.Time
	effective, list money.Decimal
	currency        string
	tags            *tags
	class           Class
}

// form reads the lines of one form.
type form interface {
	// read reads a row into a line. The fields of the row are valid until it returns.
	read(row []string, l *line) error
	// name returns the name of the form.
	name() string
}

// fieldError is a problem of one field.
type fieldError struct{ column, message string }

func (e *fieldError) Error() string { return e.column + ": " + e.message }

// Read reads a bill. name is the file's name in errors.
func Read(name string, r io.Reader, o Options) (*Bill, error) {
	text, err := decompress(name, r)
	if err != nil {
		return nil, err
	}
	limited := &rowReader{reader: text}
	rows := csv.NewReader(limited)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		return nil, explain(name, rows, err)
	}
	f, err := findForm(header, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	b := &Bill{Form: f.name(), Sums: map[Key]*Sums{}}
	var l line
	for {
		limited.count = 0
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = f.read(row, &l)
		}
		if err == nil {
			err = b.add(&l)
		}
		if err != nil {
			return nil, explain(name, rows, err)
		}
	}
	if b.From.IsZero() {
		return nil, fmt.Errorf("%s: the bill has no usage of instances, volumes and load balancers", name)
	}
	return b, nil
}

// decompress returns the text of a file, without a byte order mark.
func decompress(name string, r io.Reader) (*bufio.Reader, error) {
	text := bufio.NewReader(r)
	start, err := text.Peek(4)
	switch {
	case len(start) >= 2 && start[0] == 0x1f && start[1] == 0x8b:
		unzipped, err := gzip.NewReader(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		text = bufio.NewReader(unzipped)
	case string(start) == "PAR1":
		return nil, fmt.Errorf("%s: the file is in the Parquet format: export CSV", name)
	case len(start) == 0 && errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: the file is empty", name)
	case err != nil && !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if mark, err := text.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = text.Discard(len(mark))
	}
	return text, nil
}

// rowReader refuses to read more than maxRow bytes for one row.
type rowReader struct {
	reader io.Reader
	count  int
}

var errLongRow = fmt.Errorf("the row is longer than %d bytes: a quote may be missing", maxRow)

func (r *rowReader) Read(p []byte) (int, error) {
	if r.count > maxRow {
		return 0, errLongRow
	}
	n, err := r.reader.Read(p)
	r.count += n
	return n, err
}

// explain returns an error with the file, the line and the column.
func explain(name string, rows *csv.Reader, err error) error {
	var malformed *csv.ParseError
	if errors.As(err, &malformed) {
		message := malformed.Err.Error()
		if errors.Is(malformed.Err, csv.ErrFieldCount) {
			message = "the row has another number of fields than the header"
		}
		return fmt.Errorf("%s:%d: %s", name, malformed.Line, message)
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: the file is empty", name)
	}
	var field *fieldError
	if !errors.As(err, &field) {
		return fmt.Errorf("%s: after byte %d: %w", name, rows.InputOffset(), err)
	}
	at, _ := rows.FieldPos(0)
	return fmt.Errorf("%s:%d: %w", name, at, err)
}

const day = 24 * time.Hour

// add adds a line to the sums.
func (b *Bill) add(l *line) error {
	b.Lines++
	if l.currency != "" && b.Currency == "" {
		b.Currency = strings.Clone(l.currency)
	}
	if l.currency != "" && l.currency != b.Currency {
		return &fieldError{"currency", fmt.Sprintf("%q differs from %q of earlier lines: split the bill by currency", l.currency, b.Currency)}
	}
	if l.class == Volumes && l.tags.pool != "" {
		l.class = NodeVolumes
	}
	if IsCompared(l.class) {
		b.extendPeriod(l)
	}
	key := Key{CostCode: l.tags.costCode, Pool: l.tags.pool, Class: l.class,
		From: l.from.Truncate(day).Unix(), Until: l.until.Add(day - 1).Truncate(day).Unix()}
	sums := b.Sums[key]
	if sums == nil {
		if len(b.Sums) == maxSums {
			return fmt.Errorf("the bill has more than %d combinations of days, cost codes and pools", maxSums)
		}
		sums = &Sums{}
		b.Sums[key] = sums
	}
	sums.Effective.Add(&l.effective)
	sums.List.Add(&l.list)
	sums.Roundings += 1 + int64(l.until.Sub(l.from).Hours())
	return nil
}

func (b *Bill) extendPeriod(l *line) {
	if b.From.IsZero() || l.from.Before(b.From) {
		b.From = l.from
	}
	if l.until.After(b.Until) {
		b.Until = l.until
	}
}

// IsCompared reports whether the ledger contains the cost of a class.
func IsCompared(c Class) bool { return c == Nodes || c == Volumes || c == LoadBalancers }
