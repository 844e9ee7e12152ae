package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/wall"
)

// wallStatus says of one wall how many of its objects stand.
type wallStatus struct {
	Name    string   `json:"name"`
	Wanted  int      `json:"wanted"`
	Stands  int      `json:"stands"`
	Missing []string `json:"missing,omitempty"`
}

func newStatus(a *app) *cobra.Command {
	var output format
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the platform, its pools, tenants and walls at a glance",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return failed(err)
			}
			live, err := declared(cmd.Context(), c)
			if err != nil {
				return failed(err)
			}
			if len(live.Platforms) == 0 {
				return failedf("this cluster has no Platform yet: declare one with `croft apply -f croft.yaml`")
			}
			walls, err := standing(cmd.Context(), c, live)
			if err != nil {
				return failed(unreachable(err))
			}
			if output != formatTable {
				return output.print(a.out, map[string]any{
					"platform": live.Platforms[0], "pools": live.Pools, "tenants": live.Tenants, "walls": walls,
				})
			}
			a.printStatus(live, walls)
			return nil
		},
	}
	output.add(c, formatTable, formatJSON, formatYAML)
	return c
}

func (a *app) printStatus(live *estate.Declaration, walls []wallStatus) {
	platform := live.Platforms[0]
	ready, why := verdict(platform.Generation, platform.Status)
	table(a.out, []string{"PLATFORM", "READY", "REASON", "AGE"},
		[][]string{{platform.Spec.ClusterName, ready, why, age(platform.CreationTimestamp.Time)}})

	var rows [][]string
	for _, w := range walls {
		missing := "-"
		if len(w.Missing) > 0 {
			missing = w.Missing[0]
			if more := len(w.Missing) - 1; more > 0 {
				missing += fmt.Sprintf(" and %d more", more)
			}
		}
		rows = append(rows, []string{w.Name, fmt.Sprintf("%d/%d", w.Stands, w.Wanted), missing})
	}
	say(a.out, "\n")
	table(a.out, []string{"WALL", "OBJECTS", "MISSING"}, rows)

	rows = nil
	for _, p := range live.Pools {
		ready, why := verdict(p.Generation, p.Status.Status)
		rows = append(rows, []string{
			p.Name, ready, why, strconv.FormatInt(p.Status.Nodes, 10),
			quantity(p.Status.Resources.Cpu().String()), quantity(p.Status.Resources.Memory().String()),
			strconv.FormatInt(p.Status.Tenants, 10), age(p.CreationTimestamp.Time),
		})
	}
	say(a.out, "\n")
	table(a.out, []string{"POOL", "READY", "REASON", "NODES", "CPU", "MEMORY", "TENANTS", "AGE"}, rows)

	rows = nil
	for _, t := range live.Tenants {
		ready, why := verdict(t.Generation, t.Status.Status)
		rows = append(rows, []string{t.Name, ready, why, t.Status.Pool, strings.Join(t.Status.Namespaces, ","), age(t.CreationTimestamp.Time)})
	}
	say(a.out, "\n")
	table(a.out, []string{"TENANT", "READY", "REASON", "POOL", "NAMESPACES", "AGE"}, rows)

	if rows := shares(live); len(rows) > 0 {
		say(a.out, "\n")
		table(a.out, []string{"TENANT", "NAMESPACE", "SHARE OF THE QUOTA"}, rows)
	}
}

// shares are how quotas that somebody has declared are divided among namespaces.
func shares(live *estate.Declaration) [][]string {
	var rows [][]string
	for _, t := range live.Tenants {
		if t.Spec.Quota == nil && live.Platforms[0].Spec.TenantDefaults.Quota == nil {
			continue
		}
		for _, entry := range t.Status.Shares {
			var parts []string
			for name, amount := range entry.Hard {
				parts = append(parts, string(name)+"="+amount.String())
			}
			slices.Sort(parts)
			rows = append(rows, []string{t.Name, entry.Namespace, strings.Join(parts, ",")})
		}
	}
	return rows
}

func verdict(generation int64, status v1alpha1.Status) (ready, reason string) {
	c := readyOf(generation, status)
	if c == nil {
		return "Unknown", "NotSeenYet"
	}
	return string(c.Status), c.Reason
}

func quantity(q string) string {
	if q == "0" {
		return "-"
	}
	return q
}

// standing compares what the walls want with what is in the cluster: one list
// for each kind, however many tenants there are.
func standing(ctx context.Context, c client.Reader, live *estate.Declaration) ([]wallStatus, error) {
	e, _ := estate.Build(live)
	if e == nil {
		return nil, nil
	}
	have := sets.New[apply.Ref]()
	listed := sets.New[schema.GroupVersionKind]()
	walls := map[string]*wallStatus{}
	var all []wallStatus
	for _, w := range wall.All() {
		walls[w.Name()] = &wallStatus{Name: w.Name()}
	}
	for _, o := range wall.Objects(e) {
		ref := apply.RefOf(o)
		if !listed.Has(ref.GroupVersionKind) {
			listed.Insert(ref.GroupVersionKind)
			if err := collect(ctx, c, ref.GroupVersionKind, have); err != nil {
				return nil, err
			}
		}
		for _, name := range wall.Of(o) {
			w := walls[name]
			w.Wanted++
			if have.Has(ref) {
				w.Stands++
			} else {
				w.Missing = append(w.Missing, ref.String())
			}
		}
	}
	for _, w := range wall.All() {
		all = append(all, *walls[w.Name()])
	}
	return all, nil
}

// collect adds all objects of one kind that carry croft's mark. A kind that the
// cluster does not know has none.
func collect(ctx context.Context, c client.Reader, gvk schema.GroupVersionKind, into sets.Set[apply.Ref]) error {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := c.List(ctx, &list, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
	if err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(gvk)
		into.Insert(apply.RefOf(&list.Items[i]))
	}
	return nil
}
