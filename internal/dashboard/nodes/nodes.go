// Package nodes reads the pools and their nodes, with the caller's rights.
package nodes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/doctor"
)

// Snapshot contains pools and their nodes.
type Snapshot struct {
	Pools []v1alpha1.Pool
	// Claims are Karpenter's NodeClaims, which have the state of each node. Refusals are the events
	// about launches that the cloud refused.
	Claims   []karpenterv1.NodeClaim
	Refusals []corev1.Event
	// Nodes are read instead of Claims and Refusals if the caller may not list Claims: croft proxy
	// shows teams their nodes.
	Nodes []corev1.Node
	// Hidden are the kinds that the caller may not list.
	Hidden []string
}

// Gather reads a Snapshot by three requests. It returns an error if the caller may not list pools.
func Gather(ctx context.Context, c client.Reader) (*Snapshot, error) {
	s := &Snapshot{}
	var pools v1alpha1.PoolList
	if err := c.List(ctx, &pools); err != nil {
		return nil, err
	}
	s.Pools = pools.Items
	var claims karpenterv1.NodeClaimList
	found, err := list(ctx, c, &s.Hidden, "NodeClaims", &claims)
	if err != nil {
		return nil, err
	}
	if !found {
		var nodes corev1.NodeList
		_, err := list(ctx, c, &s.Hidden, "nodes", &nodes)
		s.Nodes = nodes.Items
		return s, err
	}
	s.Claims = claims.Items
	var refusals corev1.EventList
	_, err = list(ctx, c, &s.Hidden, "events", &refusals, client.InNamespace(metav1.NamespaceDefault), client.MatchingFields{"reason": doctor.RefusedLaunch})
	s.Refusals = refusals.Items
	return s, err
}

// list lists a kind, or adds it to the hidden ones if the caller may not. A cluster without Karpenter has no
// NodeClaims.
func list(ctx context.Context, c client.Reader, hidden *[]string, kind string, into client.ObjectList, opts ...client.ListOption) (bool, error) {
	err := c.List(ctx, into, opts...)
	switch {
	case apierrors.IsForbidden(err):
		*hidden = append(*hidden, kind)
		return false, nil
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil
	default:
		return err == nil, err
	}
}
