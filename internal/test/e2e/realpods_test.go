package e2e

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// testRealPods uses features that only a real kubelet has, as an operator of the tenant. A
// failure means that a wall refuses it, or breaks it.
func (c *cluster) testRealPods(t *testing.T, namespace string, kubectl func(*testing.T, string, ...string) outcome) {
	isReady := func(t *testing.T, name string) {
		kubectl(t, "", "wait", "pod/"+name, "--for=condition=Ready", "--timeout", patience.String()).expectExit(t, 0)
	}
	awaitLog := func(t *testing.T, text string, args ...string) {
		awaitCondition(t, patience, "the log to have "+text, func(context.Context) error {
			if o := kubectl(t, "", append([]string{"logs"}, args...)...); !strings.Contains(o.stdout, text) {
				return fmt.Errorf("%s", o)
			}
			return nil
		})
	}
	t.Run("another user", func(t *testing.T) {
		kubectl(t, formatPod("user", "restartPolicy: Never", "args: [id], securityContext: {runAsUser: 1234, runAsGroup: 5678}"), "apply", "-f", "-").expectExit(t, 0)
		awaitLog(t, "user 1234 group 5678", "user")
	})
	t.Run("ephemeral container", func(t *testing.T) {
		kubectl(t, formatPod("debugged", "restartPolicy: Always", "args: [serve]"), "apply", "-f", "-").expectExit(t, 0)
		isReady(t, "debugged")
		kubectl(t, "", "debug", "debugged", "--image=any/image", "--container=debugger", "--profile=restricted", "--attach=false", "--", "/probe", "id").expectExit(t, 0)
		awaitLog(t, "user 65532", "debugged", "--container=debugger")
	})
	t.Run("resize", func(t *testing.T) {
		kubectl(t, formatPod("resized", "restartPolicy: Always",
			"args: [serve], resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {cpu: 100m, memory: 64Mi}}"), "apply", "-f", "-").expectExit(t, 0)
		isReady(t, "resized")
		kubectl(t, "", "patch", "pod", "resized", "--subresource=resize", "-p",
			`{"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "200m"}}}]}}`).expectExit(t, 0)
		awaitCondition(t, patience, "the kubelet to raise the limit of the running container", func(ctx context.Context) error {
			var resized corev1.Pod
			if err := c.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "resized"}, &resized); err != nil {
				return err
			}
			status := resized.Status.ContainerStatuses[0]
			if status.Resources == nil || !status.Resources.Limits.Cpu().Equal(resource.MustParse("200m")) || status.RestartCount > 0 {
				return fmt.Errorf("restarts: %d, resources: %v", status.RestartCount, status.Resources)
			}
			return nil
		})
	})
	t.Run("projected token", func(t *testing.T) {
		kubectl(t, formatPod("token", "restartPolicy: Never, volumes: [{name: token, projected: {sources: [{serviceAccountToken: {audience: vault, path: token}}]}}]",
			"args: [read, /token/token], volumeMounts: [{name: token, mountPath: /token}]"), "apply", "-f", "-").expectExit(t, 0)
		c.awaitPhase(t, namespace, "token", corev1.PodSucceeded)
		parts := strings.Split(kubectl(t, "", "logs", "token").expectExit(t, 0).stdout, ".")
		if len(parts) != 3 {
			t.Fatalf("the token has %d parts", len(parts))
		}
		claims, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"aud":["vault"]`, `"sub":"system:serviceaccount:` + namespace + `:default"`} {
			if !strings.Contains(string(claims), want) {
				t.Errorf("the token's claims are %s, want %s", claims, want)
			}
		}
	})
	t.Run("liveness probe", func(t *testing.T) {
		kubectl(t, formatPod("deaf", "restartPolicy: Always", "args: [serve], livenessProbe: {tcpSocket: {port: 9}, periodSeconds: 1, failureThreshold: 1}"), "apply", "-f", "-").expectExit(t, 0)
		awaitCondition(t, patience, "croft why to name the probe", func(context.Context) error {
			if o := c.runCroft(t, "why", "pod/deaf", "-n", namespace); !strings.Contains(o.stdout, "its liveness probe failed") {
				return fmt.Errorf("%s", o)
			}
			return nil
		})
	})
	t.Run("port-forward", func(t *testing.T) { c.forwardPort(t, namespace, "debugged") })
	kubectl(t, "", "delete", "pod/user", "pod/debugged", "pod/resized", "pod/token", "pod/deaf", "--wait=false").expectExit(t, 0)
}

// forwarded is kubectl's line for a forwarded port.
var forwarded = regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+)`)

// forwardPort sends an HTTP request to a pod through kubectl port-forward.
func (c *cluster) forwardPort(t *testing.T, namespace, name string) {
	t.Helper()
	forward := c.newSandboxCommand(t, "kubectl", "port-forward", "pod/"+name, ":8080", "-n", namespace, "--address=127.0.0.1")
	output, err := forward.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := forward.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := forward.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = forward.Wait() // it was killed
	}()
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	m := forwarded.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("kubectl port-forward prints %q", line)
	}
	response, err := http.Get("http://" + m[1])
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || strings.TrimSpace(string(body)) != name {
		t.Errorf("the pod answers %q, %v", body, err)
	}
}
