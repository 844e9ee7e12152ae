package verify

import (
	"context"
	"slices"
	"sync"
)

// warnings are the warnings in the response to one request.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
}

func (w *warnings) listTexts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

type warningsKey struct{}

// recordWarnings returns a context that collects the warnings of its own requests, not
// the warnings of concurrent requests.
func recordWarnings(ctx context.Context) (context.Context, *warnings) {
	w := &warnings{}
	return context.WithValue(ctx, warningsKey{}, w), w
}

// warningHandler passes each warning to the request that it belongs to.
type warningHandler struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext. 299 is the code of
// all warnings of an API server.
func (warningHandler) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if w, ok := ctx.Value(warningsKey{}).(*warnings); ok && code == 299 {
		w.add(text)
	}
}
