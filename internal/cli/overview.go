package cli

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/heartbeat"
	"croft.dev/croft/internal/operate/survey"
	"croft.dev/croft/internal/walls/wall"
)

// overview is the data that `croft status` shows.
type overview struct {
	Operator operatorStatus              `json:"operator"`
	Platform v1alpha1.Platform           `json:"platform"`
	Pools    []v1alpha1.Pool             `json:"pools"`
	Tenants  []v1alpha1.Tenant           `json:"tenants"`
	Networks []v1alpha1.SecondaryNetwork `json:"secondaryNetworks,omitempty"`
	Walls    []wallStatus                `json:"walls"`
	// Usage is the quota usage of the tenants' namespaces.
	Usage []usage `json:"usage"`
	// Retained lists the namespaces that were retained when their tenant was deleted.
	Retained []retainedNamespace `json:"retained"`

	*selection
	// rendered means that the walls are rendered from a file, and that no operator
	// maintains them.
	rendered bool
	// wide adds columns to the tables.
	wide bool
	// faults contains the states of missing or changed objects, by the declared object that
	// they belong to.
	faults map[string]sets.Set[apply.State]
}

// operatorStatus reports whether the operator runs. If not, its conditions may be out of
// date.
type operatorStatus struct {
	Alive bool `json:"alive"`
	// LastSeen is the time of the last heartbeat; absent if there was none.
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`
	Holder   string       `json:"holder,omitempty"`
	Version  string       `json:"version,omitempty"`
	// Skew describes how the operator's version differs from this croft's. It is empty if
	// the versions are equal, or if no operator runs.
	Skew string `json:"skew,omitempty"`
	// Summary is the status as one line of text.
	Summary string `json:"summary"`

	believable bool
}

// wallStatus counts the objects of one wall that exist as desired.
type wallStatus struct {
	Name    string   `json:"name"`
	Desired int      `json:"desired"`
	InPlace int      `json:"inPlace"`
	Missing []string `json:"missing,omitempty"`
	// Changed lists objects that exist and differ from the desired ones.
	Changed []string `json:"changed,omitempty"`
	// Unreadable lists objects that the caller may not read.
	Unreadable []string `json:"unreadable,omitempty"`
}

// readOverview reads the data of status.
func (a *app) readOverview(ctx context.Context, c client.Client, files *subjectFlags, pick *selection) (*overview, error) {
	subject, err := a.readSubject(ctx, c, files)
	if err != nil {
		return nil, err
	}
	dropManagedFields(subject)
	look := &overview{
		Platform: subject.Platforms[0], Pools: subject.Pools, Tenants: subject.Tenants, Networks: subject.Networks,
		selection: pick, rendered: files.isRendered(), faults: map[string]sets.Set[apply.State]{},
	}
	if look.rendered {
		look.Operator = operatorStatus{believable: true, Summary: "not read: these are the walls of " + strings.Join(files.names, ", ") + ", for a cluster without an operator"}
	} else {
		beat, err := heartbeat.Read(ctx, c)
		if err != nil {
			return nil, toFailure(explainUnreachable(err))
		}
		look.Operator = newOperatorStatus(beat, time.Now())
	}
	if e, _ := estate.Build(subject); e != nil {
		objects, err := survey.CompareWalls(ctx, c, e, look.rendered)
		if err != nil {
			return nil, toFailure(explainUnreachable(err))
		}
		look.countObjects(objects)
		if look.rendered {
			look.resolveTenants(e)
		}
	}
	if err := look.applySelection(); err != nil {
		return nil, err
	}
	if look.Usage, err = readUsage(ctx, c, look.Tenants); err != nil {
		return nil, toFailure(explainUnreachable(err))
	}
	if look.Retained, err = findRetained(ctx, c, subject.Tenants); err != nil {
		return nil, toFailure(explainUnreachable(err))
	}
	return look, nil
}

// resolveTenants fills in the pools and namespaces of a file's tenants. The operator writes them
// into the status of tenants in the cluster.
func (o *overview) resolveTenants(e *estate.Estate) {
	for i := range o.Tenants {
		if t := e.FindTenant(o.Tenants[i].Name); t != nil {
			o.Tenants[i].Status.Pools, o.Tenants[i].Status.Namespaces = t.Pools, t.Namespaces
		}
	}
}

// dropManagedFields removes the managed fields, as kubectl does.
func dropManagedFields(d *manifest.Declaration) {
	for i := range d.Platforms {
		d.Platforms[i].ManagedFields = nil
	}
	for i := range d.Pools {
		d.Pools[i].ManagedFields = nil
	}
	for i := range d.Tenants {
		d.Tenants[i].ManagedFields = nil
	}
	for i := range d.Networks {
		d.Networks[i].ManagedFields = nil
	}
}

func newOperatorStatus(beat heartbeat.Beat, now time.Time) operatorStatus {
	s := operatorStatus{Alive: beat.IsAlive(now), Holder: beat.Holder, Version: beat.Version, Summary: beat.Describe(now), believable: beat.IsBelievable(now)}
	if !beat.At.IsZero() {
		at := metav1.NewTime(beat.At)
		s.LastSeen = &at
	}
	switch {
	case s.Alive:
		s.Summary += ", on " + beat.Holder + ", version " + beat.Version
		s.Skew = version.Skew(version.String(), beat.Version)
	case !s.believable:
		s.Summary += ". The status of pools and tenants is from its last run; only the walls are current"
	}
	return s
}

// countObjects sums up the missing and changed objects, by wall and by owner.
func (o *overview) countObjects(objects []survey.Object) {
	at := map[string]int{}
	for i, w := range wall.All() {
		at[w.Name()] = i
		o.Walls = append(o.Walls, wallStatus{Name: w.Name()})
	}
	for _, found := range objects {
		if found.State != apply.Matches {
			if o.faults[found.Owner] == nil {
				o.faults[found.Owner] = sets.New[apply.State]()
			}
			o.faults[found.Owner].Insert(found.State)
		}
		for _, name := range found.Walls {
			w := &o.Walls[at[name]]
			w.Desired++
			switch found.State {
			case apply.Matches:
				w.InPlace++
			case apply.Missing:
				w.Missing = append(w.Missing, found.String())
			case apply.Differs:
				w.Changed = append(w.Changed, found.String())
			case apply.Unreadable:
				w.Unreadable = append(w.Unreadable, found.String())
			}
		}
	}
}

// reasonNoOperator is the reason of READY Unknown without an operator.
const reasonNoOperator = "NoOperator"

// evaluateReady returns READY and REASON of a declared object. Without an operator the condition
// may be out of date, so READY is Unknown. For a file's walls, READY is derived from the
// state of their objects.
func (o *overview) evaluateReady(kind, name string, generation int64, status v1alpha1.Status) (ready, reason string) {
	owner := kind + "/" + name
	if kind == survey.OfPlatform {
		owner = kind
	}
	wrong := o.faults[owner]
	switch {
	case !o.Operator.believable:
		return string(metav1.ConditionUnknown), reasonNoOperator
	case !o.rendered:
		c := findReady(generation, status)
		if c == nil {
			return string(metav1.ConditionUnknown), "NotSeenYet"
		}
		return string(c.Status), c.Reason
	case wrong.Has(apply.Missing):
		return string(metav1.ConditionFalse), "Missing"
	case wrong.Has(apply.Differs):
		return string(metav1.ConditionFalse), "Changed"
	case wrong.Has(apply.Unreadable):
		return string(metav1.ConditionUnknown), "Unreadable"
	default:
		return string(metav1.ConditionTrue), "WallsStand"
	}
}

// isReady reports whether READY of a declared object is True.
func (o *overview) isReady(kind, name string, generation int64, status v1alpha1.Status) bool {
	ready, _ := o.evaluateReady(kind, name, generation, status)
	return ready == string(metav1.ConditionTrue)
}

func (o *overview) isPoolReady(p *v1alpha1.Pool) bool {
	return o.isReady("Pool", p.Name, p.Generation, p.Status.Status)
}

func (o *overview) isTenantReady(t *v1alpha1.Tenant) bool {
	return o.isReady("Tenant", t.Name, t.Generation, t.Status.Status)
}

// isGood reports whether all shown objects are known to be Ready and as desired. If pools and
// tenants are selected, only they and their objects count.
func (o *overview) isGood() bool {
	good := o.rendered || o.Operator.Alive
	if !o.hasNames() {
		good = good && len(o.faults) == 0 && o.isReady("Platform", o.Platform.Name, o.Platform.Generation, o.Platform.Status.Status)
		for _, n := range o.Networks {
			good = good && o.isReady("SecondaryNetwork", n.Name, n.Generation, n.Status)
		}
	}
	for i := range o.Pools {
		good = good && o.isPoolReady(&o.Pools[i]) && o.faults["Pool/"+o.Pools[i].Name] == nil
	}
	for i := range o.Tenants {
		good = good && o.isTenantReady(&o.Tenants[i]) && o.faults["Tenant/"+o.Tenants[i].Name] == nil
	}
	return good
}
