package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/heartbeat"
)

// snapshot is the counts at one point in time.
type snapshot struct {
	croft, everybody requests
	resources        requests // all clients', by resource
	versions         map[string]string
}

// measureSteady leaves a settled cluster unchanged and counts its writes. The alternative is
// all clients' writes, which shows that the counting works, since leases are always renewed.
// croft's operator renews one, its heartbeat.
func measureSteady(ctx context.Context, b *bench) ([]comparison, error) {
	s, err := b.getSettled(ctx)
	if err != nil {
		return nil, err
	}
	return b.watchSteady(ctx, s)
}

// watchSteady compares the writes in a cluster that is left unchanged.
func (b *bench) watchSteady(ctx context.Context, s *settledCluster) ([]comparison, error) {
	before, err := takeSnapshot(ctx, s)
	if err != nil {
		return nil, err
	}
	printProgress("steady: watching for %s", b.window)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(b.window):
	}
	after, err := takeSnapshot(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := s.checkOperator(ctx); err != nil {
		return nil, err
	}

	raw := struct {
		Croft     requests `json:"croftRequests"`
		Everybody requests `json:"everybodysRequests"`
		Objects   int      `json:"objects"`
		Moved     []string `json:"movedObjects"`
	}{after.croft.subtract(before.croft).subtractReviews(after.resources.subtract(before.resources)), after.everybody.subtract(before.everybody), len(after.versions), listMoved(before.versions, after.versions)}
	writes := raw.Croft.countWrites()
	found := []comparison{{
		Name: fmt.Sprintf("steady state, %d tenants", b.tenants), Unit: inWrites, Raw: raw,
		Croft: writes, Alternative: raw.Everybody.countWrites(),
		Note: fmt.Sprintf("in %s, compared with all clients' writes; croft's are its heartbeat; it read %g times; of its %d objects %d changed",
			b.window, raw.Croft["GET"], raw.Objects, len(raw.Moved)),
	}}
	if beats := float64(b.window/heartbeat.Interval) + 1; writes > beats {
		return found, fmt.Errorf("in steady state croft should write only its heartbeat, but sent %v; changed objects: %v", raw.Croft, raw.Moved)
	}
	return found, nil
}

func takeSnapshot(ctx context.Context, s *settledCluster) (snapshot, error) {
	var now snapshot
	admin, err := client.New(s.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return now, err
	}
	if now.versions, err = readVersions(ctx, admin); err != nil {
		return now, err
	}
	if now.everybody, err = countAllRequests(ctx, s.Config, "verb"); err != nil {
		return now, err
	}
	if now.resources, err = countAllRequests(ctx, s.Config, "resource"); err != nil {
		return now, err
	}
	now.croft, err = s.operator.countRequests(ctx)
	return now, err
}

// countAllRequests returns the requests that the API server has answered, by a label.
func countAllRequests(ctx context.Context, config *rest.Config, label string) (requests, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return scrapeCounter(ctx, c, config.Host+"/metrics", "apiserver_request_total", label)
}
