package server

import (
	"context"
	"sync"
)

const (
	// mostUserStreams is the maximum number of streams of one user, in all sessions, and mostStreams of all
	// users. They count per replica. A browser closes the streams of hidden tabs.
	mostUserStreams, mostStreams = 20, 500
)

// streams are the open streams.
type streams struct {
	// reads limits the concurrent reads.
	reads chan struct{}

	mu   sync.Mutex
	open map[*openStream]bool
}

type openStream struct {
	user, session string
	end           context.CancelFunc
}

func newStreams() *streams {
	return &streams{reads: make(chan struct{}, mostReads), open: map[*openStream]bool{}}
}

// add reports whether the limits allow one more stream.
func (all *streams) add(one *openStream) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	users := 0
	for other := range all.open {
		if other.user == one.user {
			users++
		}
	}
	if users >= mostUserStreams || len(all.open) >= mostStreams {
		return false
	}
	all.open[one] = true
	return true
}

func (all *streams) remove(one *openStream) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.open, one)
}

// endSession ends the streams of a session.
func (all *streams) endSession(session string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for one := range all.open {
		if one.session == session {
			one.end()
		}
	}
}
