package proxy

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"

	"croft.dev/croft/api/v1alpha1"
)

// tenancy contains the collections of tenants, pools and nodes, filtered by user. A user
// sees a tenant if a RoleBinding in one of its namespaces lets them get the namespace, the
// pools of these tenants, and the nodes of these pools.
//
// A tenant's namespaces and pools are the ones that the operator has accepted, from the
// Tenant's status. A node's pool is its label nodePoolKey, which no tenant can write: no
// tenant's role includes nodes, and the API server lets kubelets set no label below
// node-restriction.kubernetes.io, where croft's own key is.
type tenancy struct {
	access                *visibility
	tenants, pools, nodes *collection
	trees                 map[*collection]fieldTree
	// ready is true once all four kinds have been read.
	ready atomic.Bool

	// updates is locked while an event is applied, so that its changes are recorded in the
	// order in which they take effect.
	updates sync.Mutex
	mutex   sync.RWMutex
	// links contains the namespaces and pools of each tenant. tenantsIn, tenantsOn and
	// nodesIn are indexes of links by namespace and by pool, and of poolOf by pool.
	links                         map[string]links
	tenantsIn, tenantsOn, nodesIn index
	// poolOf maps each node to its pool, and unfiltered contains the nodes with all fields.
	// Both are needed when key changes.
	poolOf     map[string]string
	unfiltered map[string]*corev1.Node
	// key is the Platform's nodePoolKey.
	key string
}

// links is the set of namespaces and the set of pools of a tenant.
type links struct{ namespaces, pools sets.Set[string] }

// index maps names to sets of names.
type index map[string]sets.Set[string]

func (x index) add(to string, name string) {
	if x[to] == nil {
		x[to] = sets.New[string]()
	}
	x[to].Insert(name)
}

func (x index) remove(from string, name string) {
	if x[from].Delete(name); len(x[from]) == 0 {
		delete(x, from)
	}
}

func newTenancy(access *visibility) (*tenancy, error) {
	t := &tenancy{
		access: access, links: map[string]links{}, tenantsIn: index{}, tenantsOn: index{}, nodesIn: index{},
		poolOf: map[string]string{}, unfiltered: map[string]*corev1.Node{}, key: v1alpha1.DefaultNodePoolKey,
	}
	tenants, err := newTenantKind()
	if err != nil {
		return nil, err
	}
	pools, err := newPoolKind()
	if err != nil {
		return nil, err
	}
	t.tenants, t.pools, t.nodes = newCollection(tenants, visibleNames(t.findTenants)), newCollection(pools, visibleNames(t.findPools)), newCollection(newNodeKind(), nodeVisibility{t})
	t.trees = map[*collection]fieldTree{
		t.tenants: newFieldTree(tenantFields.shown), t.pools: newFieldTree(poolFields.shown), t.nodes: newFieldTree(nodeFields.shown),
	}
	return t, nil
}

func (t *tenancy) listCollections() []*collection { return []*collection{t.tenants, t.pools, t.nodes} }

// findTenants returns the tenants that a user is a member of.
func (t *tenancy) findTenants(u user.Info) sets.Set[string] {
	namespaces := t.access.listRoleNamespaces(u)
	t.mutex.RLock()
	defer t.mutex.RUnlock()
	all := sets.New[string]()
	for namespace := range namespaces {
		all = all.Union(t.tenantsIn[namespace])
	}
	return all
}

// findPools returns the pools of the tenants that a user is a member of.
func (t *tenancy) findPools(u user.Info) sets.Set[string] {
	tenants := t.findTenants(u)
	t.mutex.RLock()
	defer t.mutex.RUnlock()
	all := sets.New[string]()
	for tenant := range tenants {
		all = all.Union(t.links[tenant].pools)
	}
	return all
}

// visibleNames implements visibilityIndex by the names that the function returns for a user.
type visibleNames func(user.Info) sets.Set[string]

func (s visibleNames) canSee(u user.Info, name string) bool { return s(u).Has(name) }

func (s visibleNames) visibleTo(u user.Info) (names sets.Set[string], all bool) { return s(u), false }

// nodeVisibility implements visibilityIndex for the nodes in the pools that a user may see.
type nodeVisibility struct{ *tenancy }

func (t nodeVisibility) canSee(u user.Info, name string) bool {
	t.mutex.RLock()
	pool := t.poolOf[name]
	t.mutex.RUnlock()
	return pool != "" && t.findPools(u).Has(pool)
}

func (t nodeVisibility) visibleTo(u user.Info) (names sets.Set[string], all bool) {
	pools := t.findPools(u)
	t.mutex.RLock()
	defer t.mutex.RUnlock()
	names = sets.New[string]()
	for pool := range pools {
		names.Insert(t.nodesIn[pool].UnsortedList()...)
	}
	return names, false
}

// effect collects the objects whose set of users changed, with the subjects that may no
// longer see them.
type effect struct{ tenants, pools, nodes map[string][]subject }

func newEffect() effect {
	return effect{map[string][]subject{}, map[string][]subject{}, map[string][]subject{}}
}

// affectTenant adds a tenant and the pools and nodes that its users see because of it. t.mutex
// must be held.
func (t *tenancy) affectTenant(e effect, tenant string, revoked []subject) {
	e.tenants[tenant] = append(e.tenants[tenant], revoked...)
	for pool := range t.links[tenant].pools {
		t.affectPool(e, pool, revoked)
	}
}

// affectPool adds a pool and its nodes. t.mutex must be held.
func (t *tenancy) affectPool(e effect, pool string, revoked []subject) {
	e.pools[pool] = append(e.pools[pool], revoked...)
	for node := range t.nodesIn[pool] {
		e.nodes[node] = append(e.nodes[node], revoked...)
	}
}

// record passes an effect to the collections. t.mutex must not be held.
func (t *tenancy) record(version uint64, e effect) {
	t.tenants.changeAccess(version, e.tenants)
	t.pools.changeAccess(version, e.pools)
	t.nodes.changeAccess(version, e.nodes)
}

// changeAccess applies a change of RBAC at a resource version, and returns the change.
func (t *tenancy) changeAccess(version uint64, apply func() accessChange) accessChange {
	t.updates.Lock()
	defer t.updates.Unlock()
	c := apply()
	e := newEffect()
	t.mutex.RLock()
	for _, namespace := range c.namespaces {
		if namespace == "" {
			continue // ClusterRoleBindings make no user a member of a tenant
		}
		for tenant := range t.tenantsIn[namespace] {
			t.affectTenant(e, tenant, c.listRevokedIn(namespace))
		}
	}
	t.mutex.RUnlock()
	t.record(version, e)
	return c
}

// setTenant stores a Tenant, or drops it if it does not exist.
func (t *tenancy) setTenant(o *v1alpha1.Tenant, shown object, exists bool) {
	t.updates.Lock()
	defer t.updates.Unlock()
	before := t.getLinks(o.Name)
	after := links{}
	if exists {
		after = computeLinks(o, before)
	}
	revoked := t.listMembers(before)
	e := newEffect()
	t.mutex.Lock()
	moved := !before.namespaces.Equal(after.namespaces)
	if moved {
		e.tenants[o.Name] = revoked
	}
	for pool := range before.pools.Union(after.pools) {
		switch {
		case !before.pools.Has(pool):
			t.affectPool(e, pool, nil)
		case moved || !after.pools.Has(pool):
			t.affectPool(e, pool, revoked)
		}
	}
	t.replaceLinks(o.Name, before, after)
	t.mutex.Unlock()
	t.record(parseResourceVersion(o), e)
	if exists {
		t.tenants.putIfChanged(shown)
	} else {
		t.tenants.remove(o, revoked...)
	}
}

// computeLinks returns the links of a Tenant. They change only once the operator has accepted
// the new spec: claims on other tenants' namespaces or pools have no effect.
func computeLinks(o *v1alpha1.Tenant, before links) links {
	next := links{sets.New(o.Status.Namespaces...), before.pools}
	switch {
	case o.Status.ObservedGeneration == o.Generation && meta.IsStatusConditionTrue(o.Status.Conditions, v1alpha1.ConditionAccepted):
		next.pools = sets.New(o.Spec.Pools...)
		if len(o.Spec.Pools) == 0 {
			next.pools = sets.New(o.Spec.Pool)
		}
	case before.pools == nil:
		next.pools = sets.New(o.Status.Pool)
	}
	return next
}

func (t *tenancy) getLinks(tenant string) links {
	t.mutex.RLock()
	defer t.mutex.RUnlock()
	return t.links[tenant]
}

// listMembers returns the subjects that are members of a tenant with these links.
func (t *tenancy) listMembers(l links) (all []subject) {
	for namespace := range l.namespaces {
		all = append(all, t.access.listSubjectsIn(namespace)...)
	}
	return all
}

// replaceLinks replaces the links of a tenant. t.mutex must be held.
func (t *tenancy) replaceLinks(tenant string, before, after links) {
	for namespace := range before.namespaces {
		t.tenantsIn.remove(namespace, tenant)
	}
	for pool := range before.pools {
		t.tenantsOn.remove(pool, tenant)
	}
	delete(t.links, tenant)
	if after.namespaces == nil {
		return
	}
	t.links[tenant] = after
	for namespace := range after.namespaces {
		t.tenantsIn.add(namespace, tenant)
	}
	for pool := range after.pools {
		t.tenantsOn.add(pool, tenant)
	}
}

// setPool stores a Pool, or drops it if it does not exist.
func (t *tenancy) setPool(shown *v1alpha1.Pool, exists bool) {
	t.updates.Lock()
	defer t.updates.Unlock()
	if exists {
		t.pools.putIfChanged(shown)
	} else {
		t.pools.remove(shown) // its tenants still name it, so the index still has the answer
	}
}

// setNode stores a node, or drops it if it does not exist.
func (t *tenancy) setNode(o *corev1.Node, exists bool) error {
	t.updates.Lock()
	defer t.updates.Unlock()
	return t.applyNode(o, exists)
}

// applyNode is setNode. t.updates must be held.
//
// A node that moves to another pool is deleted from the first and added to the other: a
// user who sees only one of the pools gets no information about the node in the other.
func (t *tenancy) applyNode(o *corev1.Node, exists bool) error {
	t.mutex.Lock()
	if t.unfiltered[o.Name] = o; !exists {
		delete(t.unfiltered, o.Name)
	}
	before, key := t.poolOf[o.Name], t.key
	t.mutex.Unlock()
	if !exists {
		t.nodes.remove(o, t.takeNode(o.Name, before)...)
		return nil
	}
	shown := &corev1.Node{}
	if err := t.trees[t.nodes].pickFields(o, shown); err != nil {
		return err
	}
	shown.Labels = pickLabels(o.Labels, key)
	if after := o.Labels[key]; before != after {
		t.nodes.remove(o, t.takeNode(o.Name, before)...)
		t.giveNode(o.Name, after)
	}
	t.nodes.putIfChanged(shown)
	return nil
}

// takeNode removes a node from its pool, and returns the subjects that could see it there.
func (t *tenancy) takeNode(name, pool string) (revoked []subject) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for tenant := range t.tenantsOn[pool] {
		revoked = append(revoked, t.listMembers(t.links[tenant])...)
	}
	t.nodesIn.remove(pool, name)
	delete(t.poolOf, name)
	return revoked
}

// giveNode adds a node to a pool.
func (t *tenancy) giveNode(name, pool string) {
	if pool == "" {
		return
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.nodesIn.add(pool, name)
	t.poolOf[name] = pool
}

// setKey sets the Platform's nodePoolKey, which determines the pools of nodes.
func (t *tenancy) setKey(key string) error {
	t.updates.Lock()
	defer t.updates.Unlock()
	t.mutex.Lock()
	same := t.key == key
	t.key = key
	nodes := slices.Collect(maps.Values(t.unfiltered))
	t.mutex.Unlock()
	if same {
		return nil
	}
	for _, node := range nodes {
		if err := t.applyNode(node, true); err != nil {
			return err
		}
	}
	return nil
}

// putIfChanged stores an object, unless only its resource version differs from the stored
// object's. In that case only hidden fields changed, such as another tenant's image on a
// node, and neither an event nor a version may reveal it.
func (n *collection) putIfChanged(o object) {
	n.mutex.Lock()
	before := n.objects[o.GetName()]
	n.mutex.Unlock()
	if before != nil {
		same := n.copy(o)
		same.SetResourceVersion(before.GetResourceVersion())
		if equality.Semantic.DeepEqual(before, same) {
			return
		}
	}
	n.put(o)
}

// applyTenantEvent applies an event of a Tenant.
func (t *tenancy) applyTenantEvent(o *unstructured.Unstructured, exists bool) error {
	tenant := &v1alpha1.Tenant{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, tenant); err != nil {
		return err
	}
	shown := &v1alpha1.Tenant{}
	if err := t.trees[t.tenants].pickFields(o, shown); err != nil {
		return err
	}
	t.setTenant(tenant, shown, exists)
	return nil
}

// applyPoolEvent applies an event of a Pool.
func (t *tenancy) applyPoolEvent(o *unstructured.Unstructured, exists bool) error {
	shown := &v1alpha1.Pool{}
	if err := t.trees[t.pools].pickFields(o, shown); err != nil {
		return err
	}
	t.setPool(shown, exists)
	return nil
}
