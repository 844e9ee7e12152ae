// Package proxy is an authenticating reverse proxy for the API server. It is for clusters
// that cannot be configured with the platform's identity provider, or where lists have to
// be filtered by users' rights. It authenticates requests and forwards them by
// impersonation; authorization stays with the API server.
package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Options configure a Proxy.
type Options struct {
	// Upstream is the connection to the API server, with the proxy's own credentials.
	Upstream *rest.Config
	// AuthenticationConfig is the path of an AuthenticationConfiguration
	// (apiserver.config.k8s.io), the API server's own format. The file is reloaded when it
	// changes; if the new content is invalid, the proxy logs an error and keeps the
	// previous configuration.
	AuthenticationConfig string
	// Clients are the certificate authorities of client certificates. If it is nil, client
	// certificates are not accepted.
	Clients dynamiccertificates.CAContentProvider
	// Role is the name of the ClusterRole that lists the groups and extra values which the
	// proxy may impersonate. Others are removed from requests. If it is empty, nothing is
	// removed.
	Role string
	// Ledger is the URL of croft ledger, which answers requests below LedgerPath. If it is nil, the API server
	// answers them, as all others.
	Ledger *url.URL
	// LedgerAuthorityFile is the path of the CA bundle for Ledger, and is read for each request. The system's
	// authorities are used if it is empty or does not exist.
	LedgerAuthorityFile string
	// Audit configures the audit log.
	Audit Audit
	Log   *slog.Logger
}

// Proxy is the handler for users' requests.
type Proxy struct {
	http.Handler
	authentication *authentication
	metrics        *metrics
	log            *slog.Logger
	started        time.Time
	keysFetched    atomic.Bool
}

// checkReady returns an error until the keys of all identity providers have been fetched, but
// for at most keysTimeout after the start: an identity provider that is unreachable must
// not lock out the users of others.
func (p *Proxy) checkReady() error {
	if p.keysFetched.Load() || time.Since(p.started) > keysTimeout {
		return nil
	}
	err := p.authentication.current.Load().checkHealth()
	p.keysFetched.Store(err == nil)
	return err
}

// New returns a proxy once its caches of namespaces and RBAC have synced. It watches both,
// and reloads files, until ctx ends.
func New(ctx context.Context, o Options) (*Proxy, error) {
	authn, err := newAuthentication(ctx, o.AuthenticationConfig, o.Log)
	if err != nil {
		return nil, err
	}
	go authn.run(ctx)
	// The proxy's own requests are few, except for token reviews, which are rate-limited by
	// client address.
	clientConfig := rest.CopyConfig(o.Upstream)
	clientConfig.QPS = -1
	client, err := kubernetes.NewForConfig(clientConfig)
	if err != nil {
		return nil, err
	}
	reviewer, err := newReviewer(client.AuthenticationV1())
	if err != nil {
		return nil, err
	}
	authenticator := newRequestAuthenticator(authn, reviewer, o.Clients)
	forward, err := newForwarder(o.Upstream)
	if err != nil {
		return nil, err
	}
	var filter *impersonationFilter
	if o.Role != "" {
		filter = &impersonationFilter{role: o.Role}
	}
	ns := newNamespaces()
	tenants, err := newTenancy(ns.access)
	if err != nil {
		return nil, err
	}
	if err := startInformers(ctx, client, ns, tenants, filter); err != nil {
		return nil, err
	}
	croft, err := dynamic.NewForConfig(clientConfig)
	if err != nil {
		return nil, err
	}
	if err := startTenancy(ctx, client, croft, tenants, o.Log); err != nil {
		return nil, err
	}
	if filter != nil && filter.current.Load() == nil {
		o.Log.WarnContext(ctx, "the proxy's ClusterRole does not exist, so users' requests will be refused: set platform.proxy", "role", o.Role)
	}
	lists := withVisibleNamespaces(ns, withTenancy(tenants, forward, withAllNamespaces(ns, forward)))
	c := chain{
		authenticator: filterUsers(filter, authenticator), metrics: newMetrics(),
		next: withAccessReviews(&accessReviews{namespaces: ns, tenants: tenants, forward: forward}, lists),
	}
	if o.Ledger != nil {
		c.next = withLedger(&ledger{address: o.Ledger, authorityFile: o.LedgerAuthorityFile, log: o.Log}, c.next)
	}
	if c.sink, c.policy, err = o.Audit.newSink(); err != nil {
		return nil, err
	}
	return &Proxy{Handler: c.buildHandler(), authentication: authn, metrics: c.metrics, log: o.Log, started: time.Now()}, nil
}

// isLongRunning reports whether a request has no time limit, as defined by kube-apiserver.
func isLongRunning(_ *http.Request, info *request.RequestInfo) bool {
	return info.Verb == "watch" || info.Verb == "proxy" ||
		info.IsResourceRequest && slices.Contains([]string{"attach", "exec", "proxy", "log", "portforward"}, info.Subresource)
}

// chain is the handler chain in front of next.
type chain struct {
	authenticator authenticator.Request
	metrics       *metrics
	next          http.Handler
	// sink and policy are the audit backend and policy; nil if nothing is recorded.
	sink   audit.Sink
	policy audit.PolicyRuleEvaluator
}

func (c chain) buildHandler() http.Handler {
	h := rejectImpersonation(c.next)
	h = filters.WithAudit(h, c.sink, c.policy, isLongRunning)
	failed := filters.WithFailedAuthenticationAudit(c.newUnauthorizedHandler(), c.sink, c.policy)
	h = filters.WithAuthentication(h, c.authenticator, failed, nil, nil)
	h = withClientAddress(withTokenHolder(h))
	h = withCleanHeaders(h)
	h = filters.WithAuditInit(h)
	h = c.metrics.instrument(h)
	h = filters.WithRequestInfo(h, &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")})
	return filters.WithRequestReceivedTimestamp(h)
}

// withCleanHeaders rejects malformed requests. From other requests it removes all identity
// headers except Authorization and the impersonation headers, which later handlers
// evaluate.
func withCleanHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if message := explainMalformed(r); message != "" {
			respondError(w, r, apierrors.NewBadRequest(message))
			return
		}
		kept := http.Header{}
		for name, values := range r.Header {
			if name == "Authorization" || isImpersonationHeader(name) {
				kept[name] = values
			}
		}
		removeIdentityHeaders(r.Header)
		for name, values := range kept {
			r.Header[name] = values
		}
		next.ServeHTTP(w, r)
	})
}

// rejectImpersonation rejects requests with impersonation headers.
func rejectImpersonation(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if isImpersonationHeader(name) {
				respondError(w, r, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("impersonation is not allowed through croft proxy: omit --as, --as-group and --as-uid")))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (c chain) newUnauthorizedHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.metrics.unauthenticated.Inc()
		respondError(w, r, apierrors.NewUnauthorized("the token or certificate is missing, has expired or is not from a configured identity provider: run croft login"))
	})
}

// respondError writes an error as the API server does. For non-resource requests, such as
// discovery, it writes the message as text: clients parse no Status there, and kubectl
// would print "unknown".
func respondError(w http.ResponseWriter, r *http.Request, err error) {
	if info, ok := request.RequestInfoFrom(r.Context()); ok && !info.IsResourceRequest {
		status := responsewriters.ErrorToAPIStatus(err)
		http.Error(w, status.Message, int(status.Code))
		return
	}
	responsewriters.ErrorNegotiated(err, clientgoscheme.Codecs.WithoutConversion(), schema.GroupVersion{Version: "v1"}, w, r)
}
