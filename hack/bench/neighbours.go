package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/rights"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/rules/attack"
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

const (
	// prepareTimeout limits the time until a flood is in force. A flood that takes longer is measured
	// while it still grows.
	prepareTimeout = time.Minute
	// cleanUpTimeout limits the time until a flood's objects are deleted.
	cleanUpTimeout = 5 * time.Minute
	// afterFlood is the pause until the victim is measured alone again.
	afterFlood = 3 * time.Second
)

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
	Flood   string `json:"flood"`
	Summary string `json:"summary"`
	Before  phase  `json:"before"`
	During  phase  `json:"during"`
	After   phase  `json:"after"`
	// Requests are the flood's.
	Requests *requestCount `json:"requests"`
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
		alone, err := n.observeAlone(ctx)
		if err != nil {
			return err
		}
		for _, f := range b.floods {
			printProgress("neighbours: %s, %s", f.name, where)
			r := floodResult{Flood: f.name, Summary: f.summary, Before: alone}
			if err := n.observeFlood(ctx, f, &r); err != nil {
				return fmt.Errorf("%s, %s: %w", f.name, where, err)
			}
			if alone, err = n.observeAlone(ctx); err != nil {
				return fmt.Errorf("after %s, %s: %w", f.name, where, err)
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
	config *rest.Config
	admin  client.Client
	phase  time.Duration
	// croft and kubeconfig are the paths of a binary and of the administrator's kubeconfig. croft is "" in a cluster
	// without croft.
	croft, kubeconfig string
	// poolKey is the key of the label and of the taint of a team's nodes. It is "" if croft places the pods.
	poolKey string
	// mostBytes is the length of the text in the largest ConfigMap that a team can create, and written the
	// number of bytes that a flood has written in such ConfigMaps.
	mostBytes int
	written   atomic.Int64
	victim    *victim
	flooders  []*flooder
}

func (b *bench) newNeighbours(ctx context.Context, c *sandbox.Cluster, croft string) (*neighbours, error) {
	n := &neighbours{config: removeRateLimit(c.Config), phase: b.phase, croft: croft, kubeconfig: c.Kubeconfig, mostBytes: largestText}
	var err error
	if n.admin, err = client.New(n.config, client.Options{Scheme: scheme.New()}); err != nil {
		return nil, err
	}
	if croft != "" {
		err = withFiles(func(paths []string) error {
			return b.runCroft(ctx, "apply", "--kubeconfig", c.Kubeconfig, "-f", paths[0])
		}, neighboursText)
	} else {
		err = n.declareBare(ctx)
	}
	if err != nil {
		return nil, err
	}
	n.victim, err = n.newVictim(ctx)
	return n, err
}

const (
	// largestText leaves room for the metadata of a ConfigMap of the maximum size.
	largestText = estate.MaxObjectBytes - 4<<10
	// largestBareText is near the API server's own maximum, 1 MiB.
	largestBareText = 1000 << 10
)

// declareBare gives the teams the same rights and the same nodes without croft, and so without rules and quotas.
func (n *neighbours) declareBare(ctx context.Context) error {
	e, err := tenants.Build(neighboursText)
	if err != nil {
		return err
	}
	n.poolKey, n.mostBytes = e.Platform.NodePoolKey, largestBareText
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
		if err := n.admin.Create(ctx, o); err != nil {
			return err
		}
	}
	for _, p := range e.Pools {
		if _, err := apply.New(n.admin).Apply(ctx, wall.PoolObjects(&e.Platform, p)...); err != nil {
			return err
		}
	}
	return nil
}

// newUser returns the clients of a member of a team. Each member has a connection of its own, because requests
// that share a connection delay each other.
func (n *neighbours) newUser(name, team string) (client.WithWatch, *http.Client, error) {
	return n.newClients(name, team+"-team", "system:authenticated")
}

func (n *neighbours) newClients(user string, groups ...string) (client.WithWatch, *http.Client, error) {
	config := rest.CopyConfig(n.config)
	config.Dial = (&net.Dialer{Timeout: operationTimeout, KeepAlive: operationTimeout}).DialContext
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	raw, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: n.admin.Scheme(), Mapper: n.admin.RESTMapper(), HTTPClient: raw})
	return c, raw, err
}

// buildPod returns a pod that runs on its team's nodes.
func (n *neighbours) buildPod(team, prefix string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: team, GenerateName: prefix}, Spec: attack.NewPodSpec()}
	if n.poolKey != "" {
		pod.Spec.NodeSelector = map[string]string{n.poolKey: team}
		pod.Spec.Tolerations = []corev1.Toleration{{Key: n.poolKey, Value: team}}
	}
	return pod
}

// observeAlone measures the victim without a flood.
func (n *neighbours) observeAlone(ctx context.Context) (phase, error) {
	alone := n.victim.observe(ctx, n.phase)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return alone, alone.check()
}

// observeFlood measures the victim during a flood, and deletes the flood's objects. `croft doctor` runs before the
// victim is measured, because it is load, too.
func (n *neighbours) observeFlood(ctx context.Context, f flood, r *floodResult) (err error) {
	for len(n.flooders) < f.clients {
		u, err := n.newFlooder(len(n.flooders))
		if err != nil {
			return err
		}
		n.flooders = append(n.flooders, u)
	}
	if f.stored {
		r.Storage = &storage{}
		if r.Storage.Before, err = n.readStorage(ctx); err != nil {
			return err
		}
	}
	flooding, stop := context.WithCancel(ctx)
	defer stop()
	start, sent := time.Now(), &requestCount{}
	var running, preparing sync.WaitGroup
	preparing.Add(f.clients)
	for _, u := range n.flooders[:f.clients] {
		running.Go(func() { u.takePart(flooding, f, sent, preparing.Done) })
	}
	inForce := make(chan struct{})
	go func() {
		preparing.Wait()
		close(inForce)
	}()
	if f.named && n.croft != "" {
		r.Naming = n.awaitNaming(ctx, start)
	}
	select {
	case <-inForce:
	case <-time.After(prepareTimeout):
		printProgress("neighbours: %s still grows", f.name)
	case <-ctx.Done():
	}
	r.During, r.Requests = n.victim.observe(ctx, n.phase), sent
	if f.stored {
		r.Storage.After, err = n.readStorage(ctx)
	}
	stop()
	running.Wait()
	if err := errors.Join(ctx.Err(), sent.check(), err); err != nil {
		return err
	}
	return n.cleanUp(ctx)
}

// cleanUp deletes the flood's objects, and all events, and waits until they are deleted.
func (n *neighbours) cleanUp(ctx context.Context) error {
	var left error
	err := wait.PollUntilContextTimeout(ctx, restPoll, cleanUpTimeout, true, func(ctx context.Context) (bool, error) {
		left = errors.Join(
			n.deleteAll(ctx, &autoscalingv2.HorizontalPodAutoscaler{}, &autoscalingv2.HorizontalPodAutoscalerList{}, floodLabels),
			n.deleteAll(ctx, &appsv1.Deployment{}, &appsv1.DeploymentList{}, floodLabels),
			n.deleteAll(ctx, &batchv1.Job{}, &batchv1.JobList{}, floodLabels),
			n.deleteAll(ctx, &corev1.Pod{}, &corev1.PodList{}, floodLabels),
			n.deleteAll(ctx, &corev1.ConfigMap{}, &corev1.ConfigMapList{}, floodLabels),
			n.deleteAll(ctx, &corev1.Service{}, &corev1.ServiceList{}, floodLabels),
			n.deleteAll(ctx, &rbacv1.RoleBinding{}, &rbacv1.RoleBindingList{}, floodLabels),
			n.deleteAll(ctx, &rbacv1.Role{}, &rbacv1.RoleList{}, floodLabels),
			n.deleteAll(ctx, &corev1.ServiceAccount{}, &corev1.ServiceAccountList{}, floodLabels),
			n.deleteAll(ctx, &coordinationv1.Lease{}, &coordinationv1.LeaseList{}, floodLabels),
			// Controllers write events about the flood's objects.
			n.deleteAll(ctx, &corev1.Event{}, &corev1.EventList{}, nil))
		return left == nil, nil
	})
	if err != nil {
		return fmt.Errorf("delete the flood's objects: %w", errors.Join(err, left))
	}
	pause(ctx, afterFlood)
	return ctx.Err()
}

// deleteAll deletes the neighbour's objects of a kind, and returns an error if some remain. A deletion of very many
// objects ends early with a timeout: call it again.
func (n *neighbours) deleteAll(ctx context.Context, kind client.Object, remaining client.ObjectList, labels client.MatchingLabels) error {
	err := n.admin.DeleteAllOf(ctx, kind, client.InNamespace(neighbourTeam), labels,
		client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil {
		err = n.admin.List(ctx, remaining, client.InNamespace(neighbourTeam), labels, client.Limit(1))
	}
	if err == nil && meta.LenList(remaining) > 0 {
		err = fmt.Errorf("some of %T remain", kind)
	}
	return err
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
		for j, o := range operations {
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

func (r floodResult) listAlone(o operation) []float64 {
	return slices.Concat(r.Before[o.name].Seconds, r.After[o.name].Seconds)
}

func (r floodResult) compareWithAlone(o operation) comparison {
	during, alone := r.During[o.name].Seconds, r.listAlone(o)
	row := comparison{
		Name: fmt.Sprintf("%s: %s, p99", r.Flood, o.name), Unit: inSeconds,
		Croft: samples.Percentile(99, during), Alternative: samples.Percentile(99, alone),
	}
	notes := []string{
		fmt.Sprintf("compared with alone, target %.1f×", o.target),
		fmt.Sprintf("p50 %s, alone %s", formatPercentile(50, during), formatPercentile(50, alone)),
		fmt.Sprintf("p99 alone before %s, after %s", formatPercentile(99, r.Before[o.name].Seconds), formatPercentile(99, r.After[o.name].Seconds)),
		fmt.Sprintf("%d samples, alone %d", len(during), len(alone)),
	}
	row.Note = strings.Join(append(notes, r.describeFailures(o)...), "; ")
	return row
}

// describeFailures returns notes about an operation's failures, if there are any. Failures alone lower the
// ratio.
func (r floodResult) describeFailures(o operation) []string {
	return slices.Concat(
		r.During[o.name].describeFailures("during the flood"),
		r.Before[o.name].describeFailures("alone before"),
		r.After[o.name].describeFailures("alone after"))
}

func (r floodResult) compareWithBare(o operation, bare floodResult) comparison {
	alone := bare.compareWithAlone(o)
	row := comparison{Name: "  and without croft", Unit: inSeconds, Croft: samples.Percentile(99, r.During[o.name].Seconds), Alternative: alone.Croft}
	notes := []string{"compared with the same flood without croft"}
	if ratio, ok := alone.getRatio(); ok {
		notes = append(notes, fmt.Sprintf("there %.2f× of %s alone", ratio, inSeconds.formatValue(alone.Alternative)))
	}
	notes = append(notes, fmt.Sprintf("p50 there %s, alone %s", formatPercentile(50, bare.During[o.name].Seconds), formatPercentile(50, bare.listAlone(o))))
	for _, failures := range bare.describeFailures(o) {
		notes = append(notes, "there "+failures)
	}
	row.Note = strings.Join(notes, "; ")
	return row
}

func formatPercentile(p float64, seconds []float64) string {
	return inSeconds.formatValue(samples.Percentile(p, seconds))
}
