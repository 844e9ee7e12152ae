package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/costs"
	"croft.dev/croft/internal/dashboard/page"
)

// showCost shows the costs of the tenant of a namespace, or of the platform. The ledger decides which costs
// the user may read.
func (d *dashboard) showCost(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error) {
	scope, by := page.Scope{}, report.ByTenant
	if r.PathValue("namespace") != "" {
		namespace, m, err := readRules(ctx, c, r)
		if err != nil {
			return page.Page{}, err
		}
		scope, by = page.Scope{Namespace: namespace, Tenant: m.Tenant}, report.ByWorkload
	}
	if d.Ledger == nil {
		return page.NewCostProblem(scope, page.NoLedger), nil
	}
	if chosen := r.URL.Query().Get("by"); slices.Contains(report.Groupings(), chosen) {
		by = chosen
	}
	history, err := d.Ledger.ReadHistory(ctx, c.Token(), scope.Namespace, by, time.Now())
	switch {
	case errors.Is(err, costs.ErrForbidden):
		return page.Page{}, errMissing
	case errors.Is(err, costs.ErrUnknownUser):
		return page.NewCostProblem(scope, page.UnknownUser), nil
	case errors.Is(err, costs.ErrUnsupported):
		return page.NewCostProblem(scope, page.OldLedger), nil
	case err != nil:
		d.Log.WarnContext(ctx, "the ledger did not answer", "path", r.URL.Path, "user", findUser(r), "error", err)
		return page.NewCostProblem(scope, page.NoLedgerAnswer), nil
	}
	return page.NewCost(scope, history), nil
}
