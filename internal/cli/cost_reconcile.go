package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"croft.dev/croft/internal/cost/bill"
	"croft.dev/croft/internal/cost/reconcile"
	"croft.dev/croft/internal/cost/report"
)

// reconcileCost compares a bill with croft's figures.
func (a *app) reconcileCost(ctx context.Context, o costOptions) error {
	if o.bill == "-" && (o.prices == "-" || o.metrics == "-") {
		return errors.New("--reconcile and prices cannot both be standard input: name a file for one")
	}
	b, err := a.readBill(o)
	if err != nil {
		return fmt.Errorf("--reconcile %w", err)
	}
	now := time.Now()
	period, err := reconcile.FindPeriod(b, now)
	if err != nil {
		return fmt.Errorf("--reconcile %s: %w", nameInput(o.bill), err)
	}
	// The period of a request ends now, and begins with an hour. Earlier charges are left out.
	o.since = now.Sub(period.From).Truncate(time.Second) + time.Hour
	comparison := reconcile.New(b, period)
	var limits []string
	err = a.readCharges(ctx, o, func(r *report.Report) (func(*report.Charge) error, error) {
		limits = r.Limits
		for _, price := range r.MissingPrices {
			limits = append(limits, "no price, and no cost: "+price)
		}
		return comparison.Add, comparison.CheckCurrency(r.Currency)
	})
	if err != nil {
		return err
	}
	return a.printComparison(comparison.Finish(limits), o.output)
}

func (a *app) readBill(o costOptions) (*bill.Bill, error) {
	in := a.in
	if o.bill != "-" {
		file, err := os.Open(o.bill)
		if err != nil {
			return nil, explainFileError(o.bill, err)
		}
		defer file.Close()
		in = file
	}
	return bill.Read(nameInput(o.bill), in, o.tags)
}

func (a *app) printComparison(r *reconcile.Result, output format) error {
	if output == formatJSON || output == formatYAML {
		return output.print(a.out, r)
	}
	printSafely(a.out, "from %s until %s, in %s, a bill in the form %s\n\n", r.From.Format(time.RFC3339), r.Until.Format(time.RFC3339),
		r.Currency, r.Form)
	var rows [][]string
	for _, line := range append(r.Lines, r.Total) {
		causes := make([]string, len(line.Causes))
		for i, cause := range line.Causes {
			causes[i] = cause.Cause + " " + cause.Amount.Format(4)
		}
		rows = append(rows, []string{line.CostCode, line.Bill.Format(4), line.Croft.Format(4), line.Difference.Format(4),
			strings.Join(causes, ", ")})
	}
	printTable(a.out, []string{"COST CODE", "BILL", "CROFT", "DIFFERENCE", "CAUSE"}, rows)
	if len(r.Limits) > 0 {
		printSafely(a.out, "\n")
	}
	for _, limit := range r.Limits {
		printSafely(a.out, "~ %s\n", limit)
	}
	return nil
}
