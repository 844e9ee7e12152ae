package timeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"croft.dev/croft/internal/cost/ledger"
)

// entry is the state of one object. An object without phases does not exist. The entry without a key is
// the state of the observation.
type entry struct {
	Key
	Phases []Phase `json:"phases,omitempty"`
	// Usage is the usage of a pod.
	Usage []ledger.Usage `json:"usage,omitempty"`
	Seen  int64          `json:"seen,omitempty"`
	Gaps  []gap          `json:"gaps,omitempty"`
	// Currency is the currency of all prices.
	Currency string `json:"currency,omitempty"`
}

// Changes returns entries with all changes since its last call, except usage, which it returns less often. Applied to the
// timeline as it was before, they give the present one, also if they are applied twice.
func (t *Timeline) Changes() ([][]byte, error) {
	keys := slices.Collect(maps.Keys(t.changed))
	clear(t.changed)
	return t.encode(append(keys, t.listMeasured()...))
}

// Snapshot returns entries with everything.
func (t *Timeline) Snapshot() ([][]byte, error) {
	clear(t.changed)
	clear(t.measured)
	t.returned = t.seen
	keys := slices.Collect(maps.Keys(t.phases))
	for uid := range t.usage {
		keys = append(keys, Key{Usage, uid})
	}
	return t.encode(keys)
}

func (t *Timeline) encode(keys []Key) ([][]byte, error) {
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.UID, b.UID))
	})
	var all []entry
	for _, key := range keys {
		e := entry{Key: key, Phases: t.phases[key]}
		if key.Kind == Usage {
			e.Usage = t.usage[key.UID]
		}
		all = append(all, e)
	}
	// The last one: if a kill cuts the entries, those before it may be missing, and their time is in the gap.
	all = append(all, entry{Seen: t.seen, Gaps: t.gaps, Currency: t.currency})
	texts := make([][]byte, len(all))
	for i := range all {
		text, err := json.Marshal(all[i])
		if err != nil {
			return nil, err
		}
		texts[i] = text
	}
	return texts, nil
}

// Load returns the timeline of entries.
func Load(entries [][]byte) (*Timeline, error) {
	t := New()
	for i, text := range entries {
		var e entry
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, fmt.Errorf("entry %d of the journal: %w", i+1, err)
		}
		switch {
		case e.Kind == "":
			t.seen, t.gaps, t.currency = e.Seen, e.Gaps, e.Currency
		case e.Kind == Usage:
			t.usage[e.UID] = e.Usage
		case len(e.Phases) == 0:
			delete(t.phases, e.Key)
		default:
			t.phases[e.Key] = e.Phases
		}
	}
	return t, nil
}
