package trial

import (
	"context"
	"slices"
	"sync"
)

// warnings are the warnings in the responses to one request.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

type warningsKey struct{}

func recordWarnings(ctx context.Context) (context.Context, *warnings) {
	w := &warnings{}
	return context.WithValue(ctx, warningsKey{}, w), w
}

func (w *warnings) listTexts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}

// warningHandler passes the warnings in a response to the sender of the request.
type warningHandler struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext. 299 is the code of
// all warnings of an API server.
func (warningHandler) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	w, ok := ctx.Value(warningsKey{}).(*warnings)
	if !ok || code != 299 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}
