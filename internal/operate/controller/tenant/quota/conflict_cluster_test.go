package quota_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// BenchmarkQuotaConflicts counts how often the API server gives up on a ResourceQuota that
// changes concurrently, and returns a conflict to a client. This happens without croft,
// too: kube-controller-manager recounts after each deletion. croft adds writes when it
// moves shares. The same clients measure both cases in turn. It takes minutes.
func BenchmarkQuotaConflicts(b *testing.B) {
	f := &fixture{operatortest.Start(b, sandbox.WithControllers)}
	stop := f.Operate()
	defer stop()
	f.Create(operatortest.NewPlatform(), operatortest.NewPool("apps"))
	idle := keepBusy(b)
	defer idle()
	var plain, moving tally
	round := 0
	for b.Loop() {
		round++
		names := []string{fmt.Sprintf("plain-%d-a", round), fmt.Sprintf("plain-%d-b", round)}
		for _, name := range names {
			f.Create(operatortest.NewNamespace(name), &corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "plain"}, Spec: corev1.ResourceQuotaSpec{Hard: makeResourceList("configmaps", "1000", "pods", "1000", "requests.cpu", "500")},
			})
		}
		tenant := newSharedTenant(fmt.Sprintf("moving-%d", round), []string{fmt.Sprintf("moving-%d-a", round), fmt.Sprintf("moving-%d-b", round)},
			makeResourceList("configmaps", "1000", "pods", "1000", "requests.cpu", "500"))
		f.Create(tenant)
		f.awaitCountedShares(tenant)
		f.runLoad(names, &plain)
		f.runLoad(tenant.Spec.Namespaces, &moving)
		f.Logf("round %d\nplain: %v\ncroft: %v", round, &plain, &moving)
	}
	b.ReportMetric(plain.countConflicts(), "conflicts/1000-plain")
	b.ReportMetric(moving.countConflicts(), "conflicts/1000-croft")
	if moving.moves.Load() == 0 {
		b.Error("croft moved no share, so there is nothing to compare")
	}
}

// keepBusy keeps every core busy until idle is called.
func keepBusy(b *testing.B) (idle func()) {
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		all.Go(func() {
			for ctx.Err() == nil {
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// tally counts the API server's answers to 64 clients.
type tally struct {
	created, conflicts, refused, moves atomic.Int64
	took                               time.Duration
}

func (c *tally) String() string {
	return fmt.Sprintf("%d created, %d conflicts, %d refused, %d writes of croft to ResourceQuotas, %s",
		c.created.Load(), c.conflicts.Load(), c.refused.Load(), c.moves.Load(), c.took.Round(time.Millisecond))
}

// countConflicts returns the number of conflicts for 1,000 created objects.
func (c *tally) countConflicts() float64 {
	return 1000 * float64(c.conflicts.Load()) / float64(c.created.Load())
}

// runLoad runs 64 clients that fill one namespace with ConfigMaps, then the other, and delete
// them at the same time.
func (f *fixture) runLoad(namespaces []string, result *tally) {
	f.Helper()
	const clients, each = 64, 12
	before, start := f.Writes.Count(), time.Now()
	for turn := range 4 {
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				var mine []*corev1.ConfigMap
				pace := rate.NewLimiter(rate.Every(50*time.Millisecond), 1)
				for len(mine) < each {
					o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespaces[turn%2], GenerateName: "load-"}}
					switch err := f.Client.Create(f.Context(), o); {
					case err == nil:
						result.created.Add(1)
						mine = append(mine, o)
					case apierrors.IsConflict(err) && strings.Contains(err.Error(), "resourcequotas"):
						result.conflicts.Add(1)
					case apierrors.IsForbidden(err):
						result.refused.Add(1)
						_ = pace.Wait(f.Context())
					default:
						f.Errorf("create: %v", err)
						return
					}
				}
				for _, o := range mine {
					if err := f.Client.Delete(f.Context(), o); err != nil {
						f.Errorf("delete: %v", err)
					}
				}
			})
		}
		all.Wait()
	}
	result.took += time.Since(start)
	for _, write := range f.Writes.ListSince(before) {
		if strings.Contains(write, "/resourcequotas/") {
			result.moves.Add(1)
		}
	}
}
