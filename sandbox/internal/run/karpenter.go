package run

import (
	"k8s.io/utils/clock"
	kwokprovider "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"croft.dev/croft/sandbox/internal/karpenter"
)

// runKarpenter runs Karpenter's controllers with its kwok provider, as the module's
// kwok/main.go does.
func runKarpenter(args []string) error {
	o, err := karpenter.ParseOptions(args)
	if err != nil {
		return err
	}
	ctx, stop := karpenter.NewContext(options.Injectables...)
	defer stop()
	mgr, err := karpenter.NewManager(ctx, o, options.Injectables)
	if err != nil {
		return err
	}
	types, err := kwokprovider.ConstructInstanceTypes(ctx)
	if err != nil {
		return err
	}
	store := nodeoverlay.NewInstanceTypeStore()
	bare := kwokprovider.NewCloudProvider(ctx, mgr.GetClient(), types)
	provider := overlay.Decorate(bare, mgr.GetClient(), store)
	recorder, err := karpenter.NewRecorder(ctx, mgr)
	if err != nil {
		return err
	}
	cluster := state.NewCluster(clock.RealClock{}, mgr.GetClient(), provider)
	for _, c := range controllers.NewControllers(ctx, mgr, clock.RealClock{}, mgr.GetClient(), recorder, provider, bare, cluster, store) {
		if err := c.Register(ctx, mgr); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}
