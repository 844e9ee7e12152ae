package server

import (
	"context"
	"net/http"
	"time"

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

func showWalls(ctx context.Context, c *cluster.Client, _ *http.Request) (page.Page, error) {
	s, err := walls.Gather(ctx, c, time.Now())
	if err != nil {
		return page.Page{}, err
	}
	return page.NewWalls(s, time.Now()), nil
}
