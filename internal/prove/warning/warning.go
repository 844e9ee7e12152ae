// Package warning collects the API server's warnings about single requests.
package warning

import (
	"context"
	"slices"
	"sync"
)

// Recorder collects the distinct warnings in the responses to the requests of one context.
type Recorder struct {
	mu    sync.Mutex
	texts []string
}

type key struct{}

// Record returns a context that collects the warnings of its own requests, not the warnings of
// concurrent requests. The client must have a Handler.
func Record(ctx context.Context) (context.Context, *Recorder) {
	r := &Recorder{}
	return context.WithValue(ctx, key{}, r), r
}

// List returns the warnings so far.
func (r *Recorder) List() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.texts)
}

// Handler passes the warnings in a response to the Recorder of the request's context.
type Handler struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext. 299 is the code of
// all warnings of an API server.
func (Handler) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	r, ok := ctx.Value(key{}).(*Recorder)
	if !ok || code != 299 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.texts, text) {
		r.texts = append(r.texts, text)
	}
}
