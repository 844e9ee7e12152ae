package tenant

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wallState is the last known state of a tenant's walls.
type wallState struct {
	// revision is the declaration's revision for which every object was last in place.
	revision uint64
	// enforced is the declaration's RulesRevision that a probe last found to be enforced, or 0. The rules were
	// not written since then.
	enforced uint64
	// uncountedSince is when kube-controller-manager was first found not to have counted the usage of a quota. It is
	// zero if all quotas are counted.
	uncountedSince time.Time
}

// memory avoids repeated probes and repeated events, because the cache lags behind a
// written status. Nothing else depends on it, and losing it is harmless.
type memory struct {
	mu         sync.Mutex
	wallStates map[string]wallState
	reported   map[string]map[string]metav1.Condition
}

func newMemory() *memory {
	return &memory{wallStates: map[string]wallState{}, reported: map[string]map[string]metav1.Condition{}}
}

func (m *memory) get(tenant string) wallState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wallStates[tenant]
}

func (m *memory) remember(tenant string, s wallState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wallStates[tenant] = s
}

// countingTime is longer than kube-controller-manager usually takes to count the usage of a new quota. During
// this time, the status of a new tenant stays empty; a longer wait is reported.
const countingTime = 3 * time.Second

// awaitCount remembers that a quota of the tenant is not counted, and returns the rest of countingTime.
func (m *memory) awaitCount(tenant string, last wallState, now time.Time) time.Duration {
	since := last.uncountedSince
	if since.IsZero() {
		since = now
	}
	m.remember(tenant, wallState{revision: last.revision, uncountedSince: since})
	return countingTime - now.Sub(since)
}

// isNew reports whether a tenant's condition differs from the last event's.
func (m *memory) isNew(tenant string, condition metav1.Condition) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reported[tenant] == nil {
		m.reported[tenant] = map[string]metav1.Condition{}
	}
	last := m.reported[tenant][condition.Type]
	m.reported[tenant][condition.Type] = condition
	return last.Status != condition.Status || last.Reason != condition.Reason || last.Message != condition.Message
}

func (m *memory) forget(tenant string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.wallStates, tenant)
	delete(m.reported, tenant)
}
