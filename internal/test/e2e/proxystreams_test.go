package e2e

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// testProxyStreams fails if the proxy delays streamed data, if the connection of a
// command or a forwarded port cannot be upgraded, or if users without a role can do either.
func testProxyStreams(t *testing.T, p *proxiedCluster) {
	pod := newNginxPod(ownNamespace, "web")
	createObjects(t, newClient(t, p.jane.config), pod)
	t.Cleanup(func() { p.deleteObjects(t, pod) })
	k := p.startKubelet(t, p.awaitRunning(t, pod).Spec.NodeName)

	log, err := p.jane.client.CoreV1().Pods(ownNamespace).GetLogs(pod.Name, &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	lines := bufio.NewScanner(log)
	for _, want := range []string{"one", "two"} {
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("got log line %q, want %q: %v", lines.Text(), want, lines.Err())
		}
		if want == "one" {
			close(k.goOn)
		}
	}
	if logs := p.runKubectlAs(t, p.jane, "", "logs", pod.Name, "-n", ownNamespace).expectExit(t, 0).stdout; logs != "one\ntwo\n" {
		t.Errorf("kubectl logs prints %q", logs)
	}

	if output := p.runKubectlAs(t, p.jane, "hello\n", "exec", "-i", pod.Name, "-n", ownNamespace, "--", "cat").expectExit(t, 0).stdout; output != "hello\n" {
		t.Errorf("kubectl exec prints %q", output)
	}
	account := p.newServiceAccount(t)
	for name, dial := range map[string]func(*rest.Config, *url.URL) (remotecommand.Executor, error){
		"SPDY": func(config *rest.Config, to *url.URL) (remotecommand.Executor, error) {
			return remotecommand.NewSPDYExecutor(config, "POST", to)
		},
		// Browsers send the token this way, because they cannot set headers.
		"token in a WebSocket subprotocol": func(config *rest.Config, to *url.URL) (remotecommand.Executor, error) {
			without := rest.CopyConfig(config)
			without.BearerToken = ""
			return remotecommand.NewWebSocketExecutorForProtocols(without, "GET", to.String(),
				"base64url.bearer.authorization.k8s.io."+encodeBase64(config.BearerToken), "v5.channel.k8s.io")
		},
		"WebSockets": func(config *rest.Config, to *url.URL) (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutor(config, "GET", to.String())
		},
	} {
		cat := func(u testUser) (output string, err error) {
			to := u.client.CoreV1().RESTClient().Post().Namespace(ownNamespace).Resource("pods").Name(pod.Name).SubResource("exec").
				VersionedParams(&corev1.PodExecOptions{Stdin: true, Stdout: true, Command: []string{"cat"}}, scheme.ParameterCodec).URL()
			executor, err := dial(u.config, to)
			if err != nil {
				return "", err
			}
			var out strings.Builder
			err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out})
			return out.String(), err
		}
		if output, err := cat(p.jane); output != "hello" || err != nil {
			t.Errorf("%s: jane's command prints %q: %v", name, output, err)
		}
		for _, u := range []testUser{p.joe, account} {
			if output, err := cat(u); err == nil || !strings.Contains(err.Error(), "orbidden") {
				t.Errorf("%s: a user without a role ran a command: %q, %v", name, output, err)
			}
		}
	}
	p.testPortForward(t, pod, account)
}

// testPortForward fails if a port cannot be forwarded, or if users without a role can forward it.
func (p *proxiedCluster) testPortForward(t *testing.T, pod *corev1.Pod, account testUser) {
	t.Helper()
	for name, dialer := range map[string]func(*rest.Config, *url.URL) (httpstream.Dialer, error){
		"SPDY": func(config *rest.Config, to *url.URL) (httpstream.Dialer, error) {
			through, upgrader, err := spdy.RoundTripperFor(config)
			return spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: through}, http.MethodPost, to), err
		},
		"WebSockets": func(config *rest.Config, to *url.URL) (httpstream.Dialer, error) {
			return portforward.NewSPDYOverWebsocketDialerForStreaming(to, config)
		},
	} {
		forward := func(u testUser, namespace string) (*portforward.PortForwarder, <-chan error) {
			t.Helper()
			dial, err := dialer(u.config, u.client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod.Name).SubResource("portforward").URL())
			if err != nil {
				t.Fatal(err)
			}
			ready, ended := make(chan struct{}), make(chan error, 1)
			forwarder, err := portforward.NewForStreaming(dial, []string{"0:80"}, t.Context().Done(), ready, io.Discard, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			go func() { ended <- forwarder.ForwardPorts() }()
			select {
			case <-ready:
				return forwarder, nil
			case err := <-ended:
				ended <- err
				return nil, ended
			case <-time.After(moments):
				t.Fatalf("%s: the port is neither forwarded nor refused", name)
				return nil, nil
			}
		}
		forwarder, ended := forward(p.jane, ownNamespace)
		if ended != nil {
			t.Errorf("%s: jane's port is not forwarded: %v", name, <-ended)
			continue
		}
		ports, err := forwarder.GetPorts()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"hello", "again"} {
			if got, err := sendText(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[0].Local))), text); got != "port 80: "+text || err != nil {
				t.Errorf("%s: the port answers %q: %v", name, got, err)
			}
		}
		forwarder.Close()
		for u, namespace := range map[*testUser]string{&p.joe: ownNamespace, &account: ownNamespace, &p.jane: otherNamespace} {
			if _, ended := forward(*u, namespace); ended == nil {
				t.Errorf("%s: a user without a role in %s forwarded a port", name, namespace)
			} else if err := <-ended; err == nil || !strings.Contains(err.Error(), "orbidden") {
				t.Errorf("%s: a user without a role in %s was refused otherwise: %v", name, namespace, err)
			}
		}
	}
}

// sendText sends a text to a local address, and returns the whole response.
func sendText(t testing.TB, address, what string) (string, error) {
	t.Helper()
	c, err := (&net.Dialer{Timeout: moments}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(moments)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, what); err != nil {
		return "", err
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		err = tcp.CloseWrite()
	}
	answer, readErr := io.ReadAll(c)
	return string(answer), errors.Join(err, readErr)
}
