package server

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/session"
	"croft.dev/croft/internal/diagnose/me"
	"croft.dev/croft/internal/diagnose/why"
)

// errMissing means that a page does not exist.
var errMissing = errors.New("no such page")

// respondError responds to an error of the cluster or of the session.
func (d *dashboard) respondError(w http.ResponseWriter, r *http.Request, s session.Session, err error) {
	var outage *providerError
	switch {
	case errors.Is(err, errLoginNeeded):
		redirectToLogin(w, r)
	case errors.As(err, &outage):
		d.respond(w, r, http.StatusBadGateway, s, page.Page{Title: page.T("No answer"), Heading: page.T("The identity provider did not answer"), Body: page.Message{
			Text: page.T("The dashboard could not renew your login. Reload the page. If it fails again, the dashboard's log has the error."),
		}})
	case apierrors.IsUnauthorized(err):
		for _, c := range session.Expire(r.Cookies()) {
			http.SetCookie(w, c)
		}
		redirectToLogin(w, r)
	case isMissing(err):
		d.respondMissing(w, r, s)
	default:
		d.Log.WarnContext(r.Context(), "the cluster did not answer", "path", r.URL.Path, "user", s.User, "error", err)
		d.respond(w, r, http.StatusBadGateway, s, page.Page{
			Title: page.T("No answer"), Heading: page.T("The cluster did not answer"), Body: page.Message{Text: page.T("Reload the page. If it fails again, the dashboard's log has the error.")},
		})
	}
}

// isMissing reports whether an object does not exist, or the user may not read it. Pages make no
// difference between both, so that they reveal no names.
func isMissing(err error) bool {
	var elsewhere *me.NotTenantsError
	var unreadable *why.UnreadableError
	return errors.Is(err, errMissing) || errors.As(err, &elsewhere) || errors.As(err, &unreadable) ||
		apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

// respondMissing does not repeat the requested name.
func (d *dashboard) respondMissing(w http.ResponseWriter, r *http.Request, s session.Session) {
	d.respond(w, r, http.StatusNotFound, s, page.Page{
		Title: page.T("Not found"), Heading: page.T("Not found"), Body: page.Message{Text: page.T("This page does not exist, or you may not see it.")},
	})
}

// respondForged refuses a form that no page of this session has sent.
func (d *dashboard) respondForged(w http.ResponseWriter, r *http.Request) {
	d.Log.WarnContext(r.Context(), "refused a form from another site or session", "path", r.URL.Path, "origin", r.Header.Get("Origin"))
	d.respond(w, r, http.StatusForbidden, session.Session{}, page.Page{
		Title: page.T("Refused"), Heading: page.T("The form was refused"), Body: page.Message{Text: page.T("It was not sent by a current page of the dashboard. Open the page again, and send the form again.")},
	})
}

// withRecovery responds to a panic with a page, and logs it.
func (d *dashboard) withRecovery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p)
			default:
				d.Log.ErrorContext(r.Context(), "a page failed", "path", r.URL.Path, "panic", p)
				d.respond(w, r, http.StatusInternalServerError, session.Session{}, page.Page{
					Title: page.T("Error"), Heading: page.T("The page failed"), Body: page.Message{Text: page.T("The dashboard's log has the error.")},
				})
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// redirectToLogin opens the login page, which returns to the requested page. A form is not sent
// again. A stream is no page: it ends.
func redirectToLogin(w http.ResponseWriter, r *http.Request) {
	if isStream(r) {
		http.Error(w, "log in", http.StatusUnauthorized)
		return
	}
	path := "/login"
	if next := findLocalPath(r.URL.RequestURI()); next != "/" && r.Method != http.MethodPost {
		path += "?next=" + url.QueryEscape(next)
	}
	http.Redirect(w, r, path, http.StatusSeeOther)
}

// longestNext is the maximum length of the path to which a login returns. Headers repeat the path.
const longestNext = 4000

// findLocalPath returns a path of the dashboard unchanged, and "/" for any other text. Browsers
// treat //host and /\host as other hosts, and ignore tabs and line breaks.
func findLocalPath(text string) string {
	u, err := url.Parse(text)
	local := err == nil && len(text) <= longestNext && u.Scheme == "" && u.Host == "" && u.Opaque == "" && u.User == nil &&
		strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") && !strings.ContainsAny(text, "\\\t\r\n")
	if !local {
		return "/"
	}
	return text
}
