// Command enforcer enforces the NetworkPolicies of a cluster on one real node of a sandbox:
// sigs.k8s.io/kube-network-policies, which evaluates the first packet of each connection.
//
//	enforcer NODE KUBECONFIG POD-RANGE
//
// It runs in the node's network namespace before the kubelet, so that no pod starts before its
// policies are in force. The kernel drops the packets that no process evaluates.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "enforcer: name the node, a kubeconfig and the range of pods' addresses")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "enforcer:", err)
		os.Exit(1)
	}
}

// queue is the number of the netfilter queue: the library's default.
const queue = "100"

func run(node, kubeconfig, pods string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := queuePackets(ctx, pods); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	controller, err := networkpolicy.NewController(client,
		factory.Networking().V1().NetworkPolicies(), factory.Core().V1().Namespaces(), factory.Core().V1().Pods(),
		nil, nil, nil, nil, networkpolicy.Config{NodeName: node})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	return controller.Run(ctx)
}

// queuePackets sends the first packet of each connection from or to a pod to the queue. The
// library does the same by nftables, whose queue some kernels lack, and continues without it.
// Packets of the node itself, such as kubelets' probes, pass.
func queuePackets(ctx context.Context, pods string) error {
	for _, rule := range [][]string{
		{"-m", "owner", "--uid-owner", "0", "-j", "ACCEPT"},
		{"-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "-j", "ACCEPT"},
		{"-s", pods, "-j", "NFQUEUE", "--queue-num", queue},
		{"-d", pods, "-j", "NFQUEUE", "--queue-num", queue},
	} {
		args := append([]string{"--wait", "--table", "mangle", "--append", "POSTROUTING"}, rule...)
		if out, err := exec.CommandContext(ctx, "iptables", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("iptables %v: %w: %s", args, err, out)
		}
	}
	return nil
}
