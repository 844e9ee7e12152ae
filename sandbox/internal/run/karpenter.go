package run

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/awslabs/operatorpkg/serrors"
	"github.com/go-logr/zapr"
	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kwokprovider "sigs.k8s.io/karpenter/kwok/cloudprovider"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// karpenter wires Karpenter's controllers to its kwok provider, as the module's
// kwok/main.go does. The manager is made here, and not by operator.NewOperator,
// because that one opens its ports to all interfaces and cannot be told
// otherwise. All options but the addresses are read from the environment, as
// Karpenter always does.
func karpenter(args []string) error {
	var kubeconfig, healthAddress, metricsAddress string
	flags := pflag.NewFlagSet("karpenter", pflag.ContinueOnError)
	flags.StringVar(&kubeconfig, "kubeconfig", "", "how to reach the API server")
	flags.StringVar(&healthAddress, "health-address", "", "host:port that answers for its health")
	flags.StringVar(&metricsAddress, "metrics-address", "", "host:port that serves metrics")
	if err := flags.Parse(args); err != nil {
		return err
	}
	os.Args = os.Args[:1] // Karpenter's options would reject these flags

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx = injection.WithOptionsOrDie(ctx, options.Injectables...)
	logger := serrors.NewLogger(zapr.NewLogger(logging.NewLogger(ctx, "controller")))
	log.SetLogger(logger)
	klog.SetLogger(logger)

	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = float32(options.FromContext(ctx).KubeClientQPS)
	config.Burst = options.FromContext(ctx).KubeClientBurst
	config.UserAgent = "karpenter"

	mgr, err := karpenterManager(ctx, config, healthAddress, metricsAddress)
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
	recorder := events.NewRecorder(mgr.GetEventRecorderFor("karpenter"))
	cluster := state.NewCluster(clock.RealClock{}, mgr.GetClient(), provider)
	for _, c := range controllers.NewControllers(ctx, mgr, clock.RealClock{}, mgr.GetClient(), recorder, provider, bare, cluster, store) {
		if err := c.Register(ctx, mgr); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}

func karpenterManager(ctx context.Context, config *rest.Config, healthAddress, metricsAddress string) (manager.Manager, error) {
	logger := log.FromContext(ctx)
	mgr, err := manager.New(config, manager.Options{
		Logger:                 logging.IgnoreDebugEvents(logger),
		Metrics:                metricsserver.Options{BindAddress: metricsAddress},
		HealthProbeBindAddress: healthAddress,
		BaseContext: func() context.Context {
			return injection.WithOptionsOrDie(log.IntoContext(context.Background(), logger), options.Injectables...)
		},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&coordinationv1.Lease{}: {Field: fields.OneTermEqualSelector("metadata.namespace", "kube-node-lease")},
		}},
	})
	if err != nil {
		return nil, err
	}
	for _, index := range indexes {
		if err := mgr.GetFieldIndexer().IndexField(ctx, index.of, index.field, index.value); err != nil {
			return nil, fmt.Errorf("index %T by %s: %w", index.of, index.field, err)
		}
	}
	return mgr, mgr.AddReadyzCheck("readyz", healthz.Ping)
}

// indexes are those that operator.NewOperator sets up and Karpenter's
// controllers look things up by.
var indexes = []struct {
	of    client.Object
	field string
	value client.IndexerFunc
}{
	{&corev1.Pod{}, "spec.nodeName", by(func(p *corev1.Pod) string { return p.Spec.NodeName })},
	{&corev1.Node{}, "spec.providerID", by(func(n *corev1.Node) string { return n.Spec.ProviderID })},
	{&storagev1.VolumeAttachment{}, "spec.nodeName", by(func(v *storagev1.VolumeAttachment) string { return v.Spec.NodeName })},
	{&karpenterv1.NodeClaim{}, "status.providerID", by(func(c *karpenterv1.NodeClaim) string { return c.Status.ProviderID })},
	{&karpenterv1.NodeClaim{}, "spec.nodeClassRef.group", by(func(c *karpenterv1.NodeClaim) string { return c.Spec.NodeClassRef.Group })},
	{&karpenterv1.NodeClaim{}, "spec.nodeClassRef.kind", by(func(c *karpenterv1.NodeClaim) string { return c.Spec.NodeClassRef.Kind })},
	{&karpenterv1.NodeClaim{}, "spec.nodeClassRef.name", by(func(c *karpenterv1.NodeClaim) string { return c.Spec.NodeClassRef.Name })},
	{&karpenterv1.NodePool{}, "spec.template.spec.nodeClassRef.group", by(func(p *karpenterv1.NodePool) string { return p.Spec.Template.Spec.NodeClassRef.Group })},
	{&karpenterv1.NodePool{}, "spec.template.spec.nodeClassRef.kind", by(func(p *karpenterv1.NodePool) string { return p.Spec.Template.Spec.NodeClassRef.Kind })},
	{&karpenterv1.NodePool{}, "spec.template.spec.nodeClassRef.name", by(func(p *karpenterv1.NodePool) string { return p.Spec.Template.Spec.NodeClassRef.Name })},
}

// by makes an index of one value out of a getter.
func by[T client.Object](get func(T) string) client.IndexerFunc {
	return func(o client.Object) []string {
		if typed, ok := o.(T); ok {
			return []string{get(typed)}
		}
		return nil
	}
}
