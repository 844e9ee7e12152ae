package service

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"croft.dev/croft/internal/cost/podusage"
)

const (
	// usageTimeout limits the time of a request to metrics-server.
	usageTimeout = 30 * time.Second
	// absentInterval is the interval at which a cluster without metrics-server is asked again.
	absentInterval = 10 * time.Minute
)

// usageReader reads the usage of pods from metrics-server.
type usageReader struct {
	client rest.Interface
	clock  clock.PassiveClock
	log    *slog.Logger
	// next is the time before which metrics-server is not asked, since the cluster has none.
	next time.Time
}

// read returns the usage of all pods. In a cluster without metrics-server, or without the right to it, there is none.
func (r *usageReader) read(ctx context.Context) ([]podusage.Pod, error) {
	if r.clock.Now().Before(r.next) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, usageTimeout)
	defer cancel()
	list, err := r.client.Get().AbsPath(podusage.Path).MaxRetries(0).DoRaw(ctx)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		if r.next.IsZero() {
			r.log.InfoContext(ctx, "no usage of pods is recorded: the cluster has no metrics-server, or the ledger may not list pods.metrics.k8s.io", "error", err)
		}
		r.next = r.clock.Now().Add(absentInterval)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return podusage.Parse(list)
}
