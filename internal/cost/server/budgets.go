package server

import (
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"croft.dev/croft/internal/cost/collect"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/declare/budget"
)

// answerBudgets responds with the cost of each tenant in this month. The caller, croft's operator, has no
// other right to costs, and a token that is for the ledger alone. The answer is the same for all callers: each
// tenant's cost as its own people may read it. So no stage of a budget reveals the cost of another tenant.
func (s *server) answerBudgets(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" {
		s.refuse(w, &refusal{http.StatusBadRequest, budget.Path + " has no parameters"})
		return
	}
	s.respond(w, r, budget.Audience, func(caller authenticationv1.UserInfo) error {
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
		return writeJSON(w, s.sumMonth(view))
	})
}

// sumMonth adds up the cost of each tenant in the month of a view, and forecasts it.
func (s *server) sumMonth(view collect.View) budget.Answer {
	f := report.NewForecaster(report.ByTenant, view.Now)
	answer := budget.Answer{
		Month: budget.FormatMonth(view.Now), Now: view.Now, Currency: view.Next.Currency,
		Complete: isComplete(f.GetMonth(), view), Tenants: map[string]budget.Figures{},
	}
	own := report.Stored{Now: view.Now, Next: view.Next, Records: make([]store.Record, len(view.Records))}
	for i := range view.Records {
		own.Records[i] = s.keepOwn(&view.Records[i])
	}
	_ = report.ListStoredCharges(own, f.Add) // Add returns no error
	for name, amount := range f.SumSoFar() {
		answer.Tenants[name] = budget.Figures{Spent: int64(amount)}
	}
	forecast, err := f.Finish(answer.Currency, nil)
	if err != nil {
		return answer // there is no complete day yet
	}
	for _, line := range forecast.Lines {
		figures := answer.Tenants[line.Name]
		month := int64(line.Month)
		figures.Forecast = &month
		answer.Tenants[line.Name] = figures
	}
	return answer
}

// keepOwn returns the rows of a record that belong to tenants, each as its own tenant's people may read it.
func (s *server) keepOwn(r *store.Record) store.Record {
	own := store.Record{Span: r.Span, Currency: r.Currency}
	for i := range r.Rows {
		row := r.Rows[i]
		if row.Kind != ledger.Tenant || row.Tenant == "" {
			continue
		}
		reader := &access{tenant: row.Tenant, namespaces: map[string]bool{}, whole: true}
		keep := true
		for _, f := range s.filters {
			kept, _ := f.keep(reader, r, &row)
			keep = keep && kept
		}
		if keep {
			own.Rows = append(own.Rows, row)
		}
	}
	return own
}

// isComplete reports whether a view has a record of each hour since a time, in one currency.
func isComplete(since time.Time, view collect.View) bool {
	for i := range view.Records {
		if view.Records[i].Until.After(since) && view.Records[i].Currency != view.Next.Currency {
			return false
		}
	}
	return len(store.FindMissing(ledger.Span{From: since, Until: view.Now}, view.Records)) == 0
}
