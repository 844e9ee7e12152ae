package apply_test

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/operate/apply"
)

// late is a cache that does not have the NetworkPolicies yet.
type late struct{ client.Client }

func (l late) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*networkingv1.NetworkPolicyList); ok {
		return nil
	}
	return l.Client.List(ctx, list, opts...)
}

func releasedWithoutCache(b *bench) {
	b.apply(apply.Created, b.space(), b.deny())
	space, deny := b.space(), b.deny()
	b.get(space)
	if _, err := apply.NewCached(late{b.client}, b.client).Release(b.Context(), space); err != nil {
		b.Fatal(err)
	}
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(deny), deny); !apierrors.IsNotFound(err) {
		b.Errorf("NetworkPolicy %s/%s stays in a namespace that was released (%v)", deny.Namespace, deny.Name, err)
	}
}
