// Command sandbox-nodes runs the real nodes of a sandbox. croft-sandbox starts it. It starts
// itself as the first process of each node, as the node's kubelet and as its kube-proxy.
//
//	sandbox-nodes serve --dir DIR …
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // as in the kubelet's own main package
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"croft.dev/croft/sandbox/internal/component"
	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/lifeline"
	"croft.dev/croft/sandbox/internal/realnode"
)

func main() {
	if len(os.Args) < 2 {
		exitOnError(fmt.Errorf("name a command: serve"))
	}
	// The supervisor's umask gives only the owner access. Containers of other users need access
	// to containerd's directories and control groups.
	syscall.Umask(0o022)
	command, args := os.Args[1], os.Args[2:]
	switch command {
	case "serve":
		serve := newServe()
		serve.SetArgs(args)
		if err := serve.Execute(); err != nil {
			os.Exit(1)
		}
	case "init":
		var node realnode.Node
		if err := json.Unmarshal([]byte(strings.Join(args, "")), &node); err != nil {
			exitOnError(err)
		}
		exitOnError(realnode.Init(node))
	case "kubelet":
		// The thread with the copies becomes the kubelet.
		if err := realnode.HideKernelParameters(); err != nil {
			exitOnError(err)
		}
		exitOnError(execCommand("run-kubelet", args))
	case "run-kubelet":
		cmd := kubelet.NewKubeletCommand(context.Background())
		cmd.SetArgs(args)
		os.Exit(cli.Run(cmd))
	case "kube-proxy":
		cmd := kubeproxy.NewProxyCommand()
		cmd.SetArgs(args)
		os.Exit(cli.Run(cmd))
	default:
		exitOnError(fmt.Errorf("there is no command %q", command))
	}
}

// execCommand replaces this process by another command of this program.
func execCommand(command string, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, append([]string{self, command}, args...), os.Environ())
}

func exitOnError(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox-nodes:", err)
		os.Exit(1)
	}
}

func newServe() *cobra.Command {
	var dir, programs, apiServer, health string
	var enforced bool
	cmd := &cobra.Command{
		Use: "serve", Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			lifeline.Watch(stop)
			h, err := home.FindHome(dir)
			if err != nil {
				return err
			}
			config, err := clientcmd.BuildConfigFromFlags("", h.Kubeconfig(component.Admin))
			if err != nil {
				return err
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			return realnode.Serve(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)), realnode.Options{
				Dir: h.Nodes(), Programs: programs, Enforced: enforced, Cgroup: component.NodesCgroup(h),
				APIServer: apiServer, Client: client, ClientCA: h.PKI("ca.crt"),
				Socket: component.NodesSocket(h), Health: health,
				Kubeconfig: func(server, user string, groups ...string) ([]byte, error) {
					return component.IssueNodeKubeconfig(h, server, user, groups)
				},
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "dir", "", "the directory of the sandbox")
	f.StringVar(&programs, "programs", "", "the directory of containerd, runc and the CNI plugins")
	f.StringVar(&apiServer, "api-server", "", "the address of the API server")
	f.StringVar(&health, "health-address", "", "the address of /readyz")
	f.BoolVar(&enforced, "enforced", false, "run the network plugin on each node")
	return cmd
}
