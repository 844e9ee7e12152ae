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

// Component turns this process into a component and returns its exit code.
func Component(name string, args []string) int {
	lifeline.Watch(func() {
		fmt.Fprintf(os.Stderr, "the supervisor has ended: %s ends, too\n", name)
		os.Exit(1)
	})
	ownSignals()
	// Karpenter and kwok parse os.Args themselves.
	os.Args = append([]string{name}, args...)
	switch name {
	case component.Etcd:
		return result(etcd(args))
	case component.Link:
		return result(link(args))
	case component.APIServer:
		return kubernetes(apiserver.NewAPIServerCommand, args)
	case component.ControllerManager:
		return kubernetes(controllermanager.NewControllerManagerCommand, args)
	case component.Scheduler:
		return kubernetes(func() *cobra.Command { return scheduler.NewSchedulerCommand() }, args)
	case component.Karpenter:
		return result(karpenterKwok(args))
	case component.Cloud:
		return result(simulatedCloud(args))
	case component.Git:
		return result(gitServer(args))
	case component.Kwok:
		return result(kwok())
	}
	return result(fmt.Errorf("there is no component %q", name))
}

func kubernetes(newCommand func() *cobra.Command, args []string) int {
	showLinkedFlags()
	cmd := newCommand()
	cmd.SetArgs(args)
	return cli.Run(cmd)
}

// ownSignals resets the signal handlers of croft-sandbox: the controller manager and kubectl
// install none, and must end by these signals.
func ownSignals() { signal.Reset(syscall.SIGINT, syscall.SIGTERM) }

func result(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return 0
}
