package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/hack/internal/metrics"
	"croft.dev/croft/hack/internal/tenants"
)

const (
	// loadWindow is the time for which the API server's CPU time is measured, and loadRate the number of changes
	// of pods a second meanwhile, in all tenants alike.
	loadWindow = 30 * time.Second
	loadRate   = 50
)

// measureLoad returns the CPU time that the API server used per second, while pods of all tenants change.
func (d *dashboardBench) measureLoad(ctx context.Context) (float64, error) {
	http, err := rest.HTTPClientFor(d.cluster.Config)
	if err != nil {
		return 0, err
	}
	before, err := d.readServerCPU(ctx, http)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	ticker := time.NewTicker(time.Second / loadRate)
	defer ticker.Stop()
	for time.Since(start) < loadWindow {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-ticker.C:
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tenants.Name("tenant", rand.N(d.tenants)), Name: "web-1"}}
		// The dashboard shows the reason as the pod's state.
		change := fmt.Sprintf(`{"status":{"reason":"Changed%d"}}`, time.Now().UnixNano())
		if err := d.client.Status().Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
			return 0, err
		}
	}
	after, err := d.readServerCPU(ctx, http)
	return (after - before) / time.Since(start).Seconds(), err
}

func (d *dashboardBench) readServerCPU(ctx context.Context, c *http.Client) (float64, error) {
	seconds, err := metrics.SumByLabel(ctx, c, d.cluster.Config.Host+"/metrics", "process_cpu_seconds_total", "")
	return seconds[""], err
}
