package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubelet serves the requests for logs, exec and port forwarding, which the sandbox's nodes
// cannot serve, because kwok only simulates them. It has one log; every command with input is cat, and every other
// one writes its arguments and fails; and every port writes its number and then echoes its input.
type kubelet struct {
	*httptest.Server
	// goOn is closed to continue the log after its first line.
	goOn chan struct{}
}

// startKubelet starts a kubelet and points a Node's address to it, so that the API server sends
// requests for the node's pods there.
func (c *cluster) startKubelet(t testing.TB, nodeName string) *kubelet {
	t.Helper()
	k := &kubelet{goOn: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.serveLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", k.serveExec)
	mux.HandleFunc("/portForward/{namespace}/{pod}", k.servePortForward)
	// Its certificate is self-signed: the sandbox's API server does not verify it.
	k.Server = httptest.NewTLSServer(mux)
	t.Cleanup(k.Close)

	var node corev1.Node
	c.getObject(t, "", nodeName, &node)
	patch := client.MergeFrom(node.DeepCopy())
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = parsePort(t, k.URL)
	if err := c.admin.Status().Patch(t.Context(), &node, patch); err != nil {
		t.Fatal(err)
	}
	return k
}

func parsePort(t testing.TB, address string) int32 {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	_, digits, err := net.SplitHostPort(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(port)
}

// serveLogs writes two lines. A client that follows the log gets the second when the test releases
// it.
func (k *kubelet) serveLogs(w http.ResponseWriter, r *http.Request) {
	stamp := ""
	if r.URL.Query().Get("timestamps") == "true" {
		stamp = time.Now().UTC().Format(time.RFC3339Nano) + " "
	}
	_, _ = fmt.Fprintln(w, stamp+"one")
	if r.URL.Query().Get("follow") == "true" {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-k.goOn:
		case <-r.Context().Done():
		}
	}
	_, _ = fmt.Fprintln(w, stamp+"two")
}

// serveExec runs a command over the protocol between the API server and kubelets.
func (k *kubelet) serveExec(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{"v5.channel.k8s.io", "v4.channel.k8s.io"}); err != nil {
		return // the handshake has sent the error
	}
	opened := make(chan httpstream.Stream, 4)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		opened <- s
		return nil
	})
	if connection == nil {
		return
	}
	defer func() { _ = connection.Close() }()
	command, hasInput := r.URL.Query()["command"], r.URL.Query().Has("input")
	expected := []string{"stdin", "stdout", "error"}
	if !hasInput {
		expected = []string{"stdout", "stderr", "error"}
	}
	streams := map[string]httpstream.Stream{}
	for _, want := range expected {
		for streams[want] == nil {
			select {
			case s := <-opened:
				streams[s.Headers().Get(corev1.StreamType)] = s
			case <-connection.CloseChan():
				return
			}
		}
	}
	if !hasInput {
		_, _ = fmt.Fprintf(streams["stdout"], "%q\n", command)
		_, _ = io.WriteString(streams["stderr"], "<b>\x1b[31mfailed\u200b\n")
		_, _ = io.WriteString(streams["error"], `{"metadata":{},"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}`)
		return
	}
	_, _ = io.Copy(streams["stdout"], streams["stdin"])
	_, _ = io.WriteString(streams["error"], `{"metadata":{},"status":"Success"}`)
}

// servePortForward serves connections to a pod's ports over the protocol between the API server and
// kubelets.
func (k *kubelet) servePortForward(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return // the handshake has sent the error
	}
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, accepted <-chan struct{}) error {
		go func() {
			<-accepted
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
				_, _ = io.WriteString(s, "port "+s.Headers().Get(corev1.PortHeader)+": ")
				_, _ = io.Copy(s, s)
			}
			_ = s.Close() // an error stream without data means success
		}()
		return nil
	})
	if connection == nil {
		return
	}
	defer func() { _ = connection.Close() }()
	<-connection.CloseChan()
}
