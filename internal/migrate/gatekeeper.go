package migrate

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"croft.dev/croft/internal/estate"
)

const mutationsGroup = "mutations.gatekeeper.sh"

// mutator is a Gatekeeper Assign or ModifySet.
type mutator struct{ *Object }

func (d *draft) mutators() []mutator {
	var all []mutator
	for _, o := range append(d.of(mutationsGroup, "Assign"), d.of(mutationsGroup, "ModifySet")...) {
		all = append(all, mutator{o})
	}
	return all
}

// keyed is a location that leads to one entry: spec.nodeSelector["node-pool"].
var keyed = regexp.MustCompile(`^spec\.nodeSelector(?:\["?([^"\]]+)"?\]|\."?([^"]+)"?)$`)

func (m mutator) location() string { return strings.Trim(m.At("spec", "location").Text(), " ") }

// selector is the nodeSelector that the mutator gives to pods, if it gives one.
func (m mutator) selector() Field {
	value := m.At("spec", "parameters", "assign", "value")
	if m.Kind != "Assign" {
		return Field{}
	}
	if m.location() == "spec.nodeSelector" {
		return value
	}
	if key := keyed.FindStringSubmatch(m.location()); key != nil && value.Text() != "" {
		name := key[1] + key[2]
		return Field{m.Object, value.path, map[string]any{name: value.Text()}, true}
	}
	return Field{}
}

// tolerations are those that the mutator gives to pods.
func (m mutator) tolerations() []Field {
	if !strings.HasPrefix(m.location(), "spec.tolerations") {
		return nil
	}
	if m.Kind == "ModifySet" {
		if m.At("spec", "parameters", "operation").Text() == "prune" {
			return nil
		}
		return m.At("spec", "parameters", "values", "fromList").Items()
	}
	value := m.At("spec", "parameters", "assign", "value")
	if items := value.Items(); len(items) > 0 {
		return items
	}
	if value.At("key").Found() {
		return []Field{value}
	}
	return nil
}

// assigns read which namespace's pods run on which pool.
func (d *draft) assigns() {
	var selecting, tolerating, others []mutator
	for _, m := range d.mutators() {
		switch {
		case len(m.selector().Fields()) > 0:
			selecting = append(selecting, m)
		case len(m.tolerations()) > 0:
			tolerating = append(tolerating, m)
		default:
			others = append(others, m)
		}
	}
	for _, m := range selecting {
		d.placing(m, m.selector().Fields())
	}
	for _, m := range tolerating {
		d.tolerating(m)
	}
	for _, m := range others {
		d.otherMutator(m.Object)
	}
	for _, kind := range []string{"AssignMetadata", "AssignImage"} {
		for _, o := range d.of(mutationsGroup, kind) {
			d.otherMutator(o)
		}
	}
}

func (d *draft) otherMutator(o *Object) {
	o.Root().NotKept("croft changes of a pod only where it runs and its images' pull policy: this stays with Gatekeeper, or becomes a MutatingAdmissionPolicy of yours")
}

// placing reads a nodeSelector.
func (d *draft) placing(m mutator, entries []Field) {
	frame(m.Object, "tenants")
	d.match(m)
	for _, e := range entries {
		value := m.At("spec", "parameters", "assign", "value")
		if e.Key() != d.key {
			said := value.At(e.Key())
			if !said.Found() {
				said = value
			}
			said.NotKept("croft selects nodes by %s alone: pods that need %s ask for it themselves, by nodeAffinity", d.key, e.Key())
			continue
		}
		for _, namespace := range d.matched(m) {
			tenant := d.tenantOf(namespace)
			if tenant == "" {
				tenant = asName(namespace)
			}
			t := d.addTenant(tenant, m.Object)
			d.place(t, tenant, value, d.poolNamed(e.Text()))
		}
	}
	m.At("spec").Kept("tenants")
}

// tolerating reads tolerations: croft adds that of the pool itself.
func (d *draft) tolerating(m mutator) {
	frame(m.Object, "tenants")
	d.match(m)
	for _, t := range m.tolerations() {
		key, value := t.At("key").Text(), t.At("value").Text()
		switch {
		case key == d.key && value != "":
			d.tolerated(m, t, d.poolNamed(value))
		case key == d.key || key == "":
			t.NotKept("lets pods onto the nodes of every pool: croft's pods tolerate their own tenant's pools alone")
		default:
			t.NotKept("croft's pods tolerate their pool and nothing else: if nodes need the taint %s, give tenants a pool of their own on nodes without it", key)
		}
	}
	m.At("spec").Kept("tenants")
}

func (d *draft) tolerated(m mutator, t Field, pool string) {
	for _, namespace := range d.matched(m) {
		name := d.tenantOf(namespace)
		if name == "" {
			name = asName(namespace)
		}
		tenant := d.addTenant(name, m.Object)
		switch {
		case tenant.spec.Pool == "":
			d.place(tenant, name, t, pool)
			t.Changed(tenantField(name, "pool"), "pods only tolerated the pool's taint, and could run elsewhere too: croft also selects the pool")
		case tenant.spec.Pool != pool && !slices.Contains(tenant.spec.Pools, pool):
			t.NotKept("tolerates pool %s, and %s puts the pods of %s on pool %s: croft lets them run there alone", pool, tenant.placed.object.ID(), namespace, tenant.spec.Pool)
			d.problem(t, "pods of namespace %s tolerate pool %s, but run on pool %s as %s at %s says: make the two agree",
				namespace, pool, tenant.spec.Pool, tenant.placed.object.ID(), tenant.placed.object.Place())
		default:
			t.KeptAs(tenantField(name, "pool"), "croft adds it to pods itself")
		}
	}
}

// place puts a tenant on a pool. Who says another than was said is told.
func (d *draft) place(t *tenant, name string, by Field, pool string) {
	switch {
	case t.spec.Pool == "" && len(t.spec.Pools) == 0:
		t.spec.Pool, t.placed = pool, by
	case t.spec.Pool != pool && !slices.Contains(t.spec.Pools, pool):
		at := "what was read before"
		if t.placed.object != nil {
			at = t.placed.object.ID() + " at " + t.placed.object.Place()
		}
		by.NotKept("%s puts tenant %s on pool %s already, which counts", at, name, t.spec.Pool)
		d.problem(by, "puts tenant %s on pool %s, and %s on pool %s, which counts: make the two agree", name, pool, at, t.spec.Pool)
		return
	}
	by.Kept(tenantField(name, "pool"))
	if _, known := d.pools[pool]; !known {
		names := slices.Sorted(maps.Keys(d.pools))
		d.told[name] = true
		d.problem(by, "there is no pool %s among what was read%s; tenant %s is left out of croft.yaml until it has one", pool, estate.Suggest(pool, names), name)
	}
}

// poolNamed is the pool whose nodes have a value of the key.
func (d *draft) poolNamed(value string) string {
	for _, name := range slices.Sorted(maps.Keys(d.pools)) {
		if name == value {
			return name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.pools)) {
		if slices.Contains(d.pools[name].values, value) {
			return name
		}
	}
	return asName(value)
}

// matched are the namespaces whose pods a mutator or a constraint is about.
func (d *draft) matched(m mutator) []string {
	var all []string
	for _, pattern := range m.At("spec", "match", "namespaces").Texts() {
		if !strings.Contains(pattern, "*") {
			all = append(all, pattern)
			continue
		}
		for _, o := range d.of("", "Namespace") {
			if globs(pattern, o.Name) {
				all = append(all, o.Name)
			}
		}
	}
	return distinct(all)
}

// globs is how Gatekeeper compares names: a * at either end.
func globs(pattern, name string) bool {
	inner := strings.Trim(pattern, "*")
	begins, ends := strings.HasSuffix(pattern, "*"), strings.HasPrefix(pattern, "*")
	switch {
	case begins && ends:
		return strings.Contains(name, inner)
	case begins:
		return strings.HasPrefix(name, inner)
	case ends:
		return strings.HasSuffix(name, inner)
	default:
		return pattern == name
	}
}

// match accounts for whom a mutator or a constraint is about.
func (d *draft) match(m mutator) {
	match := m.At("spec", "match")
	for _, f := range match.Fields() {
		switch f.Key() {
		case "namespaces":
			if len(d.matched(m)) == 0 {
				f.NotKept("none of these namespaces is known: give their Namespace objects too, or name them in full")
			}
		case "scope", "kinds", "source":
		default:
			f.NotKept("croft goes by namespaces alone: name them in tenants.*.namespaces")
		}
	}
	if !match.At("namespaces").Found() {
		match.At("namespaces").UnsetChanged("tenants", "names no namespaces, so that it says of no tenant where its pods run")
	}
}
