package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/test/sandbox"
)

// TestRealNodes runs a tenant's pods on real nodes: Karpenter creates a Node, containerd and a
// kubelet run it, and croft's policies are in force. It fails if a policy denies a request that
// only a real kubelet sends, such as its CSINode, or if croft places pods in a way that only
// kwok's nodes accept.
func TestRealNodes(t *testing.T) {
	sandbox.Thorough(t)
	requireRealNodes(t)
	parameters := readKernelParameters(t)
	c := startSandbox(t, sandbox.Options{RealNodes: true, Croft: findCroftBinary(t)})
	c.applyFile(t, getExamplePath("two-tenants.yaml"))
	team := teams[0]
	as := []string{"--as", "dev", "--as-group", team.group, "-n", team.tenant}
	kubectl := func(t *testing.T, input string, args ...string) outcome {
		return c.runKubectl(t, input, slices.Concat(as, args)...)
	}
	kubectl(t, "", "create", "deployment", "web", "--image=nginx", "--replicas=2").expectExit(t, 0)
	kubectl(t, "", "rollout", "status", "deployment/web", "--timeout", patience.String()).expectExit(t, 0)

	t.Run("kubelet", func(t *testing.T) {
		var nodes corev1.NodeList
		if err := c.admin.List(t.Context(), &nodes); err != nil || len(nodes.Items) != 1 {
			t.Fatalf("%d nodes: %v", len(nodes.Items), err)
		}
		node := nodes.Items[0]
		if info := node.Status.NodeInfo; !strings.HasPrefix(info.ContainerRuntimeVersion, "containerd://") {
			t.Errorf("the node's runtime is %q", info.ContainerRuntimeVersion)
		}
		var csi storagev1.CSINode
		c.getObject(t, "", node.Name, &csi)
		if len(csi.OwnerReferences) != 1 || csi.OwnerReferences[0].Kind != "Node" {
			t.Errorf("the owners of the node's CSINode are %v", csi.OwnerReferences)
		}
	})
	t.Run("logs and exec", func(t *testing.T) {
		expectOutput(t, kubectl(t, "", "logs", "deployment/web").expectExit(t, 0), "listens on :8080")
		expectOutput(t, kubectl(t, "", "exec", "deployment/web", "--", "/probe", "id").expectExit(t, 0), "user 65532")
	})
	t.Run("Service", func(t *testing.T) {
		kubectl(t, "", "expose", "deployment/web", "--port=80").expectExit(t, 0)
		var service corev1.Service
		c.getObject(t, team.tenant, "web", &service)
		awaitCondition(t, moments, "kube-proxy to know the Service", func(context.Context) error {
			o := kubectl(t, "", "exec", "deployment/web", "--", "/probe", "dial", "tcp/"+service.Spec.ClusterIP+":80")
			if !strings.Contains(o.stdout, "open") {
				return fmt.Errorf("%s", o)
			}
			return nil
		})
	})
	t.Run("rolling update", func(t *testing.T) {
		kubectl(t, "", "set", "image", "deployment/web", "nginx=nginx:2").expectExit(t, 0)
		kubectl(t, "", "rollout", "status", "deployment/web", "--timeout", patience.String()).expectExit(t, 0)
	})
	t.Run("user namespace", func(t *testing.T) {
		kubectl(t, formatPod("userns", "hostUsers: false", "args: [serve]"), "apply", "-f", "-").expectExit(t, 0)
		kubectl(t, "", "wait", "pod/userns", "--for=condition=Ready", "--timeout", patience.String()).expectExit(t, 0)
	})
	t.Run("out of memory", func(t *testing.T) {
		kubectl(t, formatPod("oom", "restartPolicy: Never", "args: [memory, '200'], resources: {limits: {memory: 64Mi}}"), "apply", "-f", "-").expectExit(t, 0)
		c.awaitPhase(t, team.tenant, "oom", corev1.PodFailed)
		expectOutput(t, c.runCroft(t, "why", "pod/oom", "-n", team.tenant).expectExit(t, 1), "OOMKilled")
	})
	t.Run("exit code", func(t *testing.T) {
		kubectl(t, formatPod("fails", "restartPolicy: Never", "args: [exit, '3']"), "apply", "-f", "-").expectExit(t, 0)
		c.awaitPhase(t, team.tenant, "fails", corev1.PodFailed)
		expectOutput(t, c.runCroft(t, "why", "pod/fails", "-n", team.tenant).expectExit(t, 1), "exit code 3")
	})
	t.Run("pods", func(t *testing.T) { c.testRealPods(t, team.tenant, kubectl) })
	t.Run("no network plugin", func(t *testing.T) {
		for _, r := range c.verifyPackets(t, team.pool, 1) {
			open := slices.Contains([]string{"packets-between-tenants", "packets-in-first-moments", "packets-to-metadata"}, r.Name)
			if r.Name != "packets-to-nodes" && open != (r.Result == verify.Breached) { // there may be one node
				t.Errorf("%s: %s: %s", r.Name, r.Result, r.Message)
			}
		}
	})
	t.Run("drain", func(t *testing.T) {
		kubectl(t, "", "delete", "deployment/web", "pod/userns", "pod/oom", "pod/fails", "--wait=false").expectExit(t, 0)
		awaitCondition(t, patience, "Karpenter to remove the empty node", func(ctx context.Context) error {
			var nodes corev1.NodeList
			if err := c.admin.List(ctx, &nodes, client.HasLabels{v1alpha1.DefaultNodePoolKey}); err != nil || len(nodes.Items) > 0 {
				return fmt.Errorf("%d nodes: %w", len(nodes.Items), err)
			}
			return nil
		})
	})
	if now := readKernelParameters(t); now != parameters {
		t.Errorf("the machine's kernel parameters are %q, and were %q", now, parameters)
	}
	if err := c.Down(); err != nil {
		t.Fatal(err)
	}
	if left := listControlGroups(t); len(left) > 0 {
		t.Errorf("control groups of nodes are left: %v", left)
	}
}

// requireRealNodes skips a test on a machine that cannot run real nodes.
func requireRealNodes(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("real nodes need root")
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("real nodes need the package nftables")
	}
	if _, err := sandbox.FindTool("sandbox-nodes"); err != nil {
		t.Fatalf("%v: run `make nodes`", err)
	}
}

// formatPod returns the manifest of a pod with one container.
func formatPod(name, spec, container string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {%s, containers: [{name: c, image: any/image, %s}]}\n", name, spec, container)
}

// awaitPhase waits until a pod is in a phase.
func (c *cluster) awaitPhase(t *testing.T, namespace, name string, phase corev1.PodPhase) {
	t.Helper()
	awaitCondition(t, patience, "pod "+name+" to be "+string(phase), func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := c.admin.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || pod.Status.Phase != phase {
			return fmt.Errorf("it is %s: %w", pod.Status.Phase, err)
		}
		return nil
	})
}

// readKernelParameters returns the machine-wide parameters that a kubelet sets.
func readKernelParameters(t *testing.T) string {
	t.Helper()
	var all []string
	for _, name := range []string{"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"} {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.TrimSpace(string(value)))
	}
	return strings.Join(all, " ")
}

// listControlGroups returns the control groups of sandboxes' nodes.
func listControlGroups(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"/sys/fs/cgroup/croft-sandbox-*/*", "/sys/fs/cgroup/*/croft-sandbox-*/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				all = append(all, path)
			}
		}
	}
	return all
}
