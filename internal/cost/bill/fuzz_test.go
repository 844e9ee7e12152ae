package bill

import (
	"strings"
	"testing"
)

// FuzzRows is like FuzzRead with a valid header, so that most inputs reach the fields.
func FuzzRows(f *testing.F) {
	for _, row := range strings.SplitAfter(reportRows, "\n") {
		f.Add(true, row)
	}
	header, rows, _ := strings.Cut(focusRows, "\n")
	for _, row := range strings.SplitAfter(rows, "\n") {
		f.Add(false, row)
	}
	f.Fuzz(func(t *testing.T, isReport bool, row string) {
		text := header + "\n" + row
		if isReport {
			text = reportHeader + row
		}
		b, err := Read("bill.csv", strings.NewReader(text), tagNames)
		switch {
		case err != nil && (!strings.HasPrefix(err.Error(), "bill.csv:") || strings.Contains(err.Error(), "\n")):
			t.Errorf("%q", err)
		case err == nil && (b.Lines == 0 || len(b.Sums) == 0 || b.Until.Before(b.From)):
			t.Errorf("%+v", b)
		}
	})
}
