package server

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/nodes"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/walls"
)

func showPools(ctx context.Context, c *cluster.Client, _ *http.Request) (page.Page, error) {
	s, err := nodes.Gather(ctx, c)
	if err != nil {
		return page.Page{}, err
	}
	return page.NewPools(s, time.Now()), nil
}

// showStarts shows the nodes of the pool in the path, or of all pools.
func showStarts(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error) {
	pool := r.PathValue("pool")
	if pool != "" && len(validation.IsDNS1123Subdomain(pool)) > 0 {
		return page.Page{}, errMissing // the page repeats the name in a command
	}
	s, err := nodes.GatherStarts(ctx, c, pool)
	if err != nil {
		return page.Page{}, err
	}
	return page.NewStarts(s, time.Now()), nil
}

func showWalls(ctx context.Context, c *cluster.Client, _ *http.Request) (page.Page, error) {
	s, err := walls.Gather(ctx, c, time.Now())
	if err != nil {
		return page.Page{}, err
	}
	return page.NewWalls(s, time.Now()), nil
}
