package report

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"croft.dev/croft/internal/cost/money"
)

const (
	oneDay = 24 * time.Hour
	// baseDays is the number of days whose cost continues in a forecast: a week has all weekdays.
	baseDays = 7
)

// Forecast is the expected cost of the calendar month in UTC: the cost so far, and for the rest of the
// month the mean cost of the last complete days.
type Forecast struct {
	From     time.Time `json:"from"`
	Now      time.Time `json:"now"`
	Until    time.Time `json:"until"`
	Currency string    `json:"currency"`
	By       string    `json:"by"`
	// BaseFrom and BaseUntil contain the days whose mean cost continues: seven, or all that have a cost.
	BaseFrom  time.Time       `json:"baseFrom"`
	BaseUntil time.Time       `json:"baseUntil"`
	Lines     []*ForecastLine `json:"lines"`
	Total     *ForecastLine   `json:"total"`
	Limits    []string        `json:"limits"`
}

// ForecastLine is the forecast for one tenant, pool or other group.
type ForecastLine struct {
	Name string `json:"name"`
	// SoFar is the cost since the beginning of the month, PerDay the mean cost of a day, and Month
	// the expected cost of the month.
	SoFar  money.Amount `json:"soFar"`
	PerDay money.Amount `json:"perDay"`
	Month  money.Amount `json:"month"`

	rank int
	// byDay is the cost of each complete day of the base, the last one first.
	byDay [baseDays]money.Amount
}

// Forecaster adds up charges.
type Forecaster struct {
	builder         *builder
	now, from, base time.Time
	today, until    time.Time
	first           time.Time
	lines           map[string]*ForecastLine
}

// NewForecaster returns a forecaster for the month of now.
func NewForecaster(by string, now time.Time) *Forecaster {
	now = now.UTC().Truncate(time.Second)
	from := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	today := now.Truncate(oneDay)
	return &Forecaster{builder: newBuilder(by), now: now, from: from, today: today, until: from.AddDate(0, 1, 0),
		base: today.Add(-baseDays * oneDay), lines: map[string]*ForecastLine{}}
}

// From returns the time from which on charges are needed.
func (f *Forecaster) From() time.Time {
	if f.base.Before(f.from) {
		return f.base
	}
	return f.from
}

// Add adds a charge. Earlier and later ones are left out.
func (f *Forecaster) Add(c *Charge) error {
	if c.From.Before(f.From()) || c.Until.After(f.now) {
		return nil
	}
	if f.first.IsZero() || c.From.Before(f.first) {
		f.first = c.From
	}
	own, idle, _ := f.builder.split(&c.Row)
	name, rank := f.builder.nameLine(&c.Row)
	line := f.lines[name]
	if line == nil {
		line = &ForecastLine{Name: name, rank: rank}
		f.lines[name] = line
	}
	if !c.From.Before(f.from) {
		line.SoFar += own + idle
	}
	if !c.From.Before(f.base) && c.From.Before(f.today) {
		line.byDay[int(f.today.Sub(c.From.Truncate(oneDay))/oneDay)-1] += own + idle
	}
	return nil
}

// SumSoFar returns the cost since the beginning of the month, by the names of lines.
func (f *Forecaster) SumSoFar() map[string]money.Amount {
	all := make(map[string]money.Amount, len(f.lines))
	for name, line := range f.lines {
		all[name] = line.SoFar
	}
	return all
}

// GetMonth returns the beginning of the month.
func (f *Forecaster) GetMonth() time.Time { return f.from }

// Finish computes the forecast. It returns an error without a complete day.
func (f *Forecaster) Finish(currency string, limits []string) (*Forecast, error) {
	r := &Forecast{From: f.from, Now: f.now, Until: f.until, Currency: currency, By: f.builder.by, BaseFrom: f.base, BaseUntil: f.today,
		Lines: slices.Collect(maps.Values(f.lines)), Total: &ForecastLine{Name: "total"}, Limits: append([]string{}, limits...)}
	if begin := f.first.Add(oneDay - 1).Truncate(oneDay); begin.After(r.BaseFrom) {
		r.BaseFrom = begin
	}
	if f.first.IsZero() || !r.BaseFrom.Before(r.BaseUntil) {
		return nil, errors.New("a forecast needs the cost of a complete day: try again tomorrow")
	}
	days := int64(r.BaseUntil.Sub(r.BaseFrom) / oneDay)
	rest := int64(f.until.Sub(f.now) / time.Second)
	for _, line := range r.Lines {
		var sum money.Amount
		for _, amount := range line.byDay[:days] {
			sum += amount
		}
		line.PerDay = money.Scale(sum, 1, days)
		line.Month = line.SoFar + money.Scale(sum, rest, days*int64(oneDay/time.Second))
		r.Total.SoFar += line.SoFar
		r.Total.PerDay += line.PerDay
		r.Total.Month += line.Month
	}
	slices.SortFunc(r.Lines, func(a, b *ForecastLine) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.Month, a.Month), strings.Compare(a.Name, b.Name))
	})
	return r, nil
}
