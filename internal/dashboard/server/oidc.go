package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/provider"
	"croft.dev/croft/internal/dashboard/session"
)

const (
	// startPath begins a login at the identity provider. It is no form: browsers apply the
	// Content Security Policy of forms also to redirects, and a provider may redirect to others.
	startPath = "/login/start"
	// logoutTimeout limits the requests to the provider for a logout.
	logoutTimeout = 5 * time.Second
)

// startLogin leads the browser to the identity provider. Another site may begin a login, too: it can
// only log users in as themselves, because the response must belong to the attempt in the cookie.
func (d *dashboard) startLogin(w http.ResponseWriter, r *http.Request) {
	next := findLocalPath(r.URL.Query().Get("next"))
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	a := session.NewAttempt(next, time.Now())
	location, err := d.Provider.BuildLoginURL(ctx, a)
	var c *http.Cookie
	if err == nil {
		c, err = d.Keys.SealAttempt(a)
	}
	if err != nil {
		d.respondLoginFailure(w, r, next, err)
		return
	}
	http.SetCookie(w, c)
	http.Redirect(w, r, location, http.StatusSeeOther)
}

// finishLogin begins the session of a user whom the identity provider has redirected back.
func (d *dashboard) finishLogin(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	now := time.Now()
	a, _ := d.Keys.OpenAttempt(r.Cookies(), now) // without a cookie, no state matches
	tokens, err := d.Provider.FinishLogin(ctx, a, r.URL.Query())
	if errors.Is(err, provider.ErrForeign) {
		d.Log.WarnContext(ctx, "refused the response to another login", "error", err)
		d.respond(w, r, http.StatusForbidden, session.Session{}, page.Page{Title: page.T("Refused"), Heading: page.T("The login was refused"), Body: page.Message{
			Text: page.T("This browser did not begin this login, began another one since, or began it more than ten minutes ago. Log in again."),
		}})
		return
	}
	http.SetCookie(w, session.ExpireAttempt())
	next := findLocalPath(a.Next)
	if err != nil {
		d.respondLoginFailure(w, r, next, err)
		return
	}
	user, err := d.Cluster.ReviewUser(ctx, tokens.ID)
	if err == nil {
		s := session.New(tokens.ID, user, now)
		setTokens(&s, tokens)
		err = d.setSession(w, r, s, now)
	}
	if err != nil {
		status, problem := explainLogin(err)
		if apierrors.IsUnauthorized(err) {
			problem = page.T("The cluster does not accept the tokens of your identity provider: ask a platform admin to configure its issuer and client at the API server or at croft proxy.")
		}
		d.Log.WarnContext(ctx, "a login failed", "status", status, "error", err)
		d.respondLogin(w, r, status, page.Login{Next: next, Problem: problem})
		return
	}
	d.Log.InfoContext(ctx, "login", "user", user, "renewable", tokens.Refresh != "")
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func setTokens(s *session.Session, tokens *provider.Tokens) {
	s.Token, s.Refresh, s.Subject, s.TokenExpiry = tokens.ID, tokens.Refresh, tokens.Subject, tokens.Expiry
}

// respondLoginFailure shows the login page after a failure at the identity provider.
func (d *dashboard) respondLoginFailure(w http.ResponseWriter, r *http.Request, next string, err error) {
	status, problem := http.StatusBadGateway, page.T("The login at the identity provider failed. Try again. If it fails again, the dashboard's log has the error.")
	var refused *provider.RefusedError
	if errors.As(err, &refused) && refused.Code == "access_denied" {
		status, problem = http.StatusForbidden, page.T("The identity provider refused the login, or you cancelled it.")
	}
	d.Log.WarnContext(r.Context(), "a login failed", "status", status, "error", err)
	d.respondLogin(w, r, status, page.Login{Next: next, Problem: problem})
}

// logOutAtProvider revokes the refresh token, and leads the browser to the end of its session at the
// provider. The page does this instead of a redirect, as in startLogin.
func (d *dashboard) logOutAtProvider(w http.ResponseWriter, r *http.Request, s session.Session) {
	ctx, cancel := context.WithTimeout(r.Context(), logoutTimeout)
	defer cancel()
	var revokeErr error
	if s.Refresh != "" {
		revokeErr = d.Provider.Revoke(ctx, s.Refresh)
	}
	location, err := d.Provider.BuildLogoutURL(ctx)
	if err := cmp.Or(revokeErr, err); err != nil {
		d.Log.WarnContext(ctx, "the logout at the identity provider failed", "user", s.User, "error", err)
	}
	if location == "" {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	w.Header().Set("Refresh", "0; url="+location)
	d.respond(w, r, http.StatusOK, session.Session{}, page.Page{Title: page.T("Logged out"), Heading: page.T("Logged out"), Body: page.LoggedOut{ProviderLink: location}})
}
