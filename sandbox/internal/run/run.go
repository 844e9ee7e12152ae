// Package run contains the components' main functions. It is the only package that links the
// control plane, Karpenter, kwok and kubectl.
package run

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // cron jobs may name any time zone

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // as in the components' own main packages
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"croft.dev/croft/sandbox/internal/component"
	"croft.dev/croft/sandbox/internal/lifeline"
)

// ExecuteComponent turns this process into a component and returns its exit code.
func ExecuteComponent(name string, args []string) int {
	lifeline.Watch(func() {
		fmt.Fprintf(os.Stderr, "the supervisor has ended: %s ends, too\n", name)
		os.Exit(1)
	})
	resetSignals()
	// Karpenter and kwok parse os.Args themselves.
	os.Args = append([]string{name}, args...)
	switch name {
	case component.Etcd:
		return reportResult(runEtcd(args))
	case component.Link:
		return reportResult(runLink(args))
	case component.APIServer:
		return runKubernetes(apiserver.NewAPIServerCommand, args)
	case component.ControllerManager:
		return runKubernetes(controllermanager.NewControllerManagerCommand, args)
	case component.Scheduler:
		return runKubernetes(func() *cobra.Command { return scheduler.NewSchedulerCommand() }, args)
	case component.Karpenter:
		return reportResult(runKarpenter(args))
	case component.Cloud:
		return reportResult(runCloud(args))
	case component.Git:
		return reportResult(runGitServer(args))
	case component.Kwok:
		return reportResult(runKwok())
	}
	return reportResult(fmt.Errorf("there is no component %q", name))
}

func runKubernetes(newCommand func() *cobra.Command, args []string) int {
	showLinkedFlags()
	cmd := newCommand()
	cmd.SetArgs(args)
	return cli.Run(cmd)
}

// resetSignals resets the signal handlers of croft-sandbox: the controller manager and kubectl
// install none, and must end by these signals.
func resetSignals() { signal.Reset(syscall.SIGINT, syscall.SIGTERM) }

func reportResult(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return 0
}
