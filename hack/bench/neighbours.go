package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/declare/rights"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/prove/flood"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

// The two teams. Each has a tenant, a namespace and a pool of this name.
const victimTeam, neighbourTeam = "victim", "neighbour"

// neighboursText declares the teams with croft's default limits.
const neighboursText = `platform:
  clusterName: bench
  tenantDomain: tenants.example.org
  admins: [platform-admins]
  nodeClass: {kwok: {}}
pools:
  victim:
    instances: {capacityTypes: [on-demand], instanceTypes: [m5.large]}
  neighbour:
    instances: {capacityTypes: [on-demand], instanceTypes: [m5.large]}
tenants:
  victim:
    pool: victim
    access: [{group: victim-team, role: operator}]
  neighbour:
    pool: neighbour
    access: [{group: neighbour-team, role: operator}]
`

// measureNeighbours measures how much the load of one team slows the work of another down. The victim works
// alone, during a flood by its neighbour, and alone again, in a cluster with croft and in one without.
//
// The clients run on the same machine as the API server. So a flood also takes CPU time from the victim's
// client, in both clusters. The sandbox's etcd does not wait for the disk, so writes are cheaper than in
// other clusters.
func measureNeighbours(ctx context.Context, b *bench) ([]comparison, error) {
	with, err := b.observeFloods(ctx, b.croft)
	if err != nil || !b.bare {
		return compareFloods(with, nil), err
	}
	without, err := b.observeFloods(ctx, "")
	return compareFloods(with, without), err
}

// floodResult has the victim's operations before, during and after a flood.
type floodResult struct {
	flood.Result
	// Naming and Storage are nil, unless they are measured during this flood.
	Naming  *naming  `json:"naming,omitempty"`
	Storage *storage `json:"storage,omitempty"`
}

// observeFloods runs the floods in a new cluster. croft is the path of a binary, or "" for a cluster without
// croft. After a failure it returns the results up to then.
func (b *bench) observeFloods(ctx context.Context, croft string) (results []floodResult, err error) {
	where := "with croft"
	if croft == "" {
		where = "without croft"
	}
	err = withSandbox(ctx, sandbox.Options{Croft: croft, ControllerQPS: b.controllerQPS}, func(c *sandbox.Cluster) error {
		printProgress("neighbours: a cluster %s", where)
		n, err := b.newNeighbours(ctx, c, croft)
		if err != nil {
			return err
		}
		alone, err := n.ObserveAlone(ctx)
		if err != nil {
			return err
		}
		for _, f := range b.floods {
			printProgress("neighbours: %s, %s", f.Name, where)
			r := floodResult{Result: flood.Result{Flood: f.Name, Summary: f.Summary, Before: alone}}
			if err := n.observeFlood(ctx, f, &r); err != nil {
				return fmt.Errorf("%s, %s: %w", f.Name, where, err)
			}
			if alone, err = n.ObserveAlone(ctx); err != nil {
				return fmt.Errorf("after %s, %s: %w", f.Name, where, err)
			}
			r.After = alone
			results = append(results, r)
		}
		return nil
	})
	return results, err
}

// neighbours is a cluster with the two teams.
type neighbours struct {
	*flood.Neighbours
	config *rest.Config
	// croft and kubeconfig are the paths of a binary and of the administrator's kubeconfig. croft is "" in a cluster
	// without croft.
	croft, kubeconfig string
}

func (b *bench) newNeighbours(ctx context.Context, c *sandbox.Cluster, croft string) (*neighbours, error) {
	n := &neighbours{config: removeRateLimit(c.Config), croft: croft, kubeconfig: c.Kubeconfig}
	o := flood.Options{
		Victim: newTeam(victimTeam), Neighbour: newTeam(neighbourTeam), Phase: b.phase,
		MostBytes: flood.LargestText, MostWritten: 1 << 30,
		Report: func(format string, args ...any) { printProgress("neighbours: "+format, args...) },
	}
	var err error
	if croft != "" {
		err = withFiles(func(paths []string) error {
			return b.runCroft(ctx, "apply", "--kubeconfig", c.Kubeconfig, "-f", paths[0])
		}, neighboursText)
	} else {
		err = declareBare(ctx, n.config, &o)
	}
	if err != nil {
		return nil, err
	}
	n.Neighbours, err = flood.New(ctx, n.config, o)
	return n, err
}

func newTeam(name string) flood.Team { return flood.Team{Namespace: name, Group: name + "-team"} }

// largestBareText is near the API server's own maximum, 1 MiB.
const largestBareText = 1000 << 10

// declareBare gives the teams the same rights and the same nodes without croft, and so without rules and quotas.
func declareBare(ctx context.Context, config *rest.Config, o *flood.Options) error {
	admin, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return err
	}
	e, err := tenants.Build(neighboursText)
	if err != nil {
		return err
	}
	o.MostBytes = largestBareText
	for _, team := range []*flood.Team{&o.Victim, &o.Neighbour} {
		team.Place = func(pod *corev1.PodSpec) {
			pod.NodeSelector = map[string]string{e.Platform.NodePoolKey: team.Namespace}
			pod.Tolerations = []corev1.Toleration{{Key: e.Platform.NodePoolKey, Value: team.Namespace}}
		}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Rules: rights.Operator()}
	objects := []client.Object{role}
	for _, t := range e.Tenants {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.Name}}, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.Name, Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: t.Access[0].Group}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		})
	}
	for _, o := range objects {
		if err := admin.Create(ctx, o); err != nil {
			return err
		}
	}
	for _, p := range e.Pools {
		if _, err := apply.New(admin).Apply(ctx, wall.PoolObjects(&e.Platform, p)...); err != nil {
			return err
		}
	}
	return nil
}

// observeFlood measures the victim during a flood, and deletes the flood's objects. `croft doctor` runs before the
// victim is measured, because it is load, too.
func (n *neighbours) observeFlood(ctx context.Context, f flood.Flood, r *floodResult) (err error) {
	if f.Stored {
		r.Storage = &storage{}
		if r.Storage.Before, err = n.readStorage(ctx); err != nil {
			return err
		}
	}
	running, err := n.StartFlood(ctx, f)
	if err != nil {
		return err
	}
	if f.Named && n.croft != "" {
		r.Naming = n.awaitNaming(ctx, running.Start)
	}
	r.During, r.Requests = running.Observe(ctx), running.Requests
	if f.Stored {
		r.Storage.After, err = n.readStorage(ctx)
	}
	return errors.Join(running.Stop(ctx), err)
}

// pause waits for some time, or until ctx ends.
func pause(ctx context.Context, during time.Duration) {
	select {
	case <-time.After(during):
	case <-ctx.Done():
	}
}

// compareFloods compares each operation during a flood with the same operation alone, and with the same flood
// without croft, if there are results of it. The p99 of fewer than 100 samples is their maximum.
func compareFloods(with, without []floodResult) []comparison {
	var rows []comparison
	for i, r := range with {
		for j, o := range flood.Operations {
			row := r.compareWithAlone(o)
			if j == 0 {
				row.Note += fmt.Sprintf("; %s: %s", r.Summary, r.Requests)
				raw := map[string]floodResult{"croft": r}
				if i < len(without) {
					raw["withoutCroft"] = without[i]
				}
				row.Raw = raw
			}
			rows = append(rows, row)
			if i < len(without) {
				row := r.compareWithBare(o, without[i])
				if j == 0 {
					row.Note += fmt.Sprintf("; the flood there: %s", without[i].Requests)
				}
				rows = append(rows, row)
			}
		}
		var bare *floodResult
		if i < len(without) {
			bare = &without[i]
		}
		rows = slices.Concat(rows, r.compareNaming(), r.compareStorage(bare))
	}
	return rows
}

func (r floodResult) compareWithAlone(o flood.Operation) comparison {
	during, alone := r.During[o.Name].Seconds, r.ListAlone(o)
	row := comparison{
		Name: fmt.Sprintf("%s: %s, p99", r.Flood, o.Name), Unit: inSeconds,
		Croft: samples.Percentile(99, during), Alternative: samples.Percentile(99, alone),
	}
	notes := []string{
		fmt.Sprintf("compared with alone, target %.1f×", o.Target),
		fmt.Sprintf("p50 %s, alone %s", formatPercentile(50, during), formatPercentile(50, alone)),
		fmt.Sprintf("p99 alone before %s, after %s", formatPercentile(99, r.Before[o.Name].Seconds), formatPercentile(99, r.After[o.Name].Seconds)),
		fmt.Sprintf("%d samples, alone %d", len(during), len(alone)),
	}
	row.Note = strings.Join(append(notes, r.DescribeFailures(o)...), "; ")
	return row
}

func (r floodResult) compareWithBare(o flood.Operation, bare floodResult) comparison {
	alone := bare.compareWithAlone(o)
	row := comparison{Name: "  and without croft", Unit: inSeconds, Croft: samples.Percentile(99, r.During[o.Name].Seconds), Alternative: alone.Croft}
	notes := []string{"compared with the same flood without croft"}
	if ratio, ok := alone.getRatio(); ok {
		notes = append(notes, fmt.Sprintf("there %.2f× of %s alone", ratio, inSeconds.formatValue(alone.Alternative)))
	}
	notes = append(notes, fmt.Sprintf("p50 there %s, alone %s", formatPercentile(50, bare.During[o.Name].Seconds), formatPercentile(50, bare.ListAlone(o))))
	for _, failures := range bare.DescribeFailures(o) {
		notes = append(notes, "there "+failures)
	}
	row.Note = strings.Join(notes, "; ")
	return row
}

func formatPercentile(p float64, seconds []float64) string {
	return inSeconds.formatValue(samples.Percentile(p, seconds))
}
