package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/heartbeat"
	"croft.dev/croft/internal/scheme"
)

// sight is the counts at one point in time.
type sight struct {
	croft, everybody requests
	resources        requests // all clients', by resource
	versions         map[string]string
}

// measureSteady leaves a settled cluster unchanged and counts its writes. The alternative is
// all clients' writes, which shows that the counting works, since leases are always renewed.
// croft's operator renews one, its heartbeat.
func measureSteady(ctx context.Context, b *bench) ([]comparison, error) {
	s, err := b.settle(ctx)
	if err != nil {
		return nil, err
	}
	before, err := look(ctx, s)
	if err != nil {
		return nil, err
	}
	say("steady: watching for %s", b.window)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(b.window):
	}
	after, err := look(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := s.sameOperator(ctx); err != nil {
		return nil, err
	}

	raw := struct {
		Croft     requests `json:"croftRequests"`
		Everybody requests `json:"everybodysRequests"`
		Objects   int      `json:"objects"`
		Moved     []string `json:"movedObjects"`
	}{after.croft.since(before.croft).withoutReviews(after.resources.since(before.resources)), after.everybody.since(before.everybody), len(after.versions), moved(before.versions, after.versions)}
	writes := raw.Croft.writes()
	found := []comparison{{
		Name: fmt.Sprintf("steady state, %d tenants", b.tenants), Unit: inWrites, Raw: raw,
		Croft: writes, Beside: raw.Everybody.writes(),
		Note: fmt.Sprintf("in %s, beside everybody's; croft's are its heartbeat; it read %g times; of its %d objects %d moved",
			b.window, raw.Croft["GET"], raw.Objects, len(raw.Moved)),
	}}
	if beats := float64(b.window/heartbeat.Interval) + 1; writes > beats {
		return found, fmt.Errorf("croft promises to write nothing but its heartbeat in steady state, and sent %v; objects that moved: %v", raw.Croft, raw.Moved)
	}
	return found, nil
}

func look(ctx context.Context, s *settled) (sight, error) {
	var now sight
	admin, err := client.New(s.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return now, err
	}
	if now.versions, err = versions(ctx, admin); err != nil {
		return now, err
	}
	if now.everybody, err = everybodysRequests(ctx, s.Config, "verb"); err != nil {
		return now, err
	}
	if now.resources, err = everybodysRequests(ctx, s.Config, "resource"); err != nil {
		return now, err
	}
	now.croft, err = s.operator.requests(ctx)
	return now, err
}

// everybodysRequests returns the requests that the API server has answered, by a label.
func everybodysRequests(ctx context.Context, config *rest.Config, label string) (requests, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return scrape(ctx, c, config.Host+"/metrics", "apiserver_request_total", label)
}
