package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	// ErrNoStreams means that the server does not open the streams of a command, for a reason that it does not give.
	ErrNoStreams = errors.New("the server opens no streams")
	// ErrLost means that the connection ended before the command.
	ErrLost = errors.New("the connection ended before the command")
)

// RunCommand runs a line of sh in a container without input, writes its output, and returns its exit code.
// An API status is the server's refusal; other errors have a message of the container's node. No error
// contains the command, unless the node repeats it.
func (c *Client) RunCommand(ctx context.Context, pod client.ObjectKey, container, command string, stdout, stderr io.Writer) (exitCode int, err error) {
	core, err := c.newCoreClient()
	if err != nil {
		return 0, err
	}
	to := core.Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: []string{"sh", "-c", command}, Stdout: true, Stderr: true}, clientgoscheme.ParameterCodec).URL()
	// client-go logs URLs, which contain the command.
	ctx = klog.NewContext(ctx, logr.Discard())
	err = stream(ctx, c.streaming, to, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
	var exited exec.CodeExitError
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.As(err, &exited):
		return exited.Code, nil
	case err != nil && strings.HasPrefix(err.Error(), "error reading from error stream: "):
		return 0, ErrLost
	default:
		return 0, err
	}
}

// stream opens the streams of a command by WebSocket, and by SPDY like kubectl if that fails: gateways may
// forward only one of both, and a WebSocket needs the right to get, but SPDY the right to create.
func stream(ctx context.Context, config *rest.Config, to *url.URL, o remotecommand.StreamOptions) error {
	webSocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, to.String())
	if err != nil {
		return err
	}
	err = webSocket.StreamWithContext(ctx, o)
	var refused *httpstream.UpgradeFailureError
	if !errors.As(err, &refused) && !httpstream.IsHTTPSProxyError(err) {
		return err
	}
	var status *apierrors.StatusError
	if refused != nil && errors.As(refused.Cause, &status) && !apierrors.IsForbidden(status) {
		return status
	}
	through, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return err
	}
	// The other constructors follow redirects, with the token.
	overSPDY, err := remotecommand.NewSPDYExecutorRejectRedirects(through, upgrader, http.MethodPost, to)
	if err != nil {
		return err
	}
	err = overSPDY.StreamWithContext(ctx, o)
	message, noStreams := "", false
	if err != nil {
		message, noStreams = strings.CutPrefix(err.Error(), "unable to upgrade connection: ")
	}
	switch {
	case noStreams && status != nil:
		return status
	case noStreams && message != "empty server response" && !strings.HasPrefix(message, "<"): // no page of a gateway
		return errors.New(message)
	case noStreams, err != nil && strings.HasPrefix(err.Error(), "error sending request: "): // with the URL
		return ErrNoStreams
	default:
		return err
	}
}

// newCoreClient returns a client for the subresources of pods that are no objects.
func (c *Client) newCoreClient() (*rest.RESTClient, error) {
	config := rest.CopyConfig(c.config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = codecs
	core, err := rest.RESTClientForConfigAndClient(config, c.http)
	if err != nil {
		return nil, fmt.Errorf("connect to the API of pods: %w", err)
	}
	return core, nil
}
