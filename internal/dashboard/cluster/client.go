package cluster

import (
	"context"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client is a connection with the rights of one user.
type Client struct {
	client.WithWatch

	config *rest.Config
	http   *http.Client
	// streaming is the configuration of connections that are upgraded, which need transports of their own.
	streaming *rest.Config
}

var codecs = serializer.NewCodecFactory(clientgoscheme.Scheme).WithoutConversion()

// Token returns the user's token, for other servers that accept the cluster's tokens.
func (c *Client) Token() string { return c.config.BearerToken }

// Unwatched returns a reader whose reads a Watcher does not record, for objects that change all the time.
func (c *Client) Unwatched() client.Reader {
	if r, ok := c.WithWatch.(recorder); ok {
		return r.WithWatch
	}
	return c.WithWatch
}

// OpenLog opens the log of a container. The caller closes it.
func (c *Client) OpenLog(ctx context.Context, pod client.ObjectKey, o *corev1.PodLogOptions) (io.ReadCloser, error) {
	core, err := c.newCoreClient()
	if err != nil {
		return nil, err
	}
	return core.Get().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("log").
		VersionedParams(o, clientgoscheme.ParameterCodec).Stream(ctx)
}
