package cli

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
)

// watchDeclared returns a reader that lists declared objects from watches, until ctx ends. The API server would
// need much of its time to list thousands of tenants again and again, which the operator needs. If a watch does not
// begin, because the user may not watch one of the kinds for example, it returns c.
func (a *app) watchDeclared(ctx context.Context, c client.Client) client.Reader {
	config, err := a.loadConfig()
	if err != nil {
		return c
	}
	ctx, cancel := context.WithCancel(ctx)
	starting, end := context.WithTimeout(ctx, silence)
	defer end()
	watched, err := cache.New(config, cache.Options{
		Scheme: scheme.New(), Mapper: c.RESTMapper(), DefaultTransform: cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			if apierrors.IsForbidden(err) {
				cancel()
			}
		},
	})
	if err != nil {
		cancel()
		return c
	}
	go func() { _ = watched.Start(ctx) }() // it ends with ctx
	for _, kind := range []client.Object{&v1alpha1.Platform{}, &v1alpha1.Pool{}, &v1alpha1.Tenant{}, &v1alpha1.SecondaryNetwork{}} {
		if _, err := watched.GetInformer(starting, kind); err != nil {
			cancel()
			return c
		}
	}
	if !watched.WaitForCacheSync(starting) {
		cancel()
		return c
	}
	return watchedReader{c, watched}
}

// watchedReader lists the declared objects from watches. It reads all other objects from the API server.
type watchedReader struct {
	client.Reader
	watched client.Reader
}

// List implements client.Reader.
func (r watchedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch list.(type) {
	case *v1alpha1.PlatformList, *v1alpha1.PoolList, *v1alpha1.TenantList, *v1alpha1.SecondaryNetworkList:
		return r.watched.List(ctx, list, opts...)
	default:
		return r.Reader.List(ctx, list, opts...)
	}
}
