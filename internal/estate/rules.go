package estate

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

// A rule looks at the whole declaration and refuses the objects that do not fit.
type rule func(*whole)

// rules run in this order: one that asks whether an object was refused comes
// after those that refuse it.
var rules = []rule{
	onePlatform,
	eachPlatform(adminsArePeople),
	eachPlatform(addonsAreHarmless),
	eachPlatform(rolesStayWithinOperator),
	eachPlatform(poolKeyIsFree),
	eachPlatform(defaultsAreOrdered),
	eachPlatform(platformTagsFit),
	eachPlatform(platformClassRefFits),

	noTwins,

	networksAreApart,
	eachNetwork(gatewayIsNoPod),

	eachPool(networksExist),
	eachPool(durationsEnd),
	eachPool(keysAreFree),
	eachPool(tagsFitNodes),
	eachPool(awsClassIsWhole),
	eachPool(limitsAreAmounts),
	eachPool(limitsAreOfNodes),
	eachPool(nodesLiveLongEnough),
	eachPool(budgetsBegin),
	eachPool(classRefFits),
	eachPool(someInstanceIsLeft),
	eachPool(instanceTypesExist),

	eachTenant(poolsExist),
	eachTenant(rolesExist),
	eachTenant(namesAreNotTheSystems),
	eachTenant(namesAreNotTopLevel),
	eachTenant(metadataStaysDenied),
	eachTenant(cidrsAreNetworks),
	eachTenant(limitsAreOrdered),
	eachTenant(adminsAreNoTenants),
	eachTenant(minimumsFit),
	namespacesHaveOneTenant,
	domainsHaveOneTenant,
}

// eachPlatform makes a rule of a check of one Platform.
func eachPlatform(check func(*v1alpha1.PlatformSpec) []finding) rule {
	return func(w *whole) {
		for i := range w.Platforms {
			spec := resolvePlatform(w.Platforms[i].Spec)
			w.refuseFor(w.objects[kindPlatform][i], check(&spec))
		}
	}
}

func eachNetwork(check func(*whole, *v1alpha1.SecondaryNetwork) []finding) rule {
	return func(w *whole) {
		for i := range w.Networks {
			w.refuseFor(w.objects[kindNetwork][i], check(w, &w.Networks[i]))
		}
	}
}

func eachPool(check func(*whole, *v1alpha1.Pool) []finding) rule {
	return func(w *whole) {
		for i := range w.Pools {
			w.refuseFor(w.objects[kindPool][i], check(w, &w.Pools[i]))
		}
	}
}

func eachTenant(check func(*whole, *v1alpha1.Tenant) []finding) rule {
	return func(w *whole) {
		for i := range w.Tenants {
			w.refuseFor(w.objects[kindTenant][i], check(w, &w.Tenants[i]))
		}
	}
}

// whole is a declaration under examination.
type whole struct {
	*Declaration
	// platform is the one in force, defaulted.
	platform v1alpha1.PlatformSpec
	// objects are those of each kind, in the order of the Declaration.
	objects map[string][]object
	// first is the first object of each name; any other of that name is refused.
	first map[identity]object

	bad      map[position]bool
	problems Problems
	warnings Problems
}

func newWhole(d *Declaration) *whole {
	w := &whole{
		Declaration: d,
		platform:    resolvePlatform(v1alpha1.PlatformSpec{}),
		objects:     map[string][]object{},
		first:       map[identity]object{},
		bad:         map[position]bool{},
	}
	if len(d.Platforms) > 0 {
		w.platform = resolvePlatform(d.Platforms[0].Spec)
	}
	for i := range d.Platforms {
		w.know(kindPlatform, d.Platforms[i].Name)
	}
	for i := range d.Networks {
		w.know(kindNetwork, d.Networks[i].Name)
	}
	for i := range d.Pools {
		w.know(kindPool, d.Pools[i].Name)
	}
	for i := range d.Tenants {
		w.know(kindTenant, d.Tenants[i].Name)
	}
	return w
}

func (w *whole) know(kind, name string) {
	o := object{position{kind, len(w.objects[kind])}, name}
	w.objects[kind] = append(w.objects[kind], o)
	if _, known := w.first[o.identity()]; !known {
		w.first[o.identity()] = o
	}
}

func (w *whole) valid(kind string, index int) bool {
	return !w.bad[position{kind, index}]
}

func (w *whole) hasPlatform() bool {
	return len(w.Platforms) == 1 && w.valid(kindPlatform, 0)
}

// missing says why a name that an object refers to cannot be used, or nothing if
// it can.
func (w *whole) missing(kind, name string) string {
	id := identity{kind, name}
	noun := nouns[kind]
	if o, ok := w.first[id]; ok {
		if w.bad[o.position] {
			return fmt.Sprintf("%s %s%s is refused itself; correct that first", noun, name, w.where(o))
		}
		return ""
	}
	if from, ok := w.refused[id]; ok {
		return fmt.Sprintf("%s %s%s is refused itself; correct that first", noun, name, from.where())
	}
	if w.partial {
		return ""
	}
	if like, ok := nearest(name, w.names(kind)); ok {
		return fmt.Sprintf("there is no %s %s; did you mean %s?", noun, text(name), like)
	}
	return fmt.Sprintf("there is no %s %s; declare it, or name another", noun, text(name))
}

func (w *whole) names(kind string) []string {
	names := make([]string, len(w.objects[kind]))
	for i, o := range w.objects[kind] {
		names[i] = o.name
	}
	return names
}

// nouns are the kinds as they stand in a sentence.
var nouns = map[string]string{
	kindPlatform: "platform",
	kindPool:     "pool",
	kindTenant:   "tenant",
	kindNetwork:  "secondary network",
}

// noTwins refuses all objects of one name but the first.
func noTwins(w *whole) {
	for _, kind := range []string{kindNetwork, kindPool, kindTenant} {
		for _, o := range w.objects[kind] {
			if first := w.first[o.identity()]; first.index != o.index {
				w.refuse(o, nil, "%s %s is declared twice%s; keep one of them", nouns[kind], o.name, w.where(first))
			}
		}
	}
}

// byAge are the indexes of a list, the oldest object first: what two of them
// claim belongs to the older one. Objects that were created in the same second
// come by name, since the API server's lists have no order of their own; those
// that are not created yet are the youngest, and come as they were written.
func byAge[T any, P interface {
	*T
	metav1.Object
}](list []T) []int {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := P(&list[i]), P(&list[j])
		born, other := a.GetCreationTimestamp(), b.GetCreationTimestamp()
		switch {
		case born.IsZero() && other.IsZero():
			return 0
		case born.IsZero():
			return 1
		case other.IsZero():
			return -1
		}
		return cmp.Or(born.Compare(other.Time), cmp.Compare(a.GetName(), b.GetName()))
	})
	return order
}
