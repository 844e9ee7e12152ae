package server

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/session"
)

// largestForm is the maximum size of a form in bytes.
const largestForm = 128 << 10

// bearer matches the characters of a bearer token (RFC 6750, section 2.1).
var bearer = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// showLogin shows the login page, or the next page to a browser that is logged in.
func (d *dashboard) showLogin(w http.ResponseWriter, r *http.Request) {
	next := findLocalPath(r.URL.Query().Get("next"))
	if _, err := d.openSession(w, r); err == nil {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	d.respondLogin(w, r, http.StatusOK, page.Login{Next: next})
}

// respondLogin shows the login page. A browser without a session gets one without a token, for the
// text that the form has to repeat: no other site can log a user in as someone else.
func (d *dashboard) respondLogin(w http.ResponseWriter, r *http.Request, status int, body page.Login) {
	now := time.Now()
	s, err := d.Keys.Open(r.Cookies(), now)
	if err != nil {
		s = session.New("", "", now)
		if err := d.setSession(w, r, s, now); err != nil {
			d.respondError(w, r, s, err)
			return
		}
	}
	s.Token = "" // of a session that has ended
	if d.Provider != nil {
		body.ProviderLink = startPath + "?next=" + url.QueryEscape(body.Next)
		body.NoTokens = !d.TokenLogin
	}
	d.respond(w, r, status, s, page.Page{Title: page.T("Log in"), Heading: page.T("Log in"), Body: body})
}

// logIn begins the session of a user whose token the cluster accepts.
func (d *dashboard) logIn(w http.ResponseWriter, r *http.Request) {
	if _, ok := d.openForm(w, r); !ok {
		return
	}
	body := page.Login{Next: findLocalPath(r.PostForm.Get("next"))}
	token := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(r.PostForm.Get("token")), "Bearer "))
	if !bearer.MatchString(token) {
		body.Problem = page.T("This is no bearer token: it has characters that no token has, or it is empty.")
		d.respondLogin(w, r, http.StatusBadRequest, body)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	user, err := d.Cluster.ReviewUser(ctx, token)
	now := time.Now()
	if err == nil {
		err = d.setSession(w, r, session.New(token, user, now), now)
	}
	if err != nil {
		var status int
		status, body.Problem = explainLogin(err)
		d.Log.WarnContext(ctx, "a login failed", "status", status, "error", err)
		d.respondLogin(w, r, status, body)
		return
	}
	d.Log.InfoContext(ctx, "login", "user", user)
	http.Redirect(w, r, body.Next, http.StatusSeeOther)
}

// explainLogin returns the status and the text for a failed login.
func explainLogin(err error) (int, page.Text) {
	switch {
	case apierrors.IsUnauthorized(err), errors.Is(err, cluster.ErrAnonymous):
		return http.StatusUnauthorized, page.T("The cluster does not accept this token: it is invalid, has expired, or is for another cluster.")
	case apierrors.IsForbidden(err):
		return http.StatusForbidden, page.T("The cluster does not let you read your own name: ask a platform admin for the role system:basic-user.")
	case errors.Is(err, session.ErrTooLarge):
		return http.StatusRequestEntityTooLarge, page.T("The token is too large for the cookies of a browser: ask a platform admin for a token with fewer groups.")
	default:
		return http.StatusBadGateway, page.T("The cluster did not answer. Try again. If it fails again, the dashboard's log has the error.")
	}
}

// logOut ends the session in this browser.
func (d *dashboard) logOut(w http.ResponseWriter, r *http.Request) {
	s, ok := d.openForm(w, r)
	if !ok {
		return
	}
	for _, c := range session.Expire(r.Cookies()) {
		http.SetCookie(w, c)
	}
	http.SetCookie(w, session.ExpireElevation())
	d.streams.endSession(s.CSRF)
	d.Log.InfoContext(r.Context(), "logout", "user", s.User)
	if s.Subject != "" && d.Provider != nil {
		d.logOutAtProvider(w, r, s)
		return
	}
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// openForm returns the session of a form, or refuses the form unless it repeats the text of the
// session.
func (d *dashboard) openForm(w http.ResponseWriter, r *http.Request) (session.Session, bool) {
	s, err := d.Keys.Open(r.Cookies(), time.Now())
	r.Body = http.MaxBytesReader(w, r.Body, largestForm)
	if formErr := r.ParseForm(); err == nil && formErr == nil && subtle.ConstantTimeCompare([]byte(r.PostForm.Get("csrf")), []byte(s.CSRF)) == 1 {
		return s, true
	}
	d.respondForged(w, r)
	return session.Session{}, false
}

// setSession replaces the session's cookies in the browser.
func (d *dashboard) setSession(w http.ResponseWriter, r *http.Request, s session.Session, now time.Time) error {
	cookies, err := d.Keys.Seal(s, r.Cookies(), now)
	for _, c := range cookies {
		http.SetCookie(w, c)
	}
	return err
}
