package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/declare/scheme"
)

// convergeTimeout is the time limit for all tenants to become Ready. 1,000 tenants take minutes on two slow cores.
const convergeTimeout = 10 * time.Minute

// tenantWatch watches tenants. Polling would add load to the API server on one side only.
type tenantWatch struct {
	watch watch.Interface
	// waiting maps the tenants that are not Ready yet to the reason.
	waiting map[string]string
}

// watchTenants starts to watch tenants before they are declared.
func watchTenants(ctx context.Context, config *rest.Config, prefix string, count int) (*tenantWatch, error) {
	l := &tenantWatch{waiting: map[string]string{}}
	for i := range count {
		l.waiting[tenants.Name(prefix, i)] = "it was not declared"
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, err
	}
	l.watch, err = c.Watch(ctx, &v1alpha1.TenantList{})
	return l, err
}

func (l *tenantWatch) stop() { l.watch.Stop() }

// waitReady waits until all tenants are Ready, and returns for each the time since the first was
// declared.
func (l *tenantWatch) waitReady(ctx context.Context) ([]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, convergeTimeout)
	defer cancel()
	var (
		first time.Time
		took  []float64
	)
	for len(l.waiting) > 0 {
		var event watch.Event
		var open bool
		select {
		case <-ctx.Done():
			return nil, l.withPending(ctx.Err())
		case event, open = <-l.watch.ResultChan():
		}
		if !open {
			return nil, l.withPending(errors.New("the watch ended"))
		}
		if event.Type == watch.Error {
			return nil, l.withPending(apierrors.FromObject(event.Object))
		}
		tenant, ok := event.Object.(*v1alpha1.Tenant)
		if !ok || l.waiting[tenant.Name] == "" {
			continue
		}
		if first.IsZero() {
			first = time.Now()
		}
		if l.waiting[tenant.Name] = explainUnready(tenant); l.waiting[tenant.Name] == "" {
			delete(l.waiting, tenant.Name)
			took = append(took, time.Since(first).Seconds())
		}
	}
	return took, nil
}

// withPending adds the tenants that are not Ready yet to an error.
func (l *tenantWatch) withPending(err error) error {
	for name, why := range l.waiting {
		return fmt.Errorf("%d tenants are not Ready, such as %s (%s): %w", len(l.waiting), name, why, err)
	}
	return err
}

// explainUnready returns why a tenant is not Ready, or "" if it is.
func explainUnready(tenant *v1alpha1.Tenant) string {
	ready := meta.FindStatusCondition(tenant.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || tenant.Status.ObservedGeneration != tenant.Generation:
		return "croft has not reported a condition"
	case ready.Status != metav1.ConditionTrue:
		return ready.Reason + ": " + ready.Message
	default:
		return ""
	}
}
