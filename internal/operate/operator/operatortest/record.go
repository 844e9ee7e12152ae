package operatortest

import (
	"bytes"
	"net/http"
	"slices"
	"sync"
)

// buffer collects the operator's log.
type buffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// Writes collects the operator's write requests, as "METHOD path".
type Writes struct {
	mu  sync.Mutex
	all []string
	// running is read-locked from the start of a write until after returns. OnWrite takes the
	// write lock, and so waits for running calls.
	running sync.RWMutex
	after   func(write string)
}

// Count returns the number of writes so far.
func (w *Writes) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all)
}

// ListSince returns the writes after the first n.
func (w *Writes) ListSince(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all[n:])
}

// OnWrite calls a function after each later write; nil ends the calls. When OnWrite returns, no
// call of the previous function is running.
func (w *Writes) OnWrite(after func(write string)) {
	w.running.Lock()
	defer w.running.Unlock()
	w.after = after
}

func (w *Writes) record(next http.RoundTripper) http.RoundTripper { return recorder{next, w} }

type recorder struct {
	next http.RoundTripper
	*Writes
}

// RoundTrip implements http.RoundTripper.
func (r recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return r.next.RoundTrip(req)
	}
	write := req.Method + " " + req.URL.RequestURI()
	r.mu.Lock()
	r.all = append(r.all, write)
	r.mu.Unlock()
	r.running.RLock()
	defer r.running.RUnlock()
	response, err := r.next.RoundTrip(req)
	if r.after != nil {
		r.after(write)
	}
	return response, err
}
