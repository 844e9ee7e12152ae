package account

import "testing"

// countEntered returns how many calls may begin at once.
func countEntered(w *windows, action string) (n int) {
	for n < 100 && w.beginCall(action) {
		n++
	}
	return n
}

func TestWindow(t *testing.T) {
	w := newWindows()
	if got := countEntered(w, "AttachNetworkInterface"); got != narrowest {
		t.Errorf("%d calls at first", got)
	}
	if got := countEntered(w, "CreateNetworkInterface"); got != narrowest {
		t.Errorf("%d calls of another action", got)
	}
	w.cancelCall("CreateNetworkInterface")
	if got := countEntered(w, "CreateNetworkInterface"); got != 1 {
		t.Errorf("%d more after one was not made", got)
	}
	for round, want := range []int{2 * narrowest, 4 * narrowest, widest, widest} {
		for range min(widest, narrowest<<round) {
			w.endCall("AttachNetworkInterface", nil)
		}
		if got := countEntered(w, "AttachNetworkInterface"); got != want {
			t.Errorf("%d calls at once in round %d, not %d", got, round+2, want)
		}
	}
	for range widest {
		w.endCall("AttachNetworkInterface", errRefused)
	}
	if got := countEntered(w, "AttachNetworkInterface"); got != 1 {
		t.Errorf("%d calls at once after all were refused", got)
	}
	w.endCall("AttachNetworkInterface", errBroken)
	if got := countEntered(w, "AttachNetworkInterface"); got != 2 {
		t.Errorf("%d calls at once after another error", got)
	}
}
