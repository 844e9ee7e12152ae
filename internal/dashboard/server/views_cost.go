package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
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
	p, err := d.readCost(ctx, c, r, scope, by)
	if err != nil {
		return page.Page{}, err
	}
	tenants, err := readBudgets(ctx, c, scope)
	if err != nil {
		return page.Page{}, err
	}
	return page.AddBudgets(p, tenants), nil
}

// readBudgets returns the tenant of a scope, or all tenants for the platform, with the budgets in their status. A user
// who may not read them gets none: croft proxy shows teams their own tenant, and other API servers do not.
func readBudgets(ctx context.Context, c client.Reader, s page.Scope) ([]v1alpha1.Tenant, error) {
	tenants := make([]v1alpha1.Tenant, 1)
	var err error
	if s.Namespace == "" {
		var list v1alpha1.TenantList
		err = c.List(ctx, &list)
		tenants = list.Items
	} else {
		err = c.Get(ctx, client.ObjectKey{Name: s.Tenant}, &tenants[0])
	}
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return tenants, nil
}

// readCost returns the page of the costs that the ledger returns for the user.
func (d *dashboard) readCost(ctx context.Context, c *cluster.Client, r *http.Request, scope page.Scope, by string) (page.Page, error) {
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
