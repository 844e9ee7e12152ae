package gatekeeper

import (
	"slices"

	"croft.dev/croft/internal/migrate/draft"
	"croft.dev/croft/internal/migrate/source"
)

// Pools read which namespace's pods run on which pool.
func Pools(d *draft.Draft) {
	var selecting, tolerating, others []Mutator
	for _, m := range Mutators(d) {
		switch {
		case len(m.Selector().Fields()) > 0:
			selecting = append(selecting, m)
		case len(m.Tolerations()) > 0:
			tolerating = append(tolerating, m)
		default:
			others = append(others, m)
		}
	}
	for _, m := range selecting {
		readSelector(d, m, m.Selector().Fields())
	}
	for _, m := range tolerating {
		readTolerations(d, m)
	}
	for _, m := range others {
		otherMutator(m.Object)
	}
	for _, kind := range []string{"AssignMetadata", "AssignImage"} {
		for _, o := range d.Of(draft.MutationsGroup, kind) {
			otherMutator(o)
		}
	}
}

func otherMutator(o *source.Object) {
	o.Root().NotKept("croft changes of a pod only where it runs and its images' pull policy: this stays with Gatekeeper, or becomes a MutatingAdmissionPolicy of yours")
}

// readSelector reads a nodeSelector.
func readSelector(d *draft.Draft, m Mutator, entries []source.Field) {
	source.Frame(m.Object, "tenants")
	match(d, m)
	for _, e := range entries {
		value := m.At("spec", "parameters", "assign", "value")
		if e.Key() != d.Key {
			said := value.At(e.Key())
			if !said.Found() {
				said = value
			}
			said.NotKept("croft selects nodes by %s alone: pods that need %s ask for it themselves, by nodeAffinity", d.Key, e.Key())
			continue
		}
		for _, namespace := range matched(d, m) {
			tenant := d.TenantOf(namespace)
			if tenant == "" {
				tenant = draft.AsName(namespace)
			}
			t := d.AddTenant(tenant, m.Object)
			d.Place(t, tenant, value, d.PoolNamed(e.Text()))
		}
	}
	m.At("spec").Kept("tenants")
}

// readTolerations reads tolerations: croft adds that of the pool itself.
func readTolerations(d *draft.Draft, m Mutator) {
	source.Frame(m.Object, "tenants")
	match(d, m)
	for _, t := range m.Tolerations() {
		key, value := t.At("key").Text(), t.At("value").Text()
		switch {
		case key == d.Key && value != "":
			tolerated(d, m, t, d.PoolNamed(value))
		case key == d.Key || key == "":
			t.NotKept("lets pods onto the nodes of every pool: croft's pods tolerate their own tenant's pools alone")
		default:
			t.NotKept("croft's pods tolerate their pool and nothing else: if nodes need the taint %s, give tenants a pool of their own on nodes without it", key)
		}
	}
	m.At("spec").Kept("tenants")
}

func tolerated(d *draft.Draft, m Mutator, t source.Field, pool string) {
	for _, namespace := range matched(d, m) {
		name := d.TenantOf(namespace)
		if name == "" {
			name = draft.AsName(namespace)
		}
		tenant := d.AddTenant(name, m.Object)
		switch {
		case tenant.Spec.Pool == "":
			d.Place(tenant, name, t, pool)
			t.Changed(draft.TenantField(name, "pool"), "pods only tolerated the pool's taint, and could run elsewhere too: croft also selects the pool")
		case tenant.Spec.Pool != pool && !slices.Contains(tenant.Spec.Pools, pool):
			t.NotKept("tolerates pool %s, and %s puts the pods of %s on pool %s: croft lets them run there alone", pool, tenant.Placed.Object().ID(), namespace, tenant.Spec.Pool)
			d.Problem(t, "pods of namespace %s tolerate pool %s, but run on pool %s as %s at %s says: make the two agree",
				namespace, pool, tenant.Spec.Pool, tenant.Placed.Object().ID(), tenant.Placed.Object().Place())
		default:
			t.KeptAs(draft.TenantField(name, "pool"), "croft adds it to pods itself")
		}
	}
}
