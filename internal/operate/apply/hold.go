package apply

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
)

// holdManager is the field manager of HoldLaunches. It is not croft's, so that the walls, which do
// not contain these fields, leave them alone.
const holdManager = "croft-launches"

// holdValue is below zero, because Karpenter compares limits with the resources of an instance type:
// of a resource that it does not have, even zero is more than the limit.
const holdValue = "-1"

// HoldLaunches records refused launches in an annotation of a NodePool, and removes the annotation if
// record is "". While held, a limit in the NodePool keeps Karpenter from launching nodes, and existing
// nodes stay. It fails with a conflict if the NodePool has changed since it was read.
func (a *Applier) HoldLaunches(ctx context.Context, pool *karpenterv1.NodePool, record string, held bool) error {
	metadata := tree{"name": pool.Name, "resourceVersion": pool.ResourceVersion}
	o := tree{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata}
	if record != "" {
		metadata["annotations"] = tree{v1alpha1.RefusedLaunchesAnnotation: record}
	}
	if held {
		o["spec"] = tree{"limits": tree{v1alpha1.HoldLimit: holdValue}}
	}
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wrapTree(o)), client.FieldOwner(holdManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("hold the launches of NodePool %s: %w", pool.Name, err)
	}
	return nil
}
