// Package event emits events, so that each note is seen.
package event

import (
	"fmt"
	"hash/fnv"
	"strings"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Longest is the most bytes that are kept of a note; the events API refuses notes that
// are a little longer.
const Longest = 1000

// Emit emits an event. Events with the same object, reason and action are counted as
// one, which keeps the first note. So the action contains the note: another note is
// another event, and the same note is counted.
func Emit(r events.EventRecorder, regarding client.Object, kind, reason, action, note string) {
	note = cut(note)
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(note))
	r.Eventf(regarding, nil, kind, reason, fmt.Sprintf("%s-%08x", action, hash.Sum32()), "%s", note)
}

func cut(note string) string {
	const ellipsis = " …"
	if len(note) <= Longest {
		return note
	}
	return strings.ToValidUTF8(note[:Longest-len(ellipsis)], "") + ellipsis
}
