package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/test/sandbox"
)

const (
	// leaseDuration is the time until the lease of a killed leader expires.
	leaseDuration = 15 * time.Second
	// longestWait is the maximum additional time until a tenant is Ready. On two busy cores it
	// was 7 to 21 seconds.
	longestWait = time.Minute
	// kills is the number of leaders that are killed.
	kills = 3
	// leads is the line that a replica logs when it becomes the leader.
	leads = "Successfully acquired lease"
)

// TestHighAvailability kills the leader of three operators three times while tenants are
// created and deleted. It fails if a tenant waits for too long, or if something is written
// twice. It is of the third tier (make test-all): TestKillNine kills operators that run alone.
func TestHighAvailability(t *testing.T) {
	sandbox.Thorough(t)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(writesPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	c := startSandbox(t, sandbox.Options{Components: sandbox.WithControllers, AuditPolicy: policy})
	team := &replicas{cluster: c, kubeconfig: c.installCroft(t)}
	c.runCroft(t, "apply", "--wait=false", "-f", writeTempFile(t, buildManyTenants(1, 1))).expectExit(t, 0)
	for range 3 {
		team.startReplica(t)
	}
	team.awaitLeader(t)
	c.awaitTenantReady(t, "tenant-0")

	people := c.startPopulation(t)
	for n := range kills {
		people.awaitReady(t, 10)
		killed := team.awaitLeader(t)
		killed.killProcess(t)
		team.startReplica(t) // as the Deployment does
		people.awaitReady(t, 10)
		t.Logf("kill %d: the longest wait so far is %s", n+1, people.getLongestWait().Round(time.Millisecond))
	}
	people.stopPopulation(t)
	longest := people.getLongestWait()
	t.Logf("%d tenants became Ready, %d were deleted, the longest wait was %s", people.countReady(), people.deleted, longest.Round(time.Millisecond))
	if longest > leaseDuration+longestWait {
		t.Errorf("a tenant waited %s, and the lease is %s", longest, leaseDuration)
	}
	for _, p := range team.all {
		p.killProcess(t)
	}
	c.expectNoRedundantWrites(t)
}

// replicas are operators, one of which is the leader.
type replicas struct {
	*cluster
	kubeconfig string
	all        []*replica
}

type replica struct {
	*process
	log string
}

func (r *replicas) startReplica(t testing.TB) {
	t.Helper()
	log := fmt.Sprintf("croft-replica-%d.log", len(r.all))
	p := r.startCroft(t, log, "operator", "--kubeconfig", r.kubeconfig, "--health-addr", "0", "--metrics-addr", "0")
	r.all = append(r.all, &replica{p, filepath.Join(r.Dir, "logs", log)})
}

// awaitLeader waits until a replica is the leader, and returns it.
func (r *replicas) awaitLeader(t testing.TB) (leader *replica) {
	t.Helper()
	awaitCondition(t, patience, "a leader", func(context.Context) error {
		for _, p := range r.all {
			select {
			case <-p.ended:
				continue
			default:
			}
			log, err := os.ReadFile(p.log)
			if err != nil {
				return err
			}
			if strings.Contains(string(log), leads) {
				leader = p
				return nil
			}
		}
		return errors.New("no replica leads")
	})
	return leader
}

// population creates and deletes tenants, one after another.
type population struct {
	admin client.Client
	stop  context.CancelFunc
	done  chan error

	mu sync.Mutex
	// declared has the creation time of each tenant that is not Ready yet, and waits has the
	// waiting times of all others.
	declared map[string]time.Time
	waits    []time.Duration
	deleted  int
}

// startPopulation creates a tenant every half second until it is ended, and deletes every third
// when it is Ready.
func (c *cluster) startPopulation(t testing.TB) *population {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	p := &population{admin: c.admin, stop: stop, done: make(chan error, 1), declared: map[string]time.Time{}}
	go func() {
		next, look := time.NewTicker(500*time.Millisecond), time.NewTicker(interval)
		defer next.Stop()
		defer look.Stop()
		for n := 0; ; {
			var err error
			select {
			case <-ctx.Done():
				p.done <- nil
				return
			case <-next.C:
				n++
				err = p.declareTenant(ctx, fmt.Sprintf("guest-%d", n))
			case <-look.C:
				err = p.recordReady(ctx)
			}
			if err != nil && ctx.Err() == nil {
				p.done <- err
				return
			}
		}
	}()
	t.Cleanup(stop)
	return p
}

func (p *population) declareTenant(ctx context.Context, name string) error {
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TenantSpec{
		Pool: "pool-0", Deletion: v1alpha1.DeletionDelete, Quota: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("20")},
		Access: []v1alpha1.Access{{Group: name, Role: v1alpha1.RoleOperator}},
	}}
	p.mu.Lock()
	p.declared[name] = time.Now()
	p.mu.Unlock()
	err := p.admin.Create(ctx, tenant)
	if err != nil { // the population ends during the request
		p.mu.Lock()
		delete(p.declared, name)
		p.mu.Unlock()
	}
	return err
}

// recordReady records the tenants that have become Ready, and deletes every third of them.
func (p *population) recordReady(ctx context.Context) error {
	var all v1alpha1.TenantList
	if err := p.admin.List(ctx, &all); err != nil {
		return err
	}
	var leaving []*v1alpha1.Tenant
	p.mu.Lock()
	for i := range all.Items {
		tenant := &all.Items[i]
		at, waits := p.declared[tenant.Name]
		if !waits || !meta.IsStatusConditionTrue(tenant.Status.Conditions, v1alpha1.ConditionReady) {
			continue
		}
		delete(p.declared, tenant.Name)
		p.waits = append(p.waits, time.Since(at))
		if len(p.waits)%3 == 0 {
			leaving = append(leaving, tenant)
		}
	}
	p.deleted += len(leaving)
	p.mu.Unlock()
	for _, tenant := range leaving {
		if err := p.admin.Delete(ctx, tenant); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// awaitReady waits until n more tenants are Ready.
func (p *population) awaitReady(t testing.TB, n int) {
	t.Helper()
	before := p.countReady()
	awaitCondition(t, patience, "tenants to be Ready", func(context.Context) error {
		select {
		case err := <-p.done:
			t.Fatalf("tenants stopped coming and going: %v", err)
		default:
		}
		if now := p.countReady(); now < before+n {
			return fmt.Errorf("%d of %d", now-before, n)
		}
		return nil
	})
}

func (p *population) countReady() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waits)
}

// getLongestWait returns the longest waiting time, including tenants that are not Ready yet.
func (p *population) getLongestWait() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var longest time.Duration
	for _, wait := range p.waits {
		longest = max(longest, wait)
	}
	for _, at := range p.declared {
		longest = max(longest, time.Since(at))
	}
	return longest
}

// stopPopulation stops creating tenants, and waits until all are Ready or deleted.
func (p *population) stopPopulation(t testing.TB) {
	t.Helper()
	p.stop()
	if err := <-p.done; err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, patience, "all tenants to be Ready or deleted", func(ctx context.Context) error {
		if err := p.recordReady(ctx); err != nil {
			return err
		}
		var all v1alpha1.TenantList
		if err := p.admin.List(ctx, &all); err != nil {
			return err
		}
		for i := range all.Items {
			if all.Items[i].DeletionTimestamp != nil {
				return fmt.Errorf("tenant %s is going", all.Items[i].Name)
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.declared) > 0 {
			return fmt.Errorf("%d are not Ready", len(p.declared))
		}
		return nil
	})
}
