package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/walls/wall/network"
)

// testWindows measures for how long a pod of another tenant can connect while the walls or the
// components change: a pod tries every few milliseconds, and the test logs the time. It fails
// if a connection opens where none may, or stays open.
func (c *cluster) testWindows(t *testing.T) {
	const from, to = "green", "blue"
	target := c.listAddresses(t, to, webPort)[0]
	restart := func(component string) func(*testing.T) {
		return func(t *testing.T) {
			if err := c.Stop(component); err != nil {
				t.Fatal(err)
			}
			if err := c.Start(component); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, window := range []struct {
		name    string
		change  func(*testing.T)
		longest time.Duration
	}{
		{"the operator restarts", restart("croft"), 0},
		{"the API server restarts", restart("kube-apiserver"), 0},
		{"the tenant changes", func(t *testing.T) {
			c.applyContent(t, strings.Replace(packetTenants, "blue: {", "blue: {network: {egress: Restricted}, ", 1))
		}, 0},
		{"the tenant changes its pool", func(t *testing.T) {
			c.applyContent(t, strings.Replace(packetTenants, "blue: {pool: pool-b", "blue: {pool: pool-a", 1))
			c.applyContent(t, packetTenants)
		}, 0},
		{"an administrator deletes the tenant's isolation", func(t *testing.T) {
			policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: to, Name: network.IsolationPolicy}}
			if err := c.admin.Delete(t.Context(), policy); err != nil {
				t.Fatal(err)
			}
			awaitCondition(t, moments, "croft to restore it", func(ctx context.Context) error {
				return c.admin.Get(ctx, client.ObjectKeyFromObject(policy), policy)
			})
		}, 5 * time.Second},
	} {
		t.Run(window.name, func(t *testing.T) {
			open := c.measureOpenTime(t, from, []string{target}, window.change)[target]
			t.Logf("%s: %s", window.name, describeWindow(open))
			if open > window.longest {
				t.Errorf("another tenant could connect for %s", open)
			}
		})
	}
	t.Run("a pod starts", func(t *testing.T) {
		next := c.guessAddresses(t, to)
		var started corev1.Pod
		windows := c.measureOpenTime(t, from, next, func(t *testing.T) {
			c.runKubectl(t, formatPod("late", "restartPolicy: Always", "args: [serve]"), "apply", "-n", to, "-f", "-").expectExit(t, 0)
			c.runKubectl(t, "", "wait", "pod/late", "-n", to, "--for=condition=Ready", "--timeout", patience.String()).expectExit(t, 0)
			c.getObject(t, to, "late", &started)
		})
		open, ok := windows[started.Status.PodIP+":8080"]
		if !ok {
			t.Fatalf("the pod has the address %s, and %v were watched", started.Status.PodIP, next)
		}
		t.Logf("a pod starts: %s", describeWindow(open))
		if open > 0 {
			t.Errorf("another tenant could connect to the new pod for %s", open)
		}
	})
}

func describeWindow(open time.Duration) string {
	if open == 0 {
		return "never open"
	}
	return "open for " + open.String()
}

// watched is the time in which a pod tries to connect: longer than the changes take.
const watched = 15 * time.Second

// measureOpenTime returns for how long TCP connections from a pod of a namespace to each address
// opened while a change was made; 0 for never, at least a millisecond otherwise.
func (c *cluster) measureOpenTime(t *testing.T, from string, addresses []string, change func(*testing.T)) map[string]time.Duration {
	t.Helper()
	const name = "watch"
	args := "args: [watch, " + watched.String() + ", '" + strings.Join(addresses, "', '") + "']"
	c.runKubectl(t, formatPod(name, "restartPolicy: Never", args), "apply", "-n", from, "-f", "-").expectExit(t, 0)
	defer func() { c.runKubectl(t, "", "delete", "pod/"+name, "-n", from, "--now").expectExit(t, 0) }()
	awaitCondition(t, patience, "the pod to watch", func(context.Context) error {
		if o := c.runKubectl(t, "", "logs", "pod/"+name, "-n", from); !strings.Contains(o.stdout, "watching") {
			return fmt.Errorf("%s", o)
		}
		return nil
	})
	change(t)
	c.awaitPhase(t, from, name, corev1.PodSucceeded)
	windows := map[string]time.Duration{}
	for line := range strings.Lines(c.runKubectl(t, "", "logs", "pod/"+name, "-n", from).expectExit(t, 0).stdout) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && fields[1] == "closed":
			windows[fields[0]] = 0
		case len(fields) == 4 && fields[1] == "open":
			open, err := time.ParseDuration(fields[2] + fields[3])
			if err != nil {
				t.Fatal(err)
			}
			windows[fields[0]] = max(open, time.Millisecond)
		}
	}
	if len(windows) != len(addresses) {
		t.Fatalf("%d of %d addresses were watched", len(windows), len(addresses))
	}
	return windows
}

// guessAddresses returns the addresses that the next pod on the node of a namespace's server
// may get: the node assigns them in their order.
func (c *cluster) guessAddresses(t *testing.T, namespace string) []string {
	t.Helper()
	var web corev1.Pod
	c.getObject(t, namespace, "web", &web)
	var pods corev1.PodList
	if err := c.admin.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	var last netip.Addr
	for _, p := range pods.Items {
		ip, err := netip.ParseAddr(p.Status.PodIP)
		if err == nil && p.Spec.NodeName == web.Spec.NodeName && !p.Spec.HostNetwork && last.Less(ip) {
			last = ip
		}
	}
	var addresses []string
	for range 12 {
		last = last.Next()
		addresses = append(addresses, last.String()+":8080")
	}
	return addresses
}
