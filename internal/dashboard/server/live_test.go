package server

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"croft.dev/croft/internal/dashboard/session"
)

const (
	// patience is the time after which a test fails.
	patience = time.Minute
	podsPath = "/api/v1/namespaces/shop/pods"
	// runningPods is a list in which the pod of startAPIServer has changed.
	runningPods = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"2"},"items":[{"metadata":{"namespace":"shop","name":"web-1"},"status":{"phase":"Failed"}}]}`
)

// never is so long that nothing of it happens during a test.
const never = time.Hour

// startLive serves a dashboard that reads pages again only after a change, and then at once.
func startLive(t *testing.T, a *apiServer, change func(*dashboard)) func() *browser {
	t.Helper()
	d := newDashboard(newOptions(t, a))
	d.pace = pace{gap: time.Millisecond, tick: never, refresh: never, lifetime: never, retry: time.Millisecond}
	if change != nil {
		change(d)
	}
	return serveHandler(t, d.handler())
}

// eventStream is an open stream of a browser.
type eventStream struct {
	t      *testing.T
	status int
	header http.Header
	lines  chan string
	close  context.CancelFunc
}

func (b *browser) openStream(path string) *eventStream {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context()) // an end by a deadline would look like the dashboard's
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path+"?live=1", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	got, err := b.client.Do(request) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		b.t.Fatal(err)
	}
	s := &eventStream{t: b.t, status: got.StatusCode, header: got.Header, lines: make(chan string, 100), close: cancel}
	go func() {
		defer close(s.lines)
		defer got.Body.Close()
		for scanner := bufio.NewScanner(got.Body); scanner.Scan(); {
			s.lines <- scanner.Text()
		}
	}()
	return s
}

// awaitVersion returns the next version; empty after the end of the stream.
func (s *eventStream) awaitVersion() string {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case line, ok := <-s.lines:
			if version, found := strings.CutPrefix(line, "data: "); found || !ok {
				return version
			}
		case <-deadline:
			s.t.Fatal("no event, and no end of the stream")
		}
	}
}

var versionAttribute = regexp.MustCompile(`<main id="main" data-version="([0-9a-f]{32})">`)

// findVersion returns the version of a page; empty if it is not live.
func (b *browser) findVersion(path string) string {
	b.t.Helper()
	found := versionAttribute.FindStringSubmatch(b.getPage(path).body)
	if found == nil {
		return ""
	}
	return found[1]
}

// waitForWatches waits until the cluster has watches of all paths.
func (a *apiServer) waitForWatches(t *testing.T, paths ...string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, patience, true, func(context.Context) (bool, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		return !slices.ContainsFunc(paths, func(path string) bool { return len(a.watches[path]) == 0 }), nil
	})
	if err != nil {
		t.Fatalf("no watches of %s: %v", paths, err)
	}
}

// TestLive expects the version of the page in its stream, and a new version after a change of an object
// on the page. Without a change, there are no requests to the cluster.
func TestLive(t *testing.T) {
	a := startAPIServer(t)
	b := startLive(t, a, nil)().logIn("ana-token")
	first := b.findVersion("/namespaces/shop/workloads")
	a.takeRequests()
	s := b.openStream("/namespaces/shop/workloads")
	if got := s.awaitVersion(); got != first || first == "" {
		t.Fatalf("the stream begins with %q, the page has %q", got, first)
	}
	if kind := s.header.Get("Content-Type"); s.status != http.StatusOK || kind != "text/event-stream" || s.header.Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, %s", s.status, kind)
	}
	watched := []string{podsPath, "/apis/apps/v1/namespaces/shop/deployments", "/apis/apps/v1/namespaces/shop/statefulsets"}
	a.waitForWatches(t, watched...)
	if n := len(a.takeRequests()); n != 6 {
		t.Errorf("%d requests, want three lists and three watches", n)
	}
	// The page is the same after this change.
	a.changeObject(podsPath, a.objects[podsPath], podsPath)
	a.changeObject(podsPath, runningPods, podsPath)
	second := s.awaitVersion()
	if second == first || second != b.findVersion("/namespaces/shop/workloads") {
		t.Errorf("version %q after %q, the page has %q", second, first, b.findVersion("/namespaces/shop/workloads"))
	}
	for _, r := range a.takeRequests() {
		if r.URL.Query().Get("watch") != "" {
			t.Errorf("another watch of %s, though the first one is open", r.URL)
		}
	}
	// A user who loses the right to see the page gets no other event.
	for _, path := range watched {
		a.setStatus(path, http.StatusForbidden)
	}
	a.changeObject(podsPath, runningPods, podsPath)
	if got := s.awaitVersion(); got != versionMissing {
		t.Errorf("got %q after the loss of the rights", got)
	}
	if got := s.awaitVersion(); got != "" {
		t.Errorf("%q after the end", got)
	}
}

// TestLiveWithoutWatches expects new versions although the user may not watch, or the watches have ended.
func TestLiveWithoutWatches(t *testing.T) {
	for name, interrupt := range map[string]func(*apiServer){
		"refused": func(a *apiServer) { a.mu.Lock(); defer a.mu.Unlock(); a.noWatches = true },
		"ended":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			a := startAPIServer(t)
			b := startLive(t, a, func(d *dashboard) { d.pace.tick = 4 * time.Millisecond })().logIn("ana-token")
			if interrupt != nil {
				interrupt(a)
			}
			s := b.openStream("/namespaces/shop/workloads")
			first := s.awaitVersion()
			if interrupt == nil {
				a.waitForWatches(t, podsPath)
				a.endWatches(podsPath)
			}
			a.changeObject(podsPath, runningPods, "")
			if got := s.awaitVersion(); got == first || got == "" {
				t.Errorf("got %q after %q", got, first)
			}
			if interrupt == nil {
				a.waitForWatches(t, podsPath)
			}
		})
	}
}

// TestLiveEnds expects the end of the stream with its session, and no stream without one.
func TestLiveEnds(t *testing.T) {
	const path = "/namespaces/shop/workloads"
	for name, end := range map[string]func(*testing.T, *apiServer, *browser, *dashboard){
		"logout": func(t *testing.T, _ *apiServer, b *browser, _ *dashboard) {
			if got := b.sendRequest(http.MethodPost, "/logout", url.Values{"csrf": {b.findCSRF("/")}}, nil); got.status != http.StatusSeeOther {
				t.Errorf("logout: status %d", got.status)
			}
		},
		"the cluster refuses the token": func(_ *testing.T, a *apiServer, _ *browser, _ *dashboard) {
			a.setStatus(podsPath, http.StatusUnauthorized)
			a.changeObject(podsPath, runningPods, podsPath)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := startAPIServer(t)
			var d *dashboard
			b := startLive(t, a, func(started *dashboard) { d = started })().logIn("ana-token")
			s := b.openStream(path)
			s.awaitVersion()
			a.waitForWatches(t, podsPath)
			end(t, a, b, d)
			if got := s.awaitVersion(); got != "" {
				t.Errorf("the stream continues with %q", got)
			}
			if again := b.openStream(path); again.status != http.StatusUnauthorized {
				t.Errorf("another stream: status %d", again.status)
			}
		})
	}
	t.Run("the process stops", func(t *testing.T) {
		stop := make(chan struct{})
		s := startLive(t, startAPIServer(t), func(d *dashboard) { d.Stopping = stop })().logIn("ana-token").openStream(path)
		s.awaitVersion()
		close(stop)
		if got := s.awaitVersion(); got != "" {
			t.Errorf("the stream continues with %q", got)
		}
	})
	t.Run("its lifetime ends", func(t *testing.T) {
		b := startLive(t, startAPIServer(t), func(d *dashboard) { d.pace.lifetime = 50 * time.Millisecond })().logIn("ana-token")
		first := b.openStream(path)
		for version := first.awaitVersion(); version != ""; version = first.awaitVersion() {
		}
		if again := b.openStream(path); again.status != http.StatusOK {
			t.Errorf("another stream: status %d", again.status)
		}
	})
}

// TestStreamEnd expects a stream to end before its session and its token, or at its maximum lifetime.
func TestStreamEnd(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	d := newDashboard(Options{})
	for name, c := range map[string]struct {
		session, token, want time.Duration
	}{
		"a long session":               {time.Hour, 0, d.pace.lifetime},
		"the end of a session":         {time.Minute, 0, time.Minute},
		"a long token":                 {time.Hour, time.Hour, d.pace.lifetime},
		"before the renewal":           {time.Hour, 5 * time.Minute, 5*time.Minute - renewBefore},
		"after a renewal that failed":  {time.Hour, 30 * time.Second, 30 * time.Second},
		"a token that outlives all":    {time.Minute, time.Hour, time.Minute},
		"a token that already expired": {time.Hour, -time.Second, -time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := session.Session{Expiry: now.Add(c.session)}
			if c.token != 0 {
				s.TokenExpiry = now.Add(c.token)
			}
			if got := d.findStreamEnd(s, now).Sub(now); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestLiveIsPrivate opens streams of another tenant, and two users' streams of the same page. Each
// request to the cluster carries the user's own token, and the stream contains nothing but versions.
func TestLiveIsPrivate(t *testing.T) {
	a := startAPIServer(t)
	open := startLive(t, a, nil)
	ana, bob := open().logIn("ana-token"), open().logIn("bob-token")
	reference := ana.getPage("/namespaces/nowhere")
	for _, path := range pagePaths {
		if !strings.HasPrefix(path, "/namespaces/") {
			continue
		}
		path = strings.ReplaceAll(path, "NS", "bank")
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		if got := ana.getPage(path + separator + "live=1"); got.status != http.StatusNotFound || got.body != reference.body {
			t.Errorf("%s: status %d:\n%s", path, got.status, got.body)
		}
	}
	a.takeRequests()
	streams := map[string]*eventStream{"ana-token": ana.openStream("/namespaces/shop"), "bob-token": bob.openStream("/namespaces/bank")}
	versions := map[string]string{}
	for token, s := range streams {
		versions[token] = s.awaitVersion()
	}
	a.waitForWatches(t, podsPath, "/api/v1/namespaces/bank/pods")
	a.changeObject(podsPath, runningPods, podsPath)
	if got := streams["ana-token"].awaitVersion(); got == versions["ana-token"] {
		t.Error("the change is not reported")
	}
	for _, r := range a.takeRequests() {
		want := "Bearer ana-token"
		if strings.Contains(r.URL.Path, "/bank/") {
			want = "Bearer bob-token"
		}
		if got := r.Header.Get("Authorization"); got != want && (strings.Contains(r.URL.Path, "/shop/") || strings.Contains(r.URL.Path, "/bank/")) {
			t.Errorf("%s: Authorization %q", r.URL, got)
		}
	}
	line := regexp.MustCompile(`^(data: [0-9a-f]{32}|retry: \d+|: open|)$`)
	for token, s := range streams {
		s.close()
		for l := range s.lines {
			if !line.MatchString(l) || token == "bob-token" && strings.HasPrefix(l, "data:") {
				t.Errorf("the stream of %s contains %q", token, l)
			}
		}
	}
}

// TestLiveLimits expects no more streams than allowed, and a place after the end of a stream.
func TestLiveLimits(t *testing.T) {
	all := newStreams()
	add := func(user string) bool { return all.add(&openStream{user: user, end: func() {}}) }
	for range mostUserStreams {
		if !add("ana") {
			t.Fatal("a stream is refused before the limit")
		}
	}
	if add("ana") {
		t.Error("a user has more streams than the limit")
	}
	for i := range mostStreams - mostUserStreams {
		if !add(fmt.Sprint("user-", i)) {
			t.Fatal("a stream is refused before the limit")
		}
	}
	if add("bob") {
		t.Error("there are more streams than the limit")
	}

	a := startAPIServer(t)
	open := startLive(t, a, nil)
	b := open().logIn("ana-token")
	streams := make([]*eventStream, mostUserStreams)
	for i := range streams {
		streams[i] = b.openStream("/")
		streams[i].awaitVersion()
	}
	second := open().logIn("ana-token")
	if got := second.openStream("/"); got.status != http.StatusTooManyRequests {
		t.Errorf("over the limit, with another session: status %d", got.status)
	}
	if got := second.getPage("/"); got.status != http.StatusOK {
		t.Errorf("a page over the limit of streams: status %d", got.status)
	}
	if got := open().logIn("bob-token").openStream("/"); got.status != http.StatusOK {
		t.Errorf("another user: status %d", got.status)
	}
	streams[0].close()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, patience, true, func(context.Context) (bool, error) {
		s := second.openStream("/")
		defer s.close()
		return s.status == http.StatusOK, nil
	})
	if err != nil {
		t.Error("the end of a stream makes no place for another one")
	}
}

// TestLiveOutlastsPages expects a stream to continue after the time limit of a page, with both versions
// of HTTP.
func TestLiveOutlastsPages(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			a := startAPIServer(t)
			d := newDashboard(newOptions(t, a))
			d.pace = pace{gap: time.Millisecond, tick: 20 * time.Millisecond, refresh: never, lifetime: never, retry: time.Millisecond}
			server := httptest.NewUnstartedServer(d.handler())
			server.EnableHTTP2 = http2
			server.Config.ReadTimeout, server.Config.WriteTimeout = 300*time.Millisecond, 300*time.Millisecond
			s := serveWith(t, server)().logIn("ana-token").openStream("/namespaces/shop/workloads")
			s.awaitVersion()
			for range 40 { // at least 600 milliseconds
				line, ok := <-s.lines
				for ok && line == "" {
					line, ok = <-s.lines
				}
				if line != ": open" {
					t.Fatalf("got %q", line)
				}
			}
			a.waitForWatches(t, podsPath)
			a.changeObject(podsPath, runningPods, podsPath)
			if s.awaitVersion() == "" {
				t.Error("the stream has ended")
			}
		})
	}
}
