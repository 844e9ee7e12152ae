package cli

import (
	"context"
	"time"

	"croft.dev/croft/internal/cost/report"
)

// forecastCost prints the expected cost of the month.
func (a *app) forecastCost(ctx context.Context, o costOptions) error {
	now := time.Now()
	f := report.NewForecaster(o.by, now)
	// The period of a request ends now, and begins with an hour. Earlier charges are left out.
	o.since = now.Sub(f.From()).Truncate(time.Second) + time.Hour
	var r *report.Report
	err := a.readCharges(ctx, o, func(found *report.Report) (func(*report.Charge) error, error) {
		r = found
		return f.Add, nil
	})
	if err != nil {
		return err
	}
	limits := r.Limits
	for _, price := range r.MissingPrices {
		limits = append(limits, "no price, and no cost: "+price)
	}
	forecast, err := f.Finish(r.Currency, limits)
	if err != nil {
		return toFailure(err)
	}
	if o.output == formatJSON || o.output == formatYAML {
		return o.output.print(a.out, forecast)
	}
	a.printForecast(forecast)
	return nil
}

func (a *app) printForecast(f *report.Forecast) {
	printSafely(a.out, "from %s until %s, in %s: the cost until %s, and then\nthe mean cost of the %d complete days from %s until %s\n\n",
		f.From.Format(time.RFC3339), f.Until.Format(time.RFC3339), f.Currency, f.Now.Format(time.RFC3339),
		int(f.BaseUntil.Sub(f.BaseFrom).Hours()/24), f.BaseFrom.Format(time.RFC3339), f.BaseUntil.Format(time.RFC3339))
	var rows [][]string
	for _, line := range append(f.Lines, f.Total) {
		rows = append(rows, []string{line.Name, line.SoFar.Format(4), line.PerDay.Format(4), line.Month.Format(4)})
	}
	printTable(a.out, []string{formatGrouping(f.By), "SO FAR", "PER DAY", "MONTH"}, rows)
	if len(f.Limits) > 0 {
		printSafely(a.out, "\n")
	}
	for _, limit := range f.Limits {
		printSafely(a.out, "~ %s\n", limit)
	}
}
