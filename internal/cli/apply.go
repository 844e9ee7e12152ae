package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/share"
)

func newApply(a *app) *cobra.Command {
	var (
		files   fileFlags
		wait    bool
		timeout time.Duration
	)
	c := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Declare what a file says in the cluster, and wait until it stands",
		Long: `Declare what a file says in the cluster, and wait until it stands.

The file is checked together with what the cluster has already, and the API
server is asked in a dry run: if anything is wrong, nothing at all is written.
What the file does not name is left alone.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, file, _, err := a.propose(cmd.Context(), &files)
			if err != nil {
				return err
			}
			objects := file.Objects()
			applier := apply.New(c)
			if _, err := applier.Diff(cmd.Context(), objects...); err != nil {
				return failedf("nothing was written: %w", unreachable(err))
			}
			changes, err := applier.Apply(cmd.Context(), objects...)
			a.printChanges(changes)
			if err != nil {
				return failed(unreachable(err))
			}
			if !wait {
				return nil
			}
			return awaitReady(cmd.Context(), c, newProgress(a.err), objects, timeout)
		},
	}
	files.add(c)
	c.Flags().BoolVar(&wait, "wait", true, "wait until everything in the file is Ready")
	c.Flags().DurationVar(&timeout, "wait-timeout", 5*time.Minute, "how long to wait")
	return c
}

// propose reads files and checks them together with what the cluster has. It
// returns what the files declare, and the estate that would come of it.
func (a *app) propose(ctx context.Context, files *fileFlags) (client.Client, *estate.Declaration, *estate.Estate, error) {
	file, err := files.parse(a.in)
	if err != nil {
		return nil, nil, nil, err
	}
	c, err := a.client()
	if err != nil {
		return nil, nil, nil, failed(err)
	}
	whole, err := overlay(ctx, c, file)
	if err != nil {
		return nil, nil, nil, failed(err)
	}
	e, problems := estate.Build(whole)
	divide(e, whole.Tenants)
	return c, file, e, problems.Err()
}

// divide divides quotas as the cluster has them divided. What is new there begins
// with nothing.
func divide(e *estate.Estate, tenants []v1alpha1.Tenant) {
	for i := range tenants {
		ledger := tenants[i].Status.Shares
		if len(ledger) == 0 || e == nil {
			continue
		}
		t := e.Tenant(tenants[i].Name)
		if t == nil || len(t.Quota) == 0 || len(t.Namespaces) == 1 {
			continue
		}
		for namespace := range t.Shares {
			t.Shares[namespace] = share.None(t.Quota)
		}
		for _, entry := range ledger {
			if _, ok := t.Shares[entry.Namespace]; ok {
				t.Shares[entry.Namespace] = entry.Hard
			}
		}
	}
}

// overlay is what would be declared in the cluster once the file was applied.
func overlay(ctx context.Context, c client.Reader, file *estate.Declaration) (*estate.Declaration, error) {
	whole, err := declared(ctx, c)
	if err != nil {
		return nil, err
	}
	// A tenant that is new is younger than all that are there: of two that claim
	// one domain it is the later.
	live := map[string]v1alpha1.Tenant{}
	for _, t := range whole.Tenants {
		live[t.Name] = t
	}
	for i := range file.Tenants {
		t := &file.Tenants[i]
		t.CreationTimestamp = metav1.Now()
		if l, ok := live[t.Name]; ok {
			t.CreationTimestamp = l.CreationTimestamp
			t.Status.Shares = l.Status.Shares
		}
	}
	whole.Platforms = without(whole.Platforms, file.Platforms, func(p v1alpha1.Platform) string { return p.Name })
	whole.Pools = without(whole.Pools, file.Pools, func(p v1alpha1.Pool) string { return p.Name })
	whole.Tenants = without(whole.Tenants, file.Tenants, func(t v1alpha1.Tenant) string { return t.Name })
	whole.Networks = without(whole.Networks, file.Networks, func(n v1alpha1.SecondaryNetwork) string { return n.Name })
	whole.Add(file)
	return whole, nil
}

// without returns the elements of all whose names others does not have.
func without[T any](all, others []T, name func(T) string) []T {
	named := sets.New[string]()
	for _, o := range others {
		named.Insert(name(o))
	}
	var rest []T
	for _, o := range all {
		if !named.Has(name(o)) {
			rest = append(rest, o)
		}
	}
	return rest
}

// silence is how long nothing may happen before apply asks whether anybody is
// there to act.
const silence = 10 * time.Second

// mostPending is how many of those that are not ready are named at the end.
const mostPending = 10

// awaitReady waits until every object is Ready in the generation that the
// cluster has of it.
func awaitReady(ctx context.Context, c client.Reader, p *progress, objects []client.Object, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer p.done()
	var last string
	changed := time.Now()
	for {
		live, err := declared(ctx, c)
		if err != nil && ctx.Err() == nil {
			return failed(err)
		}
		if err == nil {
			seen := readinessOf(live, objects)
			p.update("%d/%d ready%s", seen.ready, len(objects), seen.waitingFor())
			if now := strings.Join(seen.pending, "\n"); now != last {
				last, changed = now, time.Now()
			}
			switch {
			case seen.ready == len(objects):
				return nil
			case seen.hopeless != nil:
				return failed(seen.hopeless)
			case time.Since(changed) > silence:
				p.hint("nothing has happened for " + silence.String() + ": is croft's operator running? (`croft install --image`, or `croft operator`)")
			}
		}
		select {
		case <-ctx.Done():
			return failed(stillWaiting(ctx, live, objects, timeout))
		case <-time.After(300 * time.Millisecond):
		}
	}
}

func stillWaiting(ctx context.Context, live *estate.Declaration, objects []client.Object, timeout time.Duration) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errors.New("interrupted: what was written stays; run the same command again to go on waiting")
	}
	lines := []string{fmt.Sprintf("not everything was ready after %s", timeout)}
	if live != nil {
		pending := readinessOf(live, objects).pending
		for _, why := range pending[:min(len(pending), mostPending)] {
			lines = append(lines, "  "+why)
		}
		if more := len(pending) - mostPending; more > 0 {
			lines = append(lines, fmt.Sprintf("  and %d more", more))
		}
	}
	return errors.New(strings.Join(append(lines, "croft goes on trying; `croft status` shows how far it is"), "\n"))
}
