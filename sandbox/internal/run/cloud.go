package run

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"croft.dev/croft/sandbox/internal/cloud"
	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/boot"
	"croft.dev/croft/sandbox/internal/cloud/machine"
	"croft.dev/croft/sandbox/internal/cloud/service"
	"croft.dev/croft/sandbox/internal/component"
	"croft.dev/croft/sandbox/internal/home"
)

// runCloud runs the simulated AWS account of a sandbox, and the machines in it.
func runCloud(args []string) error {
	var dir, address string
	var settings account.Settings
	var cluster service.Cluster
	flags := pflag.NewFlagSet(component.Cloud, pflag.ContinueOnError)
	flags.StringVar(&dir, "dir", "", "the sandbox's directory")
	flags.StringVar(&address, "address", "", "host:port that answers calls to AWS")
	flags.StringVar(&settings.Cluster, "cluster", "", "the cluster's name")
	flags.StringVar(&settings.Region, "region", "", "the region")
	flags.StringSliceVar(&settings.Zones, "zones", nil, "the region's zones")
	flags.Float64Var(&settings.Speed, "speed", 1, "how many times faster instances are than real ones")
	flags.StringVar(&cluster.Queue, "queue", "", "the interruption queue's name")
	flags.StringVar(&cluster.Endpoint, "cluster-endpoint", "", "the API server's address")
	flags.StringVar(&cluster.CA, "cluster-ca", "", "the API server's authority, in base64")
	flags.StringVar(&cluster.ServiceRange, "service-range", "", "the addresses of services")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	h := home.Home{Dir: dir}
	config, err := clientcmd.BuildConfigFromFlags("", h.Kubeconfig(component.Cloud))
	if err != nil {
		return err
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	cluster.Version = version.Major + "." + version.Minor
	a, err := account.Open(h.Path("aws.json"), settings, time.Now)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler())) // croft's agent uses controller-runtime
	booter := boot.Booter{
		Account: a, Cloud: client, As: func(node string) (*rest.Config, error) { return buildKubeletConfig(h, node) },
		Machines: &machine.Machines{Account: a, Dir: h.Path("instances")},
	}
	go booter.Run(ctx)
	server := &http.Server{Handler: cloud.NewServer(a, cluster), ReadHeaderTimeout: time.Minute}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	slog.Info("serving", "address", address)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// buildKubeletConfig returns a client configuration with the identity, and so the rights, of a node's
// kubelet.
func buildKubeletConfig(h home.Home, node string) (*rest.Config, error) {
	content, err := component.IssueKubeconfig(h, "system:node:"+node, []string{"system:nodes"})
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return nil, err
	}
	return rest.AddUserAgent(config, "kubelet"), nil
}
