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
func BuildHistory(in Stored, by string) (*History, error) {
	now := in.Now.UTC()
	h := &History{Now: now, By: by}
	month := FindHistoryStart(1, now)
	builders := [2]*builder{newBuilder(by), newBuilder(by)}
	forecaster := NewForecaster(by, now)
	firstDay := now.Truncate(oneDay).AddDate(0, 0, 1-historyDays)
	// places are the sums and the lines to which the rows of each record count.
	type place struct {
		month, day int
		lines      *builder
	}
	places := make([]place, len(in.Records))
	for i := range in.Records {
		record, p := &in.Records[i], &places[i]
		if record.Currency != in.Next.Currency {
			continue
		}
		from := FindHistoryStart(1, record.From)
		h.Months, p.month = findSum(h.Months, ledger.Span{From: from, Until: from.AddDate(0, 1, 0)})
		p.day = -1
		if day := record.From.UTC().Truncate(oneDay); !day.Before(firstDay) {
			h.Days, p.day = findSum(h.Days, ledger.Span{From: day, Until: day.Add(oneDay)})
		}
		for ago, b := range builders {
			if from.Equal(month.AddDate(0, -ago, 0)) {
				b.hidden, p.lines = in.Hidden, b
			}
		}
	}
	var c Charge
	r, err := buildStored(&in, by, func(record int, row *ledger.Row) error {
		p, span := &places[record], in.Records[record].Span
		c = Charge{From: span.From.UTC(), Until: span.Until.UTC(), Row: *row}
		h.Months[p.month].add(&c)
		if p.day >= 0 {
			h.Days[p.day].add(&c)
		}
		if p.lines != nil {
			p.lines.addRow(row)
		}
		return forecaster.Add(&c)
	})
	if err != nil {
		return nil, err
	}
	h.Currency, h.MissingPrices, h.Limits = r.Currency, r.MissingPrices, r.Limits
	h.ThisMonth, h.LastMonth = builders[0].finishLines(), builders[1].finishLines()
	if forecast, err := forecaster.Finish(h.Currency, nil); err == nil {
		h.Forecast = forecast
	}
	return h, nil
}

// findSum returns the number of the sum of a period, which it adds if it does not exist.
func findSum(sums []Sum, period ledger.Span) ([]Sum, int) {
	i := slices.IndexFunc(sums, func(s Sum) bool { return s.From.Equal(period.From) })
	if i >= 0 {
		return sums, i
	}
	return append(sums, Sum{From: period.From, Until: period.Until}), len(sums)
}

func (s *Sum) add(c *Charge) {
	s.Total += c.Total()
	s.Unknown = s.Unknown || c.Unpriced > 0
}
