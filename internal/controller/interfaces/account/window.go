package account

import "sync"

const (
	// narrowest is how many calls of an action are under way at once before EC2 has answered
	// any: enough for a node of four networks.
	narrowest = 4
	// widest is the most; the keeper makes no more at once.
	widest = 20
)

// windows bound how many calls of each action are under way at once. In an account whose
// limits others have used up, all of them would be refused: with few there is little to
// repeat. With each answer there may be one more, which doubles them every round.
type windows struct {
	mu      sync.Mutex
	actions map[string]*window
}

type window struct{ size, under int }

func newWindows() *windows { return &windows{actions: map[string]*window{}} }

// enter begins a call, and says whether it may.
func (w *windows) enter(action string) bool {
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

// cancel ends a call that was not made.
func (w *windows) cancel(action string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.actions[action].under--
}

// leave ends a call, and learns from what came of it.
func (w *windows) leave(action string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.actions[action]
	one.under--
	if Throttled(err) {
		one.size = max(1, one.size/2)
	} else {
		one.size = min(widest, one.size+1)
	}
}
