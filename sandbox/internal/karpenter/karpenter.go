// Package karpenter sets up the environment of Karpenter's controllers, for any
// provider.
package karpenter

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
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// Options are the settings that Karpenter does not read from the environment.
type Options struct {
	Kubeconfig     string
	HealthAddress  string
	MetricsAddress string
}

// ParseOptions parses flags, and removes them from os.Args, where Karpenter's own options would
// reject them.
func ParseOptions(args []string) (o Options, err error) {
	flags := pflag.NewFlagSet("karpenter", pflag.ContinueOnError)
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig for the API server")
	flags.StringVar(&o.HealthAddress, "health-address", "", "host:port that serves health checks")
	flags.StringVar(&o.MetricsAddress, "metrics-address", "", "host:port that serves metrics")
	err = flags.Parse(args)
	os.Args = os.Args[:1]
	return o, err
}

// NewContext returns the controllers' context with their options and a logger. SIGTERM and SIGINT
// cancel it.
func NewContext(injectables ...options.Injectable) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	ctx = injection.WithOptionsOrDie(ctx, injectables...)
	logger := serrors.NewLogger(zapr.NewLogger(logging.NewLogger(ctx, "controller")))
	log.SetLogger(logger)
	klog.SetLogger(logger)
	return log.IntoContext(ctx, logger), stop
}

// NewManager returns the manager that runs Karpenter's controllers. It replaces
// operator.NewOperator, which always listens on all interfaces.
func NewManager(ctx context.Context, o Options, injectables []options.Injectable) (manager.Manager, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = float32(options.FromContext(ctx).KubeClientQPS)
	config.Burst = options.FromContext(ctx).KubeClientBurst
	config.UserAgent = "karpenter"

	logger := log.FromContext(ctx)
	mgr, err := manager.New(config, manager.Options{
		Logger:                 logging.IgnoreDebugEvents(logger),
		Metrics:                metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress: o.HealthAddress,
		BaseContext: func() context.Context {
			return injection.WithOptionsOrDie(log.IntoContext(context.Background(), logger), injectables...)
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

// indexes are the field indexes of operator.NewOperator that Karpenter's controllers use.
var indexes = []struct {
	of    client.Object
	field string
	value client.IndexerFunc
}{
	{&corev1.Pod{}, "spec.nodeName", indexBy(func(p *corev1.Pod) string { return p.Spec.NodeName })},
	{&corev1.Node{}, "spec.providerID", indexBy(func(n *corev1.Node) string { return n.Spec.ProviderID })},
	{&storagev1.VolumeAttachment{}, "spec.nodeName", indexBy(func(v *storagev1.VolumeAttachment) string { return v.Spec.NodeName })},
	{&karpenterv1.NodeClaim{}, "status.providerID", indexBy(func(c *karpenterv1.NodeClaim) string { return c.Status.ProviderID })},
	{&karpenterv1.NodeClaim{}, "spec.nodeClassRef.group", indexBy(func(c *karpenterv1.NodeClaim) string { return c.Spec.NodeClassRef.Group })},
	{&karpenterv1.NodeClaim{}, "spec.nodeClassRef.kind", indexBy(func(c *karpenterv1.NodeClaim) string { return c.Spec.NodeClassRef.Kind })},
	{&karpenterv1.NodeClaim{}, "spec.nodeClassRef.name", indexBy(func(c *karpenterv1.NodeClaim) string { return c.Spec.NodeClassRef.Name })},
	{&karpenterv1.NodePool{}, "spec.template.spec.nodeClassRef.group", indexBy(func(p *karpenterv1.NodePool) string { return p.Spec.Template.Spec.NodeClassRef.Group })},
	{&karpenterv1.NodePool{}, "spec.template.spec.nodeClassRef.kind", indexBy(func(p *karpenterv1.NodePool) string { return p.Spec.Template.Spec.NodeClassRef.Kind })},
	{&karpenterv1.NodePool{}, "spec.template.spec.nodeClassRef.name", indexBy(func(p *karpenterv1.NodePool) string { return p.Spec.Template.Spec.NodeClassRef.Name })},
}

// indexBy returns an indexer whose only value for an object is the getter's.
func indexBy[T client.Object](get func(T) string) client.IndexerFunc {
	return func(o client.Object) []string {
		if typed, ok := o.(T); ok {
			return []string{get(typed)}
		}
		return nil
	}
}
