package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/wall/network"
)

// ListConnections returns the connections between a tenant and other tenants that croft's network
// policies in the cluster allow, without duplicates. Their end may have passed.
func ListConnections(ctx context.Context, c client.Reader, tenant string) ([]network.OpenConnection, error) {
	var all []network.OpenConnection
	for _, kind := range slices.Concat(apply.NetworkPolicyKinds, apply.DialectKinds, apply.ClusterDialectKinds) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.List(ctx, list, client.HasLabels{v1alpha1.ConsentLabel}, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s of %s: %w", kind.Kind, kind.Group, err)
		}
		for i := range list.Items {
			if found, ok := network.ReadConnection(&list.Items[i]); ok && (found.Caller == tenant || found.Callee == tenant) {
				all = append(all, found)
			}
		}
	}
	slices.SortFunc(all, func(a, b network.OpenConnection) int {
		return cmp.Or(cmp.Compare(a.Caller, b.Caller), cmp.Compare(a.Callee, b.Callee), a.End.Compare(b.End))
	})
	return slices.Compact(all), nil
}
