package model

import (
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestClockJumps(t *testing.T) {
	c := &jumpingClock{}
	before := c.Now()
	c.offset.Store(int64(time.Hour))
	if since := c.Since(before); since < time.Hour || since > time.Hour+time.Minute {
		t.Errorf("%s have passed", since)
	}
}

// server answers requests with the bodies that it receives, or with body.
type server struct {
	requests, body string
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		s.requests += string(raw)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(s.body))}, nil
}

func TestWire(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // a reproducible test
	send := func(w wire, method, path, body string) (int, string, error) {
		var reader io.Reader
		if body != "" {
			reader = strings.NewReader(body)
		}
		req, err := http.NewRequestWithContext(t.Context(), method, "http://server"+path, reader)
		if err != nil {
			t.Fatal(err)
		}
		response, err := w.RoundTrip(req)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		raw, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(raw), nil
	}
	for _, test := range []struct {
		name         string
		faults       *faults
		cut          bool
		method, path string
		body, stored string
		server       string
		code         int
		answer       string
		fails        bool
	}{
		{name: "no fault", method: "PATCH", body: `{"a":1}`, stored: `{"a":1}`, code: 200},
		{name: "a conflict", faults: &faults{conflicts: 100}, method: "PATCH", body: `{}`, code: 409, answer: `"reason":"Conflict"`},
		{name: "reads have no conflicts", faults: &faults{conflicts: 100}, method: "GET", server: "x", code: 200, answer: "x"},
		{name: "a lost answer", faults: &faults{lost: 100}, method: "PATCH", body: `{}`, stored: `{}`, fails: true},
		{name: "a kill", cut: true, method: "PATCH", body: `{}`, fails: true},
		{name: "a dropped write", faults: &faults{bug: &bug{write: func(string, string, map[string]any) bool { return true }}},
			method: "PATCH", body: `{"a":1}`, code: 200, answer: `{"a":1}`},
		{name: "a changed write", faults: &faults{bug: &bug{write: func(_, _ string, o map[string]any) bool { o["b"] = true; return false }}},
			method: "PATCH", body: `{"a":1}`, stored: `{"a":1,"b":true}`, code: 200},
		{name: "a JSON patch stays", faults: &faults{bug: &bug{write: func(string, string, map[string]any) bool { return true }}},
			method: "PATCH", body: `[]`, stored: `[]`, code: 200},
		{name: "a changed read", faults: &faults{bug: &bug{reads: "/quotas", read: func(o map[string]any) { o["b"] = true }}},
			method: "GET", path: "/quotas/a", server: `{"a":1}`, code: 200, answer: `"b":true`},
		{name: "another path", faults: &faults{bug: &bug{reads: "/quotas", read: func(o map[string]any) { o["b"] = true }}},
			method: "GET", path: "/pods", server: `{"a":1}`, code: 200, answer: `{"a":1}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.faults == nil {
				test.faults = &faults{}
			}
			test.faults.random = random
			s, g := &server{body: test.server}, newGate()
			if test.cut {
				g.killProcess()
			}
			code, answer, err := send(wire{s, test.faults, g}, test.method, test.path, test.body)
			if (err != nil) != test.fails || code != test.code || !strings.Contains(answer, test.answer) || s.requests != test.stored {
				t.Errorf("code %d, answer %s, stored %s, error %v", code, answer, s.requests, err)
			}
		})
	}
}

// TestLostLease expects a suspended operator to send the request in flight, and as many writes as it
// needs to notice that another one leads.
func TestLostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := &server{}, newGate()
		w := wire{s, &faults{random: rand.New(rand.NewPCG(1, 1))}, g} //nolint:gosec // a reproducible test
		send := func(body string) error {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://server/", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			response, err := w.RoundTrip(req)
			if err == nil {
				response.Body.Close()
			}
			return err
		}
		g.freezeProcess()
		sent := make(chan error)
		go func() { sent <- send("in flight, ") }()
		synctest.Wait()
		if s.requests != "" {
			t.Error("a suspended process sends")
		}
		g.thawProcess(1)
		if err := errors.Join(<-sent, send("one more")); err != nil {
			t.Error(err)
		}
		if err := send(", too late"); err == nil || s.requests != "in flight, one more" {
			t.Errorf("%s (%v)", s.requests, err)
		}
	})
}

// TestRewrite expects each object to be changed, in a list and in a watch, too.
func TestRewrite(t *testing.T) {
	for body, want := range map[string]int{
		`{"spec":{}}`: 1, `{"items":[{"spec":{}},{"spec":{}}]}`: 2,
		`{"type":"ADDED","object":{"spec":{}}}{"type":"MODIFIED","object":{"spec":{}}}`: 2,
	} {
		changed := rewriteObjects(io.NopCloser(strings.NewReader(body)), func(o map[string]any) {
			if o["spec"] != nil {
				o["seen"] = true
			}
		})
		raw, err := io.ReadAll(changed)
		if got := strings.Count(string(raw), `"seen":true`); err != nil || got != want {
			t.Errorf("%s became %s (%v)", body, raw, err)
		}
	}
}

// TestBugs expects the two bugs of quotas to differ: one is about new quotas only.
func TestBugs(t *testing.T) {
	planted := map[string]*bug{}
	for _, b := range listBugs() {
		planted[b.family] = b
	}
	for quota, want := range map[string]map[string]string{
		`{"spec":{"hard":{"pods":"2"}},"status":{}}`:                    {familyCounted: "2", familyShares: ""},
		`{"spec":{"hard":{"pods":"2"}},"status":{"hard":{"pods":"3"}}}`: {familyCounted: "3", familyShares: "2"},
	} {
		for family, inForce := range want {
			object := map[string]any{}
			if err := json.Unmarshal([]byte(quota), &object); err != nil {
				t.Fatal(err)
			}
			planted[family].read(object)
			if got, _ := getField(object, "status", "hard")["pods"].(string); got != inForce {
				t.Errorf("%s: %s becomes %q", family, quota, got)
			}
		}
	}
}
