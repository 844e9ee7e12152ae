package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"croft.dev/croft/internal/cost/focus"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/opencost"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/server"
)

// formatFocus is the form of the FinOps Open Cost and Usage Specification, as CSV.
const formatFocus format = "focus"

// formatOpenCost is the form of OpenCost's answers to requests for /allocation, as JSON.
const formatOpenCost format = "opencost"

// maxCharges limits the size of the ledger's answer with charges. It is read row by row.
const maxCharges = 8 << 30

// beginCharges takes the report of a period, and returns the function that takes its charges.
type beginCharges func(*report.Report) (func(*report.Charge) error, error)

// readCharges reads the charges of a period from the ledger, or computes them from the objects in the cluster.
func (a *app) readCharges(ctx context.Context, o costOptions, begin beginCharges) error {
	if o.ledger != "" {
		return a.readLedgerCharges(ctx, o, begin)
	}
	in, period, currency, err := a.readCostInput(ctx, o)
	if err != nil {
		return err
	}
	r, err := report.Build(in, report.Options{Period: period, By: report.ByTenant, Currency: currency})
	if err != nil {
		return toFailure(err)
	}
	add, err := begin(r)
	if err != nil {
		return err
	}
	return toFailure(report.ListCharges(in, period, add))
}

// readLedgerCharges reads the charges of a period from the ledger.
func (a *app) readLedgerCharges(ctx context.Context, o costOptions, begin beginCharges) error {
	o.by = report.ByTenant
	response, err := a.queryLedger(ctx, o, server.ChargesPath)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	rows := json.NewDecoder(io.LimitReader(response.Body, maxCharges))
	answer, err := o.readAnswer(response, rows)
	if err != nil {
		return err
	}
	add, err := begin(&answer.Report)
	if err != nil {
		return err
	}
	var sum money.Amount
	for {
		var c report.Charge
		err := rows.Decode(&c)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return failuref("the ledger's answer ends early: %w: try again", err)
		}
		sum += c.Total()
		if err := add(&c); err != nil {
			return toFailure(err)
		}
	}
	// A connection that ends early may look like the end of the answer.
	if sum != answer.Total.Total {
		return failuref("the ledger's answer is incomplete: its rows add up to %s, not %s: try again", sum, answer.Total.Total)
	}
	return nil
}

// writeFocus writes charges in the form of FOCUS to standard output, and the limits of the figures to
// standard error.
func (a *app) writeFocus(ctx context.Context, o costOptions) error {
	account := o.account
	if account == "" {
		var err error
		if account, err = a.nameCluster(); err != nil {
			return err
		}
	}
	var w *focus.Writer
	err := a.readCharges(ctx, o, func(r *report.Report) (func(*report.Charge) error, error) {
		w = focus.NewWriter(a.out, account, r.Currency)
		a.printLimits(r, "no row")
		return w.Write, nil
	})
	if err != nil {
		return err
	}
	return toFailure(w.Flush())
}

// writeOpenCost writes the cost of each workload in the form of OpenCost to standard output, and the limits of the
// figures to standard error.
func (a *app) writeOpenCost(ctx context.Context, o costOptions) error {
	cluster, err := a.nameCluster()
	if err != nil {
		return err
	}
	var set *opencost.Set
	err = a.readCharges(ctx, o, func(r *report.Report) (func(*report.Charge) error, error) {
		set = opencost.New(cluster, r)
		a.printLimits(r, "no cost")
		return set.Add, nil
	})
	if err != nil {
		return err
	}
	return formatJSON.print(a.out, set.Finish())
}

// nameCluster returns the host of the kubeconfig's cluster.
func (a *app) nameCluster() (string, error) {
	config, err := a.loadConfig()
	if err != nil {
		return "", toFailure(err)
	}
	return cmp.Or(strings.TrimPrefix(config.Host, "https://"), "kubernetes"), nil
}

// printLimits prints the limits of figures to standard error. missing is the effect of a missing price.
func (a *app) printLimits(r *report.Report, missing string) {
	for _, limit := range r.Limits {
		printSafely(a.err, "~ %s\n", limit)
	}
	for _, price := range r.MissingPrices {
		printSafely(a.err, "? no price, and %s: %s\n", missing, price)
	}
}

// readAnswer reads the report with which an answer of the ledger begins.
func (o *costOptions) readAnswer(response *http.Response, values *json.Decoder) (*ledgerAnswer, error) {
	var answer ledgerAnswer
	if err := values.Decode(&answer); err != nil || answer.Error == "" && answer.Total == nil {
		return nil, failuref("%s %w: it answers with %s", o.ledger, errNoLedger, response.Status)
	}
	switch response.StatusCode {
	case http.StatusOK:
		return &answer, nil
	case http.StatusUnauthorized:
		return nil, failuref("the ledger does not accept your credentials: %s: log in again (`croft login`), or name a user that has a "+
			"token with --kubeconfig or --context: the ledger accepts no client certificates", escapeLine(answer.Error))
	default:
		return nil, failuref("the ledger at %s: %s", o.ledger, escapeLine(answer.Error))
	}
}
