package server

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/session"
)

// liveParameter is the query parameter with which a page's script opens the stream of the page's
// versions.
const liveParameter = "live"

// isStream reports whether a request opens a stream.
func isStream(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Query().Has(liveParameter)
}

// pace has the times of live updates.
type pace struct {
	// gap is the minimum time between two reads of a page.
	gap time.Duration
	// tick is the time after which a page with objects that cannot be watched is read again. It is also
	// the time after which the browser gets a sign of life: gateways end idle connections.
	tick time.Duration
	// refresh is the time after which every page is read again, since some states depend on the time.
	refresh time.Duration
	// lifetime is the maximum lifetime of a stream. The browser then opens the next one with its present
	// cookies, so that a logout at another replica ends the updates.
	lifetime time.Duration
	// retry is the shortest time after which the browser connects again.
	retry time.Duration
}

var defaultPace = pace{gap: time.Second, tick: 25 * time.Second, refresh: 5 * time.Minute, lifetime: 10 * time.Minute, retry: 2 * time.Second}

const (
	// restFactor limits a slow page: between two reads it rests for ten times as long as the read took.
	restFactor = 10
	// mostReads is the maximum number of concurrent reads for all streams, because one change can concern
	// many of them.
	mostReads = 8
	// writeTimeout limits a write to a browser that does not read.
	writeTimeout = 10 * time.Second
	// versionMissing is the version of a page that no longer exists, or that the user may no longer see.
	versionMissing = "missing"
)

// liveStream sends the versions of one page to a browser.
type liveStream struct {
	*dashboard
	w       http.ResponseWriter
	r       *http.Request
	session session.Session
	show    view
	watcher *cluster.Watcher
	// sent is the last version; empty before the first.
	sent string
}

// serveStream sends the version of a page, and each later version, as server-sent events until the
// session ends. The events contain no data of the cluster: the browser loads the page again.
func (d *dashboard) serveStream(w http.ResponseWriter, r *http.Request, s session.Session, c *cluster.Client, show view) {
	ctx, end := context.WithDeadline(r.Context(), d.findStreamEnd(s, time.Now()))
	defer end()
	entry := &openStream{user: s.User, session: s.CSRF, end: end}
	if !d.streams.add(entry) {
		http.Error(w, "too many pages are open", http.StatusTooManyRequests)
		return
	}
	defer d.streams.remove(entry)
	l := &liveStream{dashboard: d, w: w, r: r, session: s, show: show, watcher: cluster.NewWatcher(c)}
	for {
		start := time.Now()
		version, err := l.read(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && l.sent == "":
			d.respondError(w, r, s, err)
			return
		case apierrors.IsUnauthorized(err):
			return // and the browser's next stream gets this error
		case err != nil && isMissing(err):
			version = versionMissing
		case err != nil:
			d.Log.InfoContext(ctx, "an open page was not read again", "path", r.URL.Path, "user", s.User, "error", err)
			version = l.sent
		}
		if version != l.sent {
			if l.sent == "" {
				l.begin(ctx)
			}
			if err := l.write("data: " + version + "\n\n"); err != nil {
				return
			}
			l.sent = version
		}
		if version == versionMissing || !l.wait(ctx, max(d.pace.gap, restFactor*time.Since(start))) {
			return
		}
	}
}

// findStreamEnd returns the time at which a stream ends: before the token has to be renewed, if it can
// be.
func (d *dashboard) findStreamEnd(s session.Session, now time.Time) time.Time {
	end := now.Add(d.pace.lifetime)
	if s.Expiry.Before(end) {
		end = s.Expiry
	}
	if s.TokenExpiry.IsZero() {
		return end
	}
	expiry := s.TokenExpiry.Add(-renewBefore)
	if !expiry.After(now) {
		expiry = s.TokenExpiry
	}
	if expiry.Before(end) {
		end = expiry
	}
	return end
}

// read reads the page, and watches the objects that it shows.
func (l *liveStream) read(ctx context.Context) (string, error) {
	select {
	case l.streams.reads <- struct{}{}:
		defer func() { <-l.streams.reads }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	p, err := l.show(limited, l.watcher.Client(), l.r)
	if err != nil {
		return "", err
	}
	l.watcher.Watch(ctx)
	p.CSRF, p.Language = l.session.CSRF, readLanguage(l.r)
	return page.Version(p)
}

// begin writes the headers.
func (l *liveStream) begin(ctx context.Context) {
	l.w.Header().Set("Content-Type", "text/event-stream")
	// The browser waits before the next connection for a random time, so that the browsers of a replica
	// that has stopped do not all connect at once.
	retry := l.pace.retry + rand.N(2*l.pace.retry)
	if err := l.write("retry: " + strconv.FormatInt(retry.Milliseconds(), 10) + "\n"); err != nil {
		l.Log.DebugContext(ctx, "cannot begin a stream", "path", l.r.URL.Path, "error", err)
	}
}

// write sends a text to the browser. Pages have a time limit, streams only have one for each write.
func (l *liveStream) write(text string) error {
	control := http.NewResponseController(l.w)
	if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(l.w, text); err != nil {
		return err
	}
	if err := control.Flush(); err != nil {
		return err
	}
	return control.SetWriteDeadline(noDeadline)
}

// wait waits until the page has to be read again, for the rest at least. It returns false at the end of
// the stream.
func (l *liveStream) wait(ctx context.Context, rest time.Duration) bool {
	rested, refresh := time.After(rest), time.After(rest+l.pace.refresh)
	// Without the random part, streams that began together would read together.
	ticks := time.NewTicker(l.pace.tick*3/4 + rand.N(l.pace.tick/2))
	defer ticks.Stop()
	var changed <-chan struct{} // none before the rest has ended
	for {
		select {
		case <-ctx.Done():
			return false
		case <-l.Stopping:
			return false
		case <-rested:
			changed = l.watcher.Changed()
		case <-changed:
			return true
		case <-refresh:
			return true
		case <-ticks.C:
			if err := l.write(": open\n\n"); err != nil {
				return false
			}
			if !l.watcher.IsComplete() && changed != nil {
				return true
			}
		}
	}
}
