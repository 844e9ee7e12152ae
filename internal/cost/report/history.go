package report

import (
	"slices"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
)

// historyDays is the number of days in a History.
const historyDays = 31

// History is the cost of calendar months and of the last days in UTC, and the forecast of the month.
type History struct {
	Now      time.Time `json:"now"`
	Currency string    `json:"currency"`
	By       string    `json:"by"`
	// Months and Days are in the order of time, and end with the present one.
	Months []Sum `json:"months"`
	Days   []Sum `json:"days"`
	// ThisMonth and LastMonth are the lines of the last two months.
	ThisMonth []*Line `json:"thisMonth"`
	LastMonth []*Line `json:"lastMonth"`
	// Forecast is missing without a complete day.
	Forecast *Forecast `json:"forecast,omitempty"`
	// MissingPrices and Limits are a Report's.
	MissingPrices []string `json:"missingPrices"`
	Limits        []string `json:"limits"`
}

// Sum is the cost of everything in a period.
type Sum struct {
	From  time.Time    `json:"from"`
	Until time.Time    `json:"until"`
	Total money.Amount `json:"total"`
	// Unknown means that a part of the cost is unknown, and missing in Total.
	Unknown bool `json:"unknown,omitempty"`
}

// FindHistoryStart returns the first time of a history of several months.
func FindHistoryStart(months int, now time.Time) time.Time {
	now = now.UTC()
	return time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC).AddDate(0, 1-months, 0)
}

// BuildHistory adds up stored hours and days. The months before the first record are left out.
func BuildHistory(in Stored, by string) *History {
	now := in.Now.UTC()
	r := BuildStored(in, by)
	h := &History{Now: now, Currency: r.Currency, By: by, MissingPrices: r.MissingPrices, Limits: r.Limits}
	month := FindHistoryStart(1, now)
	builders := [2]*builder{newBuilder(by), newBuilder(by)}
	forecaster := NewForecaster(by, now)
	firstDay := now.Truncate(oneDay).AddDate(0, 0, 1-historyDays)
	for i := range in.Records {
		record := &in.Records[i]
		if record.Currency != in.Next.Currency {
			continue
		}
		from := FindHistoryStart(1, record.From)
		h.Months = addRecord(h.Months, ledger.Span{From: from, Until: from.AddDate(0, 1, 0)}, record.Rows)
		if day := record.From.UTC().Truncate(oneDay); !day.Before(firstDay) {
			h.Days = addRecord(h.Days, ledger.Span{From: day, Until: day.Add(oneDay)}, record.Rows)
		}
		for ago, b := range builders {
			if from.Equal(month.AddDate(0, -ago, 0)) {
				b.hidden = in.Hidden
				for j := range record.Rows {
					b.addRow(&record.Rows[j])
				}
			}
		}
	}
	h.ThisMonth, h.LastMonth = builders[0].sortLines(), builders[1].sortLines()
	// Add returns no errors.
	_ = ListStoredCharges(in, forecaster.Add)
	if forecast, err := forecaster.Finish(h.Currency, nil); err == nil {
		h.Forecast = forecast
	}
	return h
}

// addRecord adds the rows of a record to the sum of a period. Records are in the order of time.
func addRecord(sums []Sum, period ledger.Span, rows []ledger.Row) []Sum {
	i := slices.IndexFunc(sums, func(s Sum) bool { return s.From.Equal(period.From) })
	if i < 0 {
		i = len(sums)
		sums = append(sums, Sum{From: period.From, Until: period.Until})
	}
	for j := range rows {
		charge := Charge{Row: rows[j]}
		sums[i].Total += charge.Total()
		sums[i].Unknown = sums[i].Unknown || rows[j].Unpriced > 0
	}
	return sums
}
