package install

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/operate/apply"
)

const (
	// patience is the time limit for the API server to serve a new kind.
	patience = time.Minute
	interval = 100 * time.Millisecond
)

// Install applies Objects, waits in between until the API server serves croft's kinds, and
// deletes objects of older versions. It may be repeated: objects that are in place stay
// unchanged.
func Install(ctx context.Context, c client.Client, o Options) ([]apply.Change, error) {
	var changes []apply.Change
	if !o.KeepKinds {
		var err error
		if changes, err = ApplyKinds(ctx, c); err != nil {
			return changes, err
		}
	}
	applier := apply.New(c)
	more, err := applier.Apply(ctx, buildOperatorObjects(o)...)
	changes = append(changes, more...)
	if err != nil || o.KeepKinds {
		return changes, err // an older croft does not know the newer one's objects
	}
	pruned, err := applier.Prune(ctx, apply.OfInstallation(), "", buildAllObjects(o), installedKinds...)
	return append(changes, pruned...), err
}

// ApplyKinds applies croft's CRDs only, and waits until the API server serves them.
func ApplyKinds(ctx context.Context, c client.Client) ([]apply.Change, error) {
	kinds, err := loadDefinitions()
	if err != nil {
		return nil, err
	}
	changes, err := apply.New(c).Apply(ctx, kinds...)
	if err != nil {
		return changes, err
	}
	for _, kind := range kinds {
		if err := waitEstablished(ctx, c, kind.GetName()); err != nil {
			return changes, err
		}
	}
	return changes, nil
}

// waitEstablished waits until the API server serves a kind.
func waitEstablished(ctx context.Context, c client.Client, name string) error {
	why := "its status was not read"
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, definition); err != nil {
			return false, err
		}
		for _, condition := range definition.Status.Conditions {
			switch {
			case condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue:
				return true, nil
			case condition.Status == apiextensionsv1.ConditionFalse:
				why = condition.Message
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("the API server does not serve %s: %s: %w", name, why, err)
	}
	return nil
}
