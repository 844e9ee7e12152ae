package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"croft.dev/croft/hack/internal/machine"
)

// unit is the unit of a comparison.
type unit string

const (
	inSeconds unit = "seconds"
	inBytes   unit = "bytes"
	inWrites  unit = "writes"
	inReads   unit = "reads"
	// inRequests is for means, such as requests per tenant.
	inRequests unit = "requests"
)

func (u unit) formatValue(v float64) string {
	switch {
	case u == inSeconds && v < 1:
		return fmt.Sprintf("%.3g ms", v*1000)
	case u == inSeconds:
		return fmt.Sprintf("%.2f s", v)
	case u == inBytes:
		return machine.FormatBytes(v)
	case u == inRequests:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.0f %s", v, u)
	}
}

// comparison is one line of the table: croft compared with an alternative, in one run.
type comparison struct {
	Name        string  `json:"name"`
	Unit        unit    `json:"unit"`
	Croft       float64 `json:"croft"`
	Alternative float64 `json:"beside"`
	// Note describes the alternative, and how to read the figures.
	Note string `json:"note"`
	// Raw are the samples of the figures.
	Raw any `json:"raw,omitempty"`
}

// getRatio returns croft's figure divided by the alternative's, and false if that is zero.
func (c comparison) getRatio() (float64, bool) {
	if c.Alternative == 0 {
		return 0, false
	}
	return c.Croft / c.Alternative, true
}

// MarshalJSON adds the ratio.
func (c comparison) MarshalJSON() ([]byte, error) {
	type plain comparison
	with := struct {
		plain
		Ratio *float64 `json:"ratio"`
	}{plain: plain(c)}
	if ratio, ok := c.getRatio(); ok {
		with.Ratio = &ratio
	}
	return json.Marshal(with)
}

// report has the results of one run.
type report struct {
	Machine     machine.Machine `json:"machine"`
	Started     time.Time       `json:"started"`
	Seconds     float64         `json:"seconds"`
	Comparisons []comparison    `json:"comparisons"`
}

// print writes the table.
func (r report) print(w io.Writer) error {
	if len(r.Comparisons) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "%s; %.0f s in all\n\n", r.Machine, r.Seconds); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	// Flush returns the error of any preceding write.
	_, _ = fmt.Fprintln(table, "MEASUREMENT\tCROFT\tBESIDE\tRATIO\tNOTE")
	for _, c := range r.Comparisons {
		ratio := "-"
		if value, ok := c.getRatio(); ok {
			ratio = fmt.Sprintf("%.2f×", value)
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", c.Name, c.Unit.formatValue(c.Croft), c.Unit.formatValue(c.Alternative), ratio, c.Note)
	}
	return table.Flush()
}

// save writes the raw data to a file, unless path is empty.
func (r report) save(path string) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// measureInTurn runs measurements one after the other, until one fails.
func measureInTurn(ctx context.Context, measurements ...func(context.Context) ([]comparison, error)) (found []comparison, err error) {
	for _, measure := range measurements {
		more, err := measure(ctx)
		found = append(found, more...)
		if err != nil {
			return found, err
		}
	}
	return found, nil
}
