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
	"croft.dev/croft/internal/dashboard/costs"
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
	// Ledger has the costs; nil without one.
	Ledger *costs.Ledger
	// Stopping is closed when the process is about to stop: then the streams of live updates end. It may
	// be nil.
	Stopping <-chan struct{}
	Log      *slog.Logger
}

// requestTimeout limits the requests to the cluster for one page.
const requestTimeout = 30 * time.Second

// dashboard handles the requests of browsers.
type dashboard struct {
	Options
	renewals renewals
	streams  *streams
	commands *commands
	pace     pace
}

// New returns the handler of all requests.
func New(o Options) http.Handler {
	return newDashboard(o).handler()
}

func newDashboard(o Options) *dashboard {
	return &dashboard{Options: o, streams: newStreams(), commands: newCommands(), pace: defaultPace}
}

func (d *dashboard) handler() http.Handler { return d.protect(d.newRoutes()) }

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
	for path, asset := range map[string]struct {
		kind string
		text []byte
	}{page.StylePath: {"text/css", page.Style}, page.ScriptPath: {"text/javascript", page.Script}} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", asset.kind+"; charset=utf-8")
			_, _ = w.Write(asset.text)
		})
	}
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
	for pattern, p := range map[string]struct {
		show view
		// live means that the page is updated. The others change rarely, or are forms.
		live bool
	}{
		"/{$}":                              {showStart, true},
		"/tenants":                          {showTenants, true},
		"/pools":                            {showPools, true},
		"/pools/{pool}":                     {showStarts, false},
		"/nodes":                            {showStarts, false},
		"/walls":                            {showWalls, true},
		"/namespaces/{namespace}":           {showOverview, true},
		"/namespaces/{namespace}/workloads": {showWorkloads, true},
		"/namespaces/{namespace}/workloads/{kind}/{name}": {showWorkload, true},
		"/namespaces/{namespace}/jobs":                    {showJobs, true},
		"/namespaces/{namespace}/network":                 {showNetwork, false},
		"/namespaces/{namespace}/hosts":                   {showHosts, false},
		"/namespaces/{namespace}/hosts/{kinds}":           {showHosts, false},
		"/namespaces/{namespace}/quota":                   {showQuota, true},
		"/namespaces/{namespace}/access":                  {showAccess, false},
		"/namespaces/{namespace}/elevations":              {d.showElevations, true},
		"/namespaces/{namespace}/cost":                    {d.showCost, false},
		"/costs":                                          {d.showCost, false},
		"/namespaces/{namespace}/try":                     {showTry, false},
	} {
		mux.HandleFunc("GET "+pattern, d.newPageHandler(p.show, p.live))
	}
	mux.HandleFunc("GET /namespaces/{namespace}/workloads/pod/{name}/log", d.downloadLog)
	mux.HandleFunc("POST /namespaces/{namespace}/workloads/{kind}/{name}/{change}", d.newFormHandler(largestForm, changeWorkload))
	mux.HandleFunc("POST /namespaces/{namespace}/workloads/pod/{name}/run", d.newFormHandler(largestForm, d.runCommand))
	mux.HandleFunc("POST /namespaces/{namespace}/elevations", d.changeElevations(d.requestElevation))
	mux.HandleFunc("POST /namespaces/{namespace}/elevations/{name}/{change}", d.changeElevations(d.changeElevation))
	mux.HandleFunc("POST /namespaces/{namespace}/try", d.newFormHandler(largestTrialForm, tryManifests))
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		s, _ := d.Keys.Open(r.Cookies(), time.Now())
		d.respondMissing(w, r, s)
	})
	return mux
}

// view reads the data of a page with the user's client.
type view func(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error)

// newPageHandler returns the handler of a page that needs a login.
func (d *dashboard) newPageHandler(show view, live bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, c, ok := d.openConnection(w, r)
		if !ok {
			return
		}
		r = withUser(r, s.User)
		if live && isStream(r) {
			d.serveStream(w, r, s, c, show)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		p, err := show(ctx, c, r)
		if err != nil {
			d.respondError(w, r, s, err)
			return
		}
		p.Live = live
		d.respond(w, r, http.StatusOK, s, p)
	}
}

// respond writes a page, in the language that the browser prefers.
func (d *dashboard) respond(w http.ResponseWriter, r *http.Request, status int, s session.Session, p page.Page) {
	p.CSRF, p.Language = s.CSRF, readLanguage(r)
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

func readLanguage(r *http.Request) page.Language {
	return page.ChooseLanguage(r.Header.Get("Accept-Language"))
}
