package machine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"croft.dev/croft/sandbox/internal/cloud/journal"
	"croft.dev/croft/sandbox/internal/journalfile"
)

// journalDirectory is the directory of journald's files.
const journalDirectory = "/var/log/journal"

// keepJournal writes each entry of a boot to the machine's journal at its time, until all are
// written or ctx ends.
func (h *hardware) keepJournal(ctx context.Context, b journal.Boot) {
	entries := b.BuildEntries()
	path := fmt.Sprintf("%s/%x/system.journal", journalDirectory, b.Machine())
	for n := 0; n < len(entries); {
		if wait := entries[n].Time.Sub(h.account.Time()); wait > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
		}
		now := h.account.Time()
		if n = slices.IndexFunc(entries, func(e journalfile.Entry) bool { return e.Time.After(now) }); n < 0 {
			n = len(entries)
		}
		if err := h.replaceFile(path, journalfile.Encode(b.Machine(), b.ID(), entries[:n])); err != nil {
			slog.Error("a journal cannot be written", "instance", h.instance, "error", err)
			return
		}
	}
}
