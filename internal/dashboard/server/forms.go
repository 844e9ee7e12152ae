package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/session"
)

// noDeadline removes the time limit of a response.
var noDeadline time.Time

// form handles a form with the user's client. It returns a page, or the path to which the browser
// goes next.
type form func(ctx context.Context, c *cluster.Client, r *http.Request) (p page.Page, next string, err error)

// largestTrialForm is the maximum size of a form with manifests, in which a character may have three
// bytes.
const largestTrialForm = 4 * page.LongestTrial

// newFormHandler returns the handler of a form that needs a login.
func (d *dashboard) newFormHandler(limit int64, handle form) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// openForm does not parse the form again.
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		var tooLarge *http.MaxBytesError
		if err := r.ParseForm(); errors.As(err, &tooLarge) {
			d.respond(w, r, http.StatusRequestEntityTooLarge, session.Session{}, page.Page{
				Title: page.T("Too large"), Heading: page.T("The form is too large"), Body: page.Message{Text: page.T("Use the command of the page instead.")},
			})
			return
		}
		s, ok := d.openForm(w, r)
		if !ok {
			return
		}
		if s.Token == "" {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		s, c, ok := d.openConnection(w, r)
		if !ok {
			return
		}
		r = withUser(r, s.User)
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		p, next, err := handle(ctx, c, r)
		switch {
		case err != nil:
			d.respondError(w, r, s, err)
		case next != "":
			d.Log.InfoContext(ctx, "changed an object", "path", r.URL.Path, "user", s.User)
			http.Redirect(w, r, next, http.StatusSeeOther)
		default:
			d.respond(w, r, http.StatusOK, s, p)
		}
	}
}

// openConnection returns the session of a request and a client with its token, or redirects to the
// login.
func (d *dashboard) openConnection(w http.ResponseWriter, r *http.Request) (session.Session, *cluster.Client, bool) {
	s, err := d.openSession(w, r)
	if err != nil {
		d.respondError(w, r, s, err)
		return s, nil, false
	}
	c, err := d.Cluster.Connect(s.Token)
	if err != nil {
		d.respondError(w, r, s, err)
		return s, nil, false
	}
	return s, c, true
}

// userKey is the key of the user's name in the context of a request.
type userKey struct{}

// withUser adds the user's name at the cluster to a request.
func withUser(r *http.Request, user string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), userKey{}, user))
}

// findUser returns the user's name at the cluster.
func findUser(r *http.Request) string {
	user, _ := r.Context().Value(userKey{}).(string)
	return user
}
