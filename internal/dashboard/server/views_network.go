package server

import (
	"context"
	"net/http"
	"slices"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/connections"
	"croft.dev/croft/internal/dashboard/hosts"
	"croft.dev/croft/internal/dashboard/page"
)

func showNetwork(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error) {
	namespace, err := readNamespace(r)
	if err != nil {
		return page.Page{}, err
	}
	s, err := connections.Gather(ctx, c, namespace)
	if err != nil {
		return page.Page{}, err
	}
	var peers []connections.Peer
	if s.HasWall() && !s.IsTooLarge() {
		if peers, err = s.Evaluate(); err != nil {
			return page.Page{}, err
		}
	}
	return page.NewNetwork(s, peers), nil
}

// showHosts shows the group of kinds in the path, and the first group without one.
func showHosts(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error) {
	i := slices.IndexFunc(hosts.Groups, func(g hosts.Group) bool { return g.Path == r.PathValue("kinds") })
	if i < 0 {
		return page.Page{}, errMissing
	}
	namespace, m, err := readRules(ctx, c, r)
	if err != nil {
		return page.Page{}, err
	}
	s, err := hosts.Gather(ctx, c, namespace, hosts.Groups[i])
	if err != nil {
		return page.Page{}, err
	}
	return page.NewHosts(namespace, m, s), nil
}
