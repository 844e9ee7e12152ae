package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	upgradeproxy "k8s.io/apimachinery/pkg/util/proxy"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/streaming/pkg/httpstream"
)

// dialTimeout is the time limit for connecting to the API server.
const dialTimeout = 30 * time.Second

// forwarder forwards requests to the API server, impersonating the user in the request's
// context.
type forwarder struct {
	http.Handler
	location  *url.URL
	transport http.RoundTripper
}

func newForwarder(config *rest.Config) (*forwarder, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	// Without a trailing slash UpgradeAwareHandler would redirect to the path with one.
	location := &url.URL{Scheme: target.Scheme, Host: target.Host, Path: strings.TrimSuffix(target.Path, "/") + "/"}
	// Service accounts authenticate with their own tokens. The API server prefers a client
	// certificate to a bearer token: over a connection with the proxy's certificate it
	// would authenticate a service account as the proxy, which may impersonate any user.
	anonymous := rest.AnonymousClientConfig(config)
	var impersonating impersonatingTransport
	if impersonating.withCredentials, err = rest.TransportFor(config); err != nil {
		return nil, err
	}
	if impersonating.anonymous, err = rest.TransportFor(anonymous); err != nil {
		return nil, err
	}
	logs := impersonatingTransport{}
	if logs.withCredentials, err = rest.TransportFor(disableHTTP2(config)); err != nil {
		return nil, err
	}
	if logs.anonymous, err = rest.TransportFor(disableHTTP2(anonymous)); err != nil {
		return nil, err
	}
	users, err := newUpgrader(location, impersonating, config)
	if err != nil {
		return nil, err
	}
	serviceAccounts, err := newUpgrader(location, impersonating, anonymous)
	if err != nil {
		return nil, err
	}
	plain, watches := newReverseProxy(location, impersonating, bufferSize), newReverseProxy(location, impersonating, watchBufferSize)
	followed, whole := newReverseProxy(location, logs, bufferSize), newReverseProxy(location, logs, logBufferSize)
	choose := func(r *http.Request) http.Handler {
		u, _ := request.UserFrom(r.Context())
		info, ok := request.RequestInfoFrom(r.Context())
		isLog := ok && info.Verb == "get" && info.Resource == "pods" && info.Subresource == "log"
		switch {
		case httpstream.IsUpgradeRequest(r) && u != nil && isServiceAccount(u):
			return serviceAccounts
		case httpstream.IsUpgradeRequest(r):
			return users
		case isLog && r.URL.Query().Get("follow") == "true":
			return followed
		case isLog:
			return whole
		case ok && info.Verb == "watch":
			return watches
		default:
			return plain
		}
	}
	return &forwarder{location: location, transport: impersonating, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		choose(r).ServeHTTP(w, r)
	})}, nil
}

// disableHTTP2 returns a configuration for HTTP/1.1 connections. A log over such a
// connection takes about 70 % of the processor time of HTTP/2, and does not consume the flow
// control window of a connection that other requests share.
func disableHTTP2(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.NextProtos = []string{"http/1.1"}
	return c
}

const (
	// bufferSize is the size of the buffers through which responses are copied, as in
	// httputil.ReverseProxy.
	bufferSize = 32 << 10
	// watchBufferSize is the buffer size of watches. Watches are many, and each keeps its
	// buffer while it waits.
	watchBufferSize = 8 << 10
	// logBufferSize is the buffer size of logs that are not followed. They end soon, and
	// each full buffer costs one write to the client's connection.
	logBufferSize = 256 << 10
	// flushInterval is how often a response of known length is flushed. Any other response
	// is flushed after each read from the API server.
	flushInterval = 200 * time.Millisecond
)

// newReverseProxy forwards requests without an upgrade through a transport.
func newReverseProxy(location *url.URL, through http.RoundTripper, buffer int) http.Handler {
	p := httputil.NewSingleHostReverseProxy(location)
	p.Transport, p.FlushInterval, p.BufferPool = through, flushInterval, newBufferPool(buffer)
	p.ErrorHandler = responder{}.Error
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := r.WithContext(r.Context())
		out.Host = location.Host
		p.ServeHTTP(w, out)
	})
}

// bufferPool implements httputil.BufferPool. Without one, each request allocates its buffer.
type bufferPool struct{ sync.Pool }

func newBufferPool(size int) *bufferPool {
	return &bufferPool{sync.Pool{New: func() any {
		b := make([]byte, size)
		return &b
	}}}
}

// Get implements httputil.BufferPool.
func (p *bufferPool) Get() []byte {
	b, _ := p.Pool.Get().(*[]byte)
	return *b
}

// Put implements httputil.BufferPool.
func (p *bufferPool) Put(b []byte) { p.Pool.Put(&b) }

// newUpgrader forwards requests with an upgrade, such as exec. It uses the credentials of
// config, if there are any.
func newUpgrader(location *url.URL, through http.RoundTripper, config *rest.Config) (http.Handler, error) {
	upgrading, err := newUpgradeTransport(config)
	if err != nil {
		return nil, err
	}
	h := upgradeproxy.NewUpgradeAwareHandler(location, through, false, true, responder{})
	h.UpgradeTransport = upgrading
	h.UseRequestLocation, h.UseLocationHost, h.AppendLocationPath = true, true, true
	return h, nil
}

func isServiceAccount(u user.Info) bool {
	_, _, err := serviceaccount.SplitUsername(u.GetName())
	return err == nil
}

// newUpgradeTransport returns the transport of upgraded connections (exec, attach,
// port-forward). It is HTTP/1.1, because HTTP/2 has no Upgrade.
func newUpgradeTransport(config *rest.Config) (upgradeproxy.UpgradeRequestRoundTripper, error) {
	c, err := config.TransportConfig()
	if err != nil {
		return nil, err
	}
	tls, err := transport.TLSConfigFor(c)
	if err != nil {
		return nil, err
	}
	connection := utilnet.SetOldTransportDefaults(&http.Transport{
		TLSClientConfig: tls,
		DialContext:     (&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext,
	})
	withAuth, err := transport.HTTPWrappersForConfig(c, upgradeproxy.MirrorRequest)
	if err != nil {
		return nil, err
	}
	return upgradeproxy.NewUpgradeRequestRoundTripper(connection, impersonatingTransport{withAuth, withAuth}), nil
}

// impersonatingTransport impersonates the user in the request's context. It is a transport,
// not a handler, so that it runs after the hop-by-hop headers have been removed.
type impersonatingTransport struct {
	// withCredentials sends the proxy's own credentials; anonymous sends no credentials.
	withCredentials, anonymous http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t impersonatingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	u, ok := request.UserFrom(r.Context())
	if !ok {
		return nil, errors.New("the request has no authenticated user")
	}
	r = utilnet.CloneRequest(r)
	if id, ok := audit.AuditIDFrom(r.Context()); ok {
		r.Header.Set(auditinternal.HeaderAuditID, string(id)) // the same ID in both audit logs
	}
	for name := range r.Header {
		if name == "Authorization" || strings.HasPrefix(name, "Impersonate-") {
			delete(r.Header, name)
		}
	}
	if isServiceAccount(u) {
		// Service accounts use their own tokens. The proxy may not impersonate service
		// accounts, so that a stolen proxy token cannot either.
		token := findToken(r.Context())
		if token == "" {
			return nil, errors.New("the service account's token was not recorded")
		}
		r.Header.Set("Authorization", "Bearer "+token)
		return t.anonymous.RoundTrip(r)
	}
	return transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{
		UserName: u.GetName(), UID: u.GetUID(), Extra: u.GetExtra(),
		// The API server itself adds this group to every authenticated user.
		Groups: slices.DeleteFunc(slices.Clone(u.GetGroups()), func(g string) bool { return g == user.AllAuthenticated }),
	}, t.withCredentials).RoundTrip(r)
}

// tokenHolderKey is the context key of the holder (*string) for the bearer token that
// authenticated the request.
type tokenHolderKey struct{}

// withTokenHolder adds an empty token holder to the context. The authenticators remove the
// token from the request, and recordToken keeps it in the holder.
func withTokenHolder(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tokenHolderKey{}, new(string))))
	})
}

// findToken returns the token that has authenticated a request, or "" for a client certificate.
func findToken(ctx context.Context) string {
	if token, ok := ctx.Value(tokenHolderKey{}).(*string); ok {
		return *token
	}
	return ""
}

// responder writes the error response when forwarding fails.
type responder struct{}

// Error implements upgradeproxy.ErrorResponder.
func (responder) Error(w http.ResponseWriter, r *http.Request, err error) {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		respondError(w, r, err)
		return
	}
	respondError(w, r, apierrors.NewServiceUnavailable("croft proxy cannot reach the API server: "+err.Error()))
}
