package server

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"croft.dev/croft/internal/dashboard/page"
)

const (
	runningPath = "/namespaces/shop/workloads/pod/web-2"
	runPath     = runningPath + "/run"
	execPath    = "/api/v1/namespaces/shop/pods/web-2/exec"
)

// listExecs returns the requests since the last call that run commands.
func listExecs(a *apiServer) []*http.Request {
	var all []*http.Request
	for _, r := range a.takeRequests() {
		if isExec(r) {
			all = append(all, r)
		}
	}
	return all
}

// runIn sends the form for a command in the container main.
func (b *browser) runIn(csrf, command string) response {
	b.t.Helper()
	return b.sendRequest(http.MethodPost, runPath, url.Values{"csrf": {csrf}, "container": {"main"}, "command": {command}}, nil)
}

// TestCommands runs commands by WebSocket and by SPDY. Each runs once, with the user's token and nothing else, and
// without input.
func TestCommands(t *testing.T) {
	a := startAPIServer(t)
	b := startDashboard(t, a)().logIn("ana-token")
	csrf := b.findCSRF(runningPath)
	for name, c := range map[string]struct {
		protocols string
		program   program
		command   string
		// status is the API server's answer to a WebSocket, and statusSPDY to SPDY; none by default.
		status, statusSPDY int
		shows              []string
		lacks              []string
		// methods are the methods of the requests that run the command.
		methods string
	}{
		"success": {command: "ls -l", methods: "GET", shows: []string{"exit code 0", "✓", "Standard output", "output of ls -l", "Standard error", "error of ls -l", `value="ls -l"`}},
		"quotes": {command: `echo "it's" <b>`, methods: "GET", shows: []string{
			`output of echo &#34;it&#39;s&#34; &lt;b&gt;`, `value="echo &#34;it&#39;s&#34; &lt;b&gt;"`,
			`kubectl exec pod/web-2 -c main -n shop -- sh -c &#39;echo &#34;it&#39;\&#39;&#39;s&#34; &lt;b&gt;&#39;`,
		}},
		"an exit code":           {command: "false", program: func(string, io.Writer, io.Writer) string { return exitWith("3") }, methods: "GET", shows: []string{"exit code 3", "✗", "The command has written nothing"}},
		"escapes":                {command: "cat", program: func(_ string, out, _ io.Writer) string { _, _ = io.WriteString(out, "a\x1b[2J\u202eb"); return success }, methods: "GET", shows: []string{`a\x1b[2J\u202eb`}},
		"a container without sh": {command: "ls", program: func(string, io.Writer, io.Writer) string { return failWith(`exec: "sh": executable file not found`) }, methods: "GET", shows: []string{"The cluster could not run the command: exec: &#34;sh&#34;: executable file not found"}, lacks: []string{"has written nothing"}},
		"a lost connection":      {command: "ls", program: func(string, io.Writer, io.Writer) string { return "" }, methods: "GET", shows: []string{"The connection ended before the command"}, lacks: []string{"exit code"}},
		"SPDY":                   {command: "ls", protocols: "no WebSockets", methods: "GET POST", shows: []string{"exit code 0", "output of ls", "error of ls"}},
		"SPDY, an exit code":     {command: "ls", protocols: "no WebSockets", program: func(string, io.Writer, io.Writer) string { return exitWith("3") }, methods: "GET POST", shows: []string{"exit code 3"}},
		"no streams":             {command: "ls", protocols: "no WebSockets, no SPDY", methods: "GET POST", shows: []string{"The cluster, or a gateway before it, opens no streams"}, lacks: []string{"exit code"}},
		"SPDY, a refusal":        {command: "ls", protocols: "no WebSockets", statusSPDY: http.StatusForbidden, methods: "GET POST", shows: []string{"The cluster could not run the command: because"}, lacks: []string{"exit code"}},
		"no right to get":        {command: "ls", status: http.StatusForbidden, methods: "GET POST", shows: []string{"exit code 0", "output of ls"}},
		"no pod on a node":       {command: "ls", status: http.StatusBadRequest, methods: "GET", shows: []string{"The cluster refuses this: because"}, lacks: []string{"exit code", "has written nothing"}},
	} {
		t.Run(name, func(t *testing.T) {
			a.setProgram(c.program, c.protocols)
			a.setStatus("GET "+execPath, c.status)
			a.setStatus("POST "+execPath, c.statusSPDY)
			defer a.setStatus("GET "+execPath, 0)
			defer a.setStatus("POST "+execPath, 0)
			a.takeRequests()
			got := b.runIn(csrf, c.command)
			if got.status != http.StatusOK {
				t.Errorf("status %d", got.status)
			}
			for _, part := range append(c.shows, "Run a command", "kubectl exec pod/web-2 -c main -n shop -- sh -c") {
				if !strings.Contains(got.body, part) {
					t.Errorf("no %q:\n%s", part, got.body)
				}
			}
			for _, part := range c.lacks {
				if strings.Contains(got.body, part) {
					t.Errorf("shows %q:\n%s", part, got.body)
				}
			}
			var methods []string
			for _, r := range listExecs(a) {
				methods = append(methods, r.Method)
				want := url.Values{"command": {"sh", "-c", c.command}, "container": {"main"}, "stdout": {"true"}, "stderr": {"true"}}
				if r.URL.Path != execPath || r.URL.RawQuery != want.Encode() || strings.Join(r.Header.Values("Authorization"), " ") != "Bearer ana-token" || len(r.TLS.PeerCertificates) > 0 {
					t.Errorf("%s %s with %q", r.Method, r.URL, r.Header)
				}
				for name := range r.Header {
					if strings.HasPrefix(name, "Impersonate") || name == "Cookie" || name == "Origin" {
						t.Errorf("%s %s: header %s", r.Method, r.URL, name)
					}
				}
			}
			if strings.Join(methods, " ") != c.methods {
				t.Errorf("requests %q, want %q", methods, c.methods)
			}
		})
	}
	a.setProgram(nil, "")
	a.setStatus(execPath, http.StatusForbidden)
	if got := b.runIn(csrf, "ls"); got.status != http.StatusOK || !strings.Contains(got.body, "The cluster refuses this: because") {
		t.Errorf("without the right: status %d:\n%s", got.status, got.body)
	}
	a.setStatus(execPath, http.StatusUnauthorized)
	if got := b.runIn(csrf, "ls"); got.status != http.StatusSeeOther || got.header.Get("Location") != "/login" {
		t.Errorf("an expired token: status %d, location %s", got.status, got.header.Get("Location"))
	}
}

// TestCommandsNeedForms expects no request to the cluster's containers for a form that cannot work, and for links.
func TestCommandsNeedForms(t *testing.T) {
	a := startAPIServer(t)
	b := startDashboard(t, a)().logIn("ana-token")
	csrf, missing := b.findCSRF(runningPath), b.getPage("/namespaces/nowhere")
	for name, c := range map[string]struct {
		method, path, container, command string
		status                           int
		shows                            string
	}{
		"empty":                 {"POST", runPath, "main", " ", 200, "the command is empty"},
		"long":                  {"POST", runPath, "main", strings.Repeat("a", page.LongestCommand), 200, "more than 2000 characters"},
		"long with quotes":      {"POST", runPath, "main", strings.Repeat("'", page.LongestCommand/2), 200, "more than 2000 characters"},
		"two lines":             {"POST", runPath, "main", "ls\nid", 200, "must be one line"},
		"escapes":               {"POST", runPath, "main", "ls \x1b[2J", 200, "must be one line"},
		"bidi":                  {"POST", runPath, "main", "ls \u202e", 200, "must be one line"},
		"no text":               {"POST", runPath, "main", "ls \xff", 200, "must be one line"},
		"an ended container":    {"POST", runPath, "done", "ls", 200, "the container done does not run"},
		"a pod that waits":      {"POST", "/namespaces/shop/workloads/pod/web-1/run", "main", "ls", 200, "the container main does not run"},
		"an unknown container":  {"POST", runPath, "other", "ls", 404, ""},
		"no container":          {"POST", runPath, "", "ls", 404, ""},
		"an unknown pod":        {"POST", "/namespaces/shop/workloads/pod/other/run", "main", "ls", 404, ""},
		"another tenant's pod":  {"POST", "/namespaces/bank/workloads/pod/web-2/run", "main", "ls", 404, ""},
		"an invalid name":       {"POST", "/namespaces/shop/workloads/pod/web-2%2f..%2fx/run", "main", "ls", 404, ""},
		"an invalid namespace":  {"POST", "/namespaces/shop%2fpods/workloads/pod/web-2/run", "main", "ls", 404, ""},
		"another kind":          {"POST", "/namespaces/shop/workloads/deployment/web/run", "main", "ls", 404, ""},
		"a link":                {"GET", runPath + "?container=main&command=ls&csrf=" + url.QueryEscape(csrf), "", "", 404, ""},
		"a link without a body": {"HEAD", runPath + "?container=main&command=ls", "", "", 404, ""},
		"a stream":              {"GET", runPath + "?live=1&container=main&command=ls", "", "", 404, ""},
		"a page with a command": {"GET", runningPath + "?container=main&command=ls&run=1", "", "", 200, "Run a command"},
	} {
		t.Run(name, func(t *testing.T) {
			a.takeRequests()
			var form url.Values
			if c.method == http.MethodPost {
				form = url.Values{"csrf": {csrf}, "container": {c.container}, "command": {c.command}}
			}
			got := b.sendRequest(c.method, c.path, form, nil)
			if got.status != c.status || !strings.Contains(got.body, c.shows) || c.status == http.StatusNotFound && c.method != http.MethodHead && got.body != missing.body {
				t.Errorf("status %d:\n%s", got.status, got.body)
			}
			if execs := listExecs(a); len(execs) > 0 {
				t.Errorf("a request %s %s", execs[0].Method, execs[0].URL)
			}
		})
	}
}

// TestCommandForm expects the form only on pages of pods that run, for users who may run commands in them.
func TestCommandForm(t *testing.T) {
	a := startAPIServer(t)
	b := startDashboard(t, a)().logIn("ana-token")
	const form, command = "<h2>Run a command</h2>", "kubectl exec pod/web-2 -c main -n shop -- sh -c COMMAND"
	got := b.getPage(runningPath)
	_, after, _ := strings.Cut(got.body, form)
	if fields, _, _ := strings.Cut(after, "</form>"); !strings.Contains(fields, "<option selected>main</option><option>side</option></select>") || !strings.Contains(got.body, command) {
		t.Errorf("no form with the containers main and side:\n%s", got.body)
	}
	for _, path := range []string{"/namespaces/shop/workloads/pod/web-1", webPath} {
		if got := b.getPage(path); got.status != http.StatusOK || strings.Contains(got.body, form) {
			t.Errorf("%s: status %d, and a form:\n%s", path, got.status, got.body)
		}
	}
	const reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	for name, change := range map[string]func(){"no right": func() { a.noCommands = true }, "no review": func() { a.statuses[reviews] = http.StatusForbidden }} {
		a.mu.Lock()
		change()
		a.mu.Unlock()
		if got := b.getPage(runningPath); got.status != http.StatusOK || strings.Contains(got.body, form) || strings.Contains(got.body, "kubectl exec") {
			t.Errorf("%s: status %d, and a form:\n%s", name, got.status, got.body)
		}
		a.mu.Lock()
		a.noCommands = false
		delete(a.statuses, reviews)
		a.mu.Unlock()
	}
	a.setStatus(reviews, http.StatusUnauthorized)
	if got := b.getPage(runningPath); got.status != http.StatusSeeOther {
		t.Errorf("an expired token: status %d", got.status)
	}
}

// TestCommandRedirect lets the API server redirect a command to another server, which must not get the token.
func TestCommandRedirect(t *testing.T) {
	for _, code := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		requests := 0
		other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
		defer other.Close()
		a := startAPIServer(t)
		b := startDashboard(t, redirectExecs(t, a, other, code))().logIn("ana-token")
		if got := b.runIn(b.findCSRF(runningPath), "id"); requests > 0 || !strings.Contains(got.body, "opens no streams") {
			t.Errorf("%d: %d requests at the other server:\n%s", code, requests, got.body)
		}
		if len(listExecs(a)) > 0 {
			t.Error("the command ran")
		}
	}
}

// redirectExecs returns an API server that answers like another one, but redirects commands. Its clients trust the
// server to which it redirects.
func redirectExecs(t *testing.T, a *apiServer, to *httptest.Server, code int) *apiServer {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isExec(r) {
			http.Redirect(w, r, to.URL+r.URL.RequestURI(), code)
			return
		}
		a.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return &apiServer{entry: newEntry(server.URL, server.Certificate(), to.Certificate())}
}

// TestCommandLimits expects the first part of a long output, an end of long commands, and a limit for concurrent
// commands.
func TestCommandLimits(t *testing.T) {
	a := startAPIServer(t)
	d := newDashboard(newOptions(t, a))
	open := serveHandler(t, d.handler())
	b := open().logIn("ana-token")
	csrf := b.findCSRF(runningPath)
	for name, protocols := range map[string]string{"WebSocket": "", "SPDY": "no WebSockets"} {
		t.Run("output by "+name, func(t *testing.T) {
			ended := make(chan error, 1)
			a.setProgram(func(_ string, stdout, _ io.Writer) string {
				_, err := io.WriteString(stdout, "first line\n")
				for err == nil { // until the dashboard closes the connection
					_, err = io.WriteString(stdout, strings.Repeat("<a line>\n", 1000))
				}
				ended <- err
				return success
			}, protocols)
			got := b.runIn(csrf, "yes")
			if !strings.Contains(got.body, "first line") || !strings.Contains(got.body, "longer than 128 KiB: this is its first part") || !strings.Contains(got.body, "closed the connection at this size") {
				t.Errorf("status %d:\n%.4000s", got.status, got.body)
			}
			if n := strings.Count(got.body, "&lt;a line&gt;"); n*len("<a line>\n") > page.LongestOutput || n*len("<a line>\n") < page.LongestOutput-100 {
				t.Errorf("%d lines", n)
			}
			select {
			case <-ended:
			case <-time.After(patience):
				t.Error("the connection is still open")
			}
		})
		t.Run("time by "+name, func(t *testing.T) {
			d.commands.timeout = 300 * time.Millisecond
			defer func() { d.commands.timeout = page.CommandSeconds * time.Second }()
			a.setProgram(func(_ string, stdout, _ io.Writer) string {
				_, _ = io.WriteString(stdout, "before the end")
				select {
				case <-t.Context().Done():
				case <-time.After(patience):
				}
				return success
			}, protocols)
			if got := b.runIn(csrf, "sleep 60"); !strings.Contains(got.body, "did not end within 30 seconds") || !strings.Contains(got.body, "before the end") || strings.Contains(got.body, "exit code") {
				t.Errorf("status %d:\n%s", got.status, got.body)
			}
		})
	}
	t.Run("at once", func(t *testing.T) {
		started, goOn := make(chan bool, 10), make(chan bool)
		a.setProgram(func(string, io.Writer, io.Writer) string {
			started <- true
			<-goOn
			return success
		}, "")
		var group sync.WaitGroup
		for range mostUserCommands {
			group.Go(func() {
				if got := b.runIn(csrf, "sleep 1"); !strings.Contains(got.body, "exit code 0") {
					t.Errorf("status %d:\n%s", got.status, got.body)
				}
			})
			select {
			case <-started:
			case <-time.After(patience):
				t.Fatal("a command does not start")
			}
		}
		other := open().logIn("ana-token") // another session of the same user
		a.takeRequests()
		if got := other.runIn(other.findCSRF(runningPath), "id"); !strings.Contains(got.body, "too many commands run at once") || len(listExecs(a)) > 0 {
			t.Errorf("one more command: status %d:\n%s", got.status, got.body)
		}
		close(goOn)
		group.Wait()
		if got := b.runIn(csrf, "id"); !strings.Contains(got.body, "exit code 0") {
			t.Errorf("after the others: status %d:\n%s", got.status, got.body)
		}
	})
}

// TestTotalCommandLimit expects a limit for all users together.
func TestTotalCommandLimit(t *testing.T) {
	c := newCommands()
	for i := range mostCommands {
		if !c.add(fmt.Sprint(i)) {
			t.Errorf("command %d was refused", i)
		}
	}
	if c.add("one more") {
		t.Error("no limit for all users")
	}
	c.remove("0")
	if !c.add("one more") || len(c.running) != mostCommands {
		t.Errorf("an ended command counts: %v", c.running)
	}
}

// TestSilentServer lets a server not answer a request for SPDY. The page has an answer in time, and the command counts
// until the connection ends.
func TestSilentServer(t *testing.T) {
	a := startAPIServer(t)
	goOn, silent := make(chan bool), make(chan bool, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isExec(r) && r.Method == http.MethodGet:
			w.WriteHeader(http.StatusBadGateway)
		case isExec(r):
			silent <- true
			<-goOn
		default:
			a.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	d := newDashboard(newOptions(t, &apiServer{entry: newEntry(server.URL, server.Certificate())}))
	d.commands.timeout = 300 * time.Millisecond
	b := serveHandler(t, d.handler())().logIn("ana-token")
	if got := b.runIn(b.findCSRF(runningPath), "id"); !strings.Contains(got.body, "did not end within 30 seconds") {
		t.Errorf("status %d:\n%s", got.status, got.body)
	}
	<-silent
	count := func() int {
		d.commands.mu.Lock()
		defer d.commands.mu.Unlock()
		return d.commands.all
	}
	if count() != 1 {
		t.Errorf("%d commands count, want 1", count())
	}
	close(goOn)
	deadline := time.Now().Add(patience)
	for count() != 0 {
		if time.Now().After(deadline) {
			t.Fatal("the command still counts")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// recordedLogs are logs of several goroutines.
type recordedLogs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *recordedLogs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns the logs until now.
func (l *recordedLogs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestCommandsAreNotLogged expects neither a command nor its output in the logs of the dashboard and of client-go, with
// all their lines.
func TestCommandsAreNotLogged(t *testing.T) {
	logs := &recordedLogs{}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := flags.Set("v", "10"); err != nil {
		t.Fatal(err)
	}
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(logs), textlogger.Verbosity(10))))
	t.Cleanup(func() {
		klog.ClearLogger()
		_ = flags.Set("v", "0")
	})
	a := startAPIServer(t)
	o := newOptions(t, a)
	o.Log = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d := newDashboard(o)
	d.commands.timeout = time.Second
	b := serveHandler(t, d.handler())().logIn("ana-token")
	csrf := b.findCSRF(runningPath)
	const secret = "s3cr3t-command"
	programs := map[string]program{
		"success": nil, "an exit code": func(line string, out, _ io.Writer) string { _, _ = io.WriteString(out, line); return exitWith("1") },
		"a failure":         func(line string, _, _ io.Writer) string { return failWith("no " + line) },
		"a lost connection": func(line string, out, _ io.Writer) string { _, _ = io.WriteString(out, line); return "" },
		"a long output": func(line string, out, _ io.Writer) string {
			_, _ = io.WriteString(out, strings.Repeat(line, 50_000))
			return success
		},
		"no JSON": func(line string, _, _ io.Writer) string { return "{" + line },
		"a long time": func(line string, out, _ io.Writer) string {
			_, _ = io.WriteString(out, line)
			<-t.Context().Done()
			return success
		},
	}
	for name, run := range programs {
		for _, protocols := range []string{"", "no WebSockets", "no WebSockets, no SPDY"} {
			a.setProgram(run, protocols)
			if got := b.runIn(csrf, secret); got.status != http.StatusOK || !strings.Contains(got.body, secret) {
				t.Errorf("%s, %s: status %d", name, protocols, got.status)
			}
		}
	}
	for _, status := range []int{http.StatusForbidden, http.StatusInternalServerError} {
		a.setStatus(execPath, status)
		b.runIn(csrf, secret)
	}
	a.setStatus(execPath, 0)
	b.sendRequest(http.MethodPost, runPath, url.Values{"csrf": {"forged"}, "container": {"main"}, "command": {secret}}, nil)
	b.runIn(csrf, secret+"\n")
	text := logs.String()
	if strings.Contains(text, secret) {
		t.Errorf("the logs contain the command:\n%s", text)
	}
	if !strings.Contains(text, `msg="ran a command in a pod" path=`+runPath+" user=ana") || !strings.Contains(text, "selfsubjectaccessreviews") {
		t.Errorf("the logs have no lines of the dashboard and of client-go:\n%s", text)
	}
}
