package report

import (
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
)

// Charge is a row of the ledger with its time: an hour, a part of an hour, or a day.
type Charge struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	ledger.Row
}

// Own returns the charge without its share of the idle cost. It is 0 for idle capacity, whose cost is
// distributed.
func (c *Charge) Own() money.Amount {
	if c.Kind == ledger.Idle {
		return 0
	}
	return c.Cost
}

// Total returns the charge with its share of the idle cost. The sum over all charges is the cost of
// everything.
func (c *Charge) Total() money.Amount { return c.Own() + c.Idle }

// Estimated returns the estimated part of Total.
func (c *Charge) Estimated() money.Amount {
	if c.Kind == ledger.Idle {
		return c.EstimatedIdle
	}
	return c.EstimatedCost + c.EstimatedIdle
}

// ListCharges calls add for each row of a period, in the order of time.
func ListCharges(in ledger.Input, period ledger.Span, add func(*Charge) error) error {
	l, err := ledger.New(in)
	if err != nil {
		return err
	}
	for _, span := range ledger.Split(period) {
		if err := addCharges(span, l.Compute(span).Rows, add); err != nil {
			return err
		}
	}
	return nil
}

// ListStoredCharges calls add for each row in the report's currency, in the order of days. add must not keep the charge.
func ListStoredCharges(in Stored, add func(*Charge) error) error {
	var c Charge
	return in.eachRow(func(record int, row *ledger.Row) error {
		span := in.Records[record].Span
		c = Charge{From: span.From.UTC(), Until: span.Until.UTC(), Row: *row}
		return add(&c)
	})
}

func addCharges(span ledger.Span, rows []ledger.Row, add func(*Charge) error) error {
	for i := range rows {
		if err := add(&Charge{From: span.From.UTC(), Until: span.Until.UTC(), Row: rows[i]}); err != nil {
			return err
		}
	}
	return nil
}
