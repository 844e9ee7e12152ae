package apply_test

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/operate/apply"
)

// laggingCache is a cache that does not have the NetworkPolicies yet.
type laggingCache struct{ client.Client }

func (l laggingCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*networkingv1.NetworkPolicyList); ok {
		return nil
	}
	return l.Client.List(ctx, list, opts...)
}

func testReleaseWithoutCache(b *bench) {
	b.applyObjects(apply.Created, b.newNamespace(), b.newDenyPolicy())
	space, deny := b.newNamespace(), b.newDenyPolicy()
	b.getObject(space)
	if _, err := apply.NewCached(laggingCache{b.client}, b.client).Release(b.Context(), space); err != nil {
		b.Fatal(err)
	}
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(deny), deny); !apierrors.IsNotFound(err) {
		b.Errorf("NetworkPolicy %s/%s stays in a namespace that was released (%v)", deny.Namespace, deny.Name, err)
	}
}
