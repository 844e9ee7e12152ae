package account

import "sync"

const (
	// narrowest is the initial number of concurrent calls of an action. It is enough for a
	// node with four networks.
	narrowest = 4
	// widest is the maximum number of concurrent calls. The keeper makes no more at once.
	widest = 20
)

// windows limits the number of concurrent calls of each action. In an account whose limits
// other clients have exhausted, all calls would be throttled; with a small window, few must
// be repeated. Each call that is not throttled widens the window by one, which doubles it
// every round.
type windows struct {
	mu      sync.Mutex
	actions map[string]*window
}

type window struct{ size, under int }

func newWindows() *windows { return &windows{actions: map[string]*window{}} }

// beginCall begins a call, and reports whether the window allows it.
func (w *windows) beginCall(action string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.actions[action]
	if one == nil {
		one = &window{size: narrowest}
		w.actions[action] = one
	}
	if one.under >= one.size {
		return false
	}
	one.under++
	return true
}

// cancelCall ends a call that was not made.
func (w *windows) cancelCall(action string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.actions[action].under--
}

// endCall ends a call, and adjusts the window to its result.
func (w *windows) endCall(action string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.actions[action]
	one.under--
	if IsThrottled(err) {
		one.size = max(1, one.size/2)
	} else {
		one.size = min(widest, one.size+1)
	}
}
