// Command karpenter-aws is Karpenter with its AWS provider, both as published, for
// a sandbox: it listens only on the given addresses.
//
//	karpenter-aws --kubeconfig FILE --health-address HOST:PORT --metrics-address HOST:PORT
//	karpenter-aws crds      # print the provider's CRDs
//
// It reads its other options from the environment, as Karpenter always does, and AWS's
// address from AWS_ENDPOINT_URL.
package main

import (
	"context"
	"fmt"
	"os"

	awsapis "github.com/aws/karpenter-provider-aws/pkg/apis"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/cloudprovider"
	"github.com/aws/karpenter-provider-aws/pkg/cloudprovider/registrationhooks"
	awscontrollers "github.com/aws/karpenter-provider-aws/pkg/controllers"
	awsoperator "github.com/aws/karpenter-provider-aws/pkg/operator"
	"github.com/awslabs/operatorpkg/controller"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/metrics"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"croft.dev/croft/sandbox/internal/karpenter"
	"croft.dev/croft/sandbox/internal/lifeline"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "karpenter-aws:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 1 && args[0] == "crds" {
		_, err := os.Stdout.Write(awsapis.EC2NodeClassCRD)
		return err
	}
	lifeline.Watch(func() {
		fmt.Fprintln(os.Stderr, "the supervisor has ended: karpenter-aws ends, too")
		os.Exit(1)
	})
	o, err := karpenter.ParseOptions(args)
	if err != nil {
		return err
	}
	ctx, stop := karpenter.NewContext(options.Injectables...)
	defer stop()
	core, err := newOperator(ctx, o)
	if err != nil {
		return err
	}
	for _, c := range newControllers(awsoperator.NewOperator(ctx, core)) {
		if err := c.Register(ctx, core.Manager); err != nil {
			return err
		}
	}
	return core.Manager.Start(ctx)
}

func newOperator(ctx context.Context, o karpenter.Options) (*operator.Operator, error) {
	mgr, err := karpenter.NewManager(ctx, o, options.Injectables)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return nil, err
	}
	recorder, err := karpenter.NewRecorder(ctx, mgr)
	if err != nil {
		return nil, err
	}
	return &operator.Operator{
		Manager:             mgr,
		KubernetesInterface: client,
		EventRecorder:       recorder,
		Clock:               clock.RealClock{},
		InstanceTypeStore:   nodeoverlay.NewInstanceTypeStore(),
	}, nil
}

// newControllers connects the provider to Karpenter's controllers as the provider's own main
// package does.
func newControllers(ctx context.Context, op *awsoperator.Operator) []controller.Controller {
	provider := cloudprovider.New(op.InstanceTypesProvider, op.InstanceProvider, op.EventRecorder, op.GetClient(), op.AMIProvider,
		op.SecurityGroupProvider, op.CapacityReservationProvider, op.PlacementGroupProvider, op.InstanceTypeStore, op.CABundle)
	measured := metrics.Decorate(provider)
	overlaid := overlay.Decorate(measured, op.GetClient(), op.InstanceTypeStore)
	cluster := state.NewCluster(op.Clock, op.GetClient(), overlaid)
	awsv1.CapacityReservationsEnabled = options.FromContext(ctx).FeatureGates.ReservedCapacity
	return append(
		controllers.NewControllers(ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder, overlaid, measured, cluster, op.InstanceTypeStore,
			controllers.WithRegistrationHook(registrationhooks.NewPlacementGroupRegistrationHook(op.InstanceProvider))),
		awscontrollers.NewControllers(ctx, op.Manager, op.Config, op.Clock, op.EC2API, op.GetClient(), op.EventRecorder,
			op.UnavailableOfferingsCache, op.SSMCache, op.ValidationCache, op.RecreationCache, overlaid,
			op.SubnetProvider, op.SecurityGroupProvider, op.InstanceProfileProvider, op.InstanceProvider, op.PricingProvider,
			op.AMIProvider, op.LaunchTemplateProvider, op.VersionProvider, op.InstanceTypesProvider, op.CapacityReservationProvider,
			op.PlacementGroupProvider, op.AMIResolver, op.ZonalShiftProvider, op.InstanceStatusProvider, op.CABundle)...,
	)
}
