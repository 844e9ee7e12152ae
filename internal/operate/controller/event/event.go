// Package event emits events such that none hides the note of another.
package event

import (
	"fmt"
	"hash/fnv"
	"strings"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Longest is the maximum length of a note, in bytes. The events API refuses slightly longer
// ones.
const Longest = 1000

// Emit emits an event. The recorder counts events with the same object, reason and action
// as one, which keeps the first note. Therefore the action contains a hash of the note:
// another note is another event, and the same note is counted.
func Emit(r events.EventRecorder, regarding client.Object, kind, reason, action, note string) {
	note = truncateNote(note)
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(note))
	r.Eventf(regarding, nil, kind, reason, fmt.Sprintf("%s-%08x", action, hash.Sum32()), "%s", note)
}

func truncateNote(note string) string {
	const ellipsis = " …"
	if len(note) <= Longest {
		return note
	}
	return strings.ToValidUTF8(note[:Longest-len(ellipsis)], "") + ellipsis
}
