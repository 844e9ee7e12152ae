package run

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"croft.dev/croft/sandbox/internal/component"
	"croft.dev/croft/sandbox/internal/gitserver"
	"croft.dev/croft/sandbox/internal/home"
)

// runGitServer runs the Git server of a sandbox with Flux.
func runGitServer(args []string) error {
	var dir, address string
	flags := pflag.NewFlagSet(component.Git, pflag.ContinueOnError)
	flags.StringVar(&dir, "dir", "", "the sandbox's directory")
	flags.StringVar(&address, "address", "", "host:port that answers Git and Flux")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	h := home.Home{Dir: dir}
	config, err := clientcmd.BuildConfigFromFlags("", h.Kubeconfig(component.Git))
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	server, err := gitserver.NewServer(h.Git(), h.Path("artifacts"))
	if err != nil {
		return err
	}
	sources := gitserver.NewSources(server, "http://"+address, client)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	answers := &http.Server{Handler: server.NewHandler(), ReadHeaderTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- answers.Serve(listener) }()
	go func() {
		err := sources.Run(ctx)
		_ = answers.Close()
		if err != nil {
			failed <- err
		}
	}()
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
