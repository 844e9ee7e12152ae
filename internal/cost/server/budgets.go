package server

import (
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"croft.dev/croft/internal/cost/collect"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/declare/budget"
)

// answerBudgets responds with the cost of each tenant in this month. The caller, croft's operator, has no
// other right to costs, and a token that is for the ledger alone. The answer is the same for all callers: each
// tenant's cost as its own people may read it. So no stage of a budget reveals the cost of another tenant.
func (s *server) answerBudgets(w http.ResponseWriter, r *http.Request) {
	s.respondBare(w, r, budget.Audience, func(caller authenticationv1.UserInfo) error {
		allowed, err := s.mayGet(r.Context(), caller, "", budget.Subresource)
		if err != nil {
			return err
		}
		if !allowed {
			return errForbidden
		}
		// The view ends with the last computation, which may still be in the last month.
		view, err := s.Source.Read(report.NewForecaster(report.ByTenant, s.Now()).From())
		if err != nil {
			return err
		}
		answer, err := s.sumMonth(view)
		return writeJSON(w, answer, err)
	})
}

// sumMonth adds up the cost of each tenant in the month of a view, and forecasts it.
func (s *server) sumMonth(view collect.View) (budget.Answer, error) {
	records, err := view.Select(store.Selection{Totals: true})
	if err != nil {
		return budget.Answer{}, err
	}
	defer records.Close()
	f := report.NewForecaster(report.ByTenant, view.Now)
	answer := budget.Answer{
		Month: budget.FormatMonth(view.Now), Now: view.Now, Currency: view.Next.Currency,
		Complete: isComplete(f.GetMonth(), view, records.Records), Tenants: map[string]budget.Figures{},
	}
	own := report.Stored{Now: view.Now, Next: view.Next, Records: records.Records}
	own.EachRow = func(visit func(record int, row *ledger.Row) error) error {
		return records.EachRow(func(record int, row *ledger.Row) error {
			if !s.keepOwn(&records.Records[record], row) {
				return nil
			}
			return visit(record, row)
		})
	}
	prices := newPriceSums(view.Now)
	err = report.ListStoredCharges(own, func(c *report.Charge) error {
		prices.add(c)
		return f.Add(c)
	})
	if err != nil {
		return budget.Answer{}, err
	}
	for name, amount := range f.SumSoFar() {
		answer.Tenants[name] = budget.Figures{Spent: int64(amount), Prices: prices.compute(name)}
	}
	// Without a complete day there is no forecast.
	if forecast, err := f.Finish(answer.Currency, nil); err == nil {
		for _, line := range forecast.Lines {
			figures := answer.Tenants[line.Name]
			month := int64(line.Month)
			figures.Forecast = &month
			answer.Tenants[line.Name] = figures
		}
	}
	return answer, nil
}

const oneDay = 24 * time.Hour

// priceSums adds up the cost and the weight of each tenant's requests in a pool since the beginning of the last complete
// day. Their ratio is the price of the nodes that run the tenant's own pods, and does not depend on the pods of
// others. Idle cost is no part of it.
type priceSums struct {
	from time.Time
	sums map[string]map[string]priceSum
}

type priceSum struct {
	cost   money.Amount
	weight int64
}

func newPriceSums(now time.Time) *priceSums {
	return &priceSums{from: now.UTC().Truncate(oneDay).Add(-oneDay), sums: map[string]map[string]priceSum{}}
}

// add adds a charge of a tenant. Earlier ones, volumes and load balancers are left out.
func (p *priceSums) add(c *report.Charge) {
	if c.From.Before(p.from) || c.Resource != ledger.NodeResource || c.Pool == "" {
		return
	}
	pools := p.sums[c.Tenant]
	if pools == nil {
		pools = map[string]priceSum{}
		p.sums[c.Tenant] = pools
	}
	sum := pools[c.Pool]
	pools[c.Pool] = priceSum{sum.cost + c.Own(), sum.weight + c.Weight}
}

// compute returns the prices of a tenant's pools, as budget.Figures has them.
func (p *priceSums) compute(tenant string) map[string]int64 {
	prices := map[string]int64{}
	for pool, sum := range p.sums[tenant] {
		if price, ok := ledger.ScaleToMonth(sum.cost, sum.weight); ok {
			prices[pool] = int64(price)
		}
	}
	return prices
}

// keepOwn changes a row as its own tenant's people may read it. It returns false for a row that belongs to no tenant.
func (s *server) keepOwn(r *store.Record, row *ledger.Row) bool {
	if row.Kind != ledger.Tenant || row.Tenant == "" {
		return false
	}
	reader := &access{tenant: row.Tenant, whole: true}
	for _, f := range s.filters {
		if kept, _ := f.keep(reader, r, row); !kept {
			return false
		}
	}
	return true
}

// isComplete reports whether a view has a record of each hour since a time, in one currency.
func isComplete(since time.Time, view collect.View, records []store.Record) bool {
	for i := range records {
		if records[i].Until.After(since) && records[i].Currency != view.Next.Currency {
			return false
		}
	}
	return len(store.FindMissing(ledger.Span{From: since, Until: view.Now}, records)) == 0
}
