package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

// bareWorkers is the number of tenants written concurrently, as in croft's operator.
const bareWorkers = 8

// convergeBare writes the objects of declared tenants as a script would: with one server-side apply for each,
// as croft does, but without reads and without checks afterwards.
func convergeBare(ctx context.Context, c *sandbox.Cluster, declared string) (side, error) {
	all, err := buildTenantObjects(tenants.Platform + declared)
	if err != nil {
		return side{}, err
	}
	config := rest.CopyConfig(c.Config)
	config.QPS = -1
	bare, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return side{}, err
	}
	// The objects have croft's labels, so the operator would reconcile each.
	if err := c.Stop(operatorComponent); err != nil {
		return side{}, err
	}
	sent := requests{}
	for _, objects := range all {
		sent[http.MethodPatch] += float64(len(objects))
	}
	took, err := writeBare(ctx, bare, all)
	return side{Took: took, Requests: sent}, err
}

// writeBare applies the objects of each tenant in order, with several tenants at a time. It returns the time from the
// first write until each tenant's objects were written, in seconds.
func writeBare(ctx context.Context, bare client.Client, all [][]*unstructured.Unstructured) ([]float64, error) {
	took := make([]float64, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(bareWorkers)
	start := time.Now()
	for i, objects := range all {
		group.Go(func() error {
			for _, o := range objects {
				// Apply overwrites its argument with the server's response.
				err := bare.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("bench"), client.ForceOwnership)
				if err != nil {
					return fmt.Errorf("write %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
				}
			}
			took[i] = time.Since(start).Seconds()
			return nil
		})
	}
	return took, group.Wait()
}

// buildTenantObjects returns the walls' objects for each tenant of a declaration, in the order of
// the writes and as they are sent.
func buildTenantObjects(text string) ([][]*unstructured.Unstructured, error) {
	built, err := tenants.Build(text)
	if err != nil {
		return nil, err
	}
	objects := make([][]*unstructured.Unstructured, len(built.Tenants))
	for i, tenant := range built.Tenants {
		if objects[i], err = tenants.ToUnstructured(wall.TenantObjects(&built.Platform, tenant)); err != nil {
			return nil, err
		}
	}
	return objects, nil
}
