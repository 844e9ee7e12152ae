// Package server serves the dashboard. The user's session is in the browser's cookies, and every page
// is read from the cluster with the user's token. Only renewed tokens are kept for a minute, so that a
// browser's concurrent requests renew a token once.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/provider"
	"croft.dev/croft/internal/dashboard/session"
)

// Options configure the dashboard.
type Options struct {
	// Cluster is the API server, or croft's proxy.
	Cluster *cluster.Server
	// Keys seal the sessions.
	Keys *session.Keys
	// Provider is the identity provider at which users log in; nil without one.
	Provider *provider.Provider
	// TokenLogin allows logins with a token although there is a provider. Without a provider, they
	// are always allowed.
	TokenLogin bool
	Log        *slog.Logger
}

// requestTimeout limits the requests to the cluster for one page.
const requestTimeout = 30 * time.Second

// dashboard handles the requests of browsers.
type dashboard struct {
	Options
	renewals renewals
}

// New returns the handler of all requests.
func New(o Options) http.Handler {
	d := &dashboard{Options: o}
	return d.protect(d.newRoutes())
}

// protect adds the guards that no route may lack.
func (d *dashboard) protect(routes http.Handler) http.Handler {
	// Browsers send Sec-Fetch-Site or Origin with each form. Forms also have a text that only
	// pages of the session contain.
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(d.respondForged))
	return withHeaders(d.withRecovery(sameOrigin.Handler(routes)))
}

func (d *dashboard) newRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET "+page.StylePath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(page.Style)
	})
	mux.HandleFunc("GET /login", d.showLogin)
	if d.Provider == nil || d.TokenLogin {
		mux.HandleFunc("POST /login", d.logIn)
	}
	if d.Provider != nil {
		mux.HandleFunc("GET "+startPath, d.startLogin)
		mux.HandleFunc("GET "+provider.CallbackPath, d.finishLogin)
	}
	mux.HandleFunc("POST /logout", d.logOut)
	mux.HandleFunc("GET /open", d.openNamespace)
	for pattern, show := range map[string]view{
		"/{$}":                              showStart,
		"/tenants":                          showTenants,
		"/pools":                            showPools,
		"/walls":                            showWalls,
		"/namespaces/{namespace}":           showOverview,
		"/namespaces/{namespace}/workloads": showWorkloads,
		"/namespaces/{namespace}/workloads/{kind}/{name}": showWorkload,
		"/namespaces/{namespace}/jobs":                    showJobs,
		"/namespaces/{namespace}/network":                 showNetwork,
		"/namespaces/{namespace}/hosts":                   showHosts,
		"/namespaces/{namespace}/quota":                   showQuota,
		"/namespaces/{namespace}/access":                  showAccess,
		"/namespaces/{namespace}/try":                     showTry,
	} {
		mux.HandleFunc("GET "+pattern, d.newPageHandler(show))
	}
	mux.HandleFunc("GET /namespaces/{namespace}/workloads/pod/{name}/log", d.downloadLog)
	mux.HandleFunc("POST /namespaces/{namespace}/workloads/{kind}/{name}/{change}", d.newFormHandler(largestForm, changeWorkload))
	mux.HandleFunc("POST /namespaces/{namespace}/try", d.newFormHandler(largestTrialForm, tryManifests))
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		s, _ := d.Keys.Open(r.Cookies(), time.Now())
		d.respondMissing(w, s)
	})
	return mux
}

// view reads the data of a page with the user's client.
type view func(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error)

// newPageHandler returns the handler of a page that needs a login.
func (d *dashboard) newPageHandler(show view) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, c, ok := d.openConnection(w, r)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		p, err := show(ctx, c, r)
		if err != nil {
			d.respondError(w, r, s, err)
			return
		}
		d.respond(w, http.StatusOK, s, p)
	}
}

// respond writes a page.
func (d *dashboard) respond(w http.ResponseWriter, status int, s session.Session, p page.Page) {
	p.CSRF = s.CSRF
	if s.Token != "" {
		p.User = s.User
	}
	text, err := page.Render(p)
	if err != nil {
		d.Log.Error("cannot render a page", "error", err)
		http.Error(w, "the page cannot be rendered", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
