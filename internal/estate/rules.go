package estate

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/manifest"
	"croft.dev/croft/internal/wording"
)

// rule checks the whole declaration and refuses the objects that do not fit.
type rule func(*whole)

// rules run in this order: a rule that depends on whether an object was refused runs after the
// rules that refuse it.
var rules = []rule{
	onePlatform,
	eachPlatform(adminsArePeople),
	eachPlatform(addonsAreHarmless),
	eachPlatform(rolesStayWithinOperator),
	eachPlatform(poolKeyIsNotTolerated),
	eachPlatform(poolKeyIsFree),
	eachPlatform(defaultsAreOrdered),
	eachPlatform(platformContainersFitQuota),
	eachPlatform(platformTagsFit),
	eachPlatform(platformClassRefFits),
	eachPlatform(dnsPodsFit),
	eachPlatform(dnsAtMetadata),
	eachPlatform(nameServersAreDeclared),

	noTwins,

	networksAreApart,
	definitionsAreApart,
	eachNetwork(networksAreWritten),
	eachNetwork(reservationsFit),
	eachNetwork(prefixesFit),
	eachNetwork(gatewayIsNoPod),
	eachNetwork(routesHaveGateways),

	eachPool(networksExist),
	eachPool(waitsOnAWS),
	eachPool(networksShareZones),
	eachPool(interfacesSuffice),
	eachPool(prefixesAreKnown),
	eachPool(durationsEnd),
	eachPool(keysAreFree),
	eachPool(startupTaintsFit),
	eachPool(tagsFitNodes),
	eachPool(awsClassIsWhole),
	eachPool(kubeletsAskThePlatforms),
	eachPool(limitsAreAmounts),
	eachPool(limitsAreOfNodes),
	eachPool(nodesLiveLongEnough),
	eachPool(budgetsBegin),
	eachPool(classRefFits),
	eachPool(someInstanceIsLeft),
	eachPool(instanceTypesExist),

	eachTenant(poolsExist),
	eachTenant(networksAreGranted),
	eachTenant(rolesExist),
	eachTenant(namesAreNotTheSystems),
	eachTenant(namesAreNotTopLevel),
	eachTenant(metadataStaysDenied),
	eachTenant(cidrsAreNetworks),
	eachTenant(limitsAreOrdered),
	eachTenant(tenantContainersFitQuota),
	eachTenant(adminsAreNoTenants),
	eachTenant(accessHasNotEnded),
	eachTenant(minimumsFit),
	eachTenant(sourcesFit),
	eachTenant(requestsFit),
	namespacesHaveOneTenant,
	domainsHaveOneTenant,
}

// eachPlatform returns a rule that applies a check to each Platform.
func eachPlatform(check func(*v1alpha1.PlatformSpec) []finding) rule {
	return func(w *whole) {
		for i := range w.Platforms {
			spec := resolvePlatform(w.Platforms[i].Spec)
			w.refuseFor(w.objects[manifest.KindPlatform][i], check(&spec))
		}
	}
}

func eachNetwork(check func(*whole, *v1alpha1.SecondaryNetwork) []finding) rule {
	return func(w *whole) {
		for i := range w.Networks {
			w.refuseFor(w.objects[manifest.KindNetwork][i], check(w, &w.Networks[i]))
		}
	}
}

func eachPool(check func(*whole, *v1alpha1.Pool) []finding) rule {
	return func(w *whole) {
		for i := range w.Pools {
			w.refuseFor(w.objects[manifest.KindPool][i], check(w, &w.Pools[i]))
		}
	}
}

func eachTenant(check func(*whole, *v1alpha1.Tenant) []finding) rule {
	return func(w *whole) {
		for i := range w.Tenants {
			w.refuseFor(w.objects[manifest.KindTenant][i], check(w, &w.Tenants[i]))
		}
	}
}

// whole is a declaration while it is checked.
type whole struct {
	*manifest.Declaration
	// platform is the effective platform with its defaults.
	platform v1alpha1.PlatformSpec
	// objects are the objects by kind, in the order of the Declaration.
	objects map[string][]manifest.Object
	// first is the first object of each name; any other of that name is refused.
	first map[manifest.ID]manifest.Object

	// granted maps requests to the names of the granted namespaces.
	granted map[grant][]string

	bad      map[manifest.Object]bool
	problems manifest.Problems
	warnings manifest.Problems
}

func newWhole(d *manifest.Declaration) *whole {
	w := &whole{
		Declaration: d,
		platform:    resolvePlatform(v1alpha1.PlatformSpec{}),
		objects:     map[string][]manifest.Object{},
		first:       map[manifest.ID]manifest.Object{},
		granted:     grantedOf(d),
		bad:         map[manifest.Object]bool{},
	}
	if len(d.Platforms) > 0 {
		w.platform = resolvePlatform(d.Platforms[0].Spec)
	}
	for i := range d.Platforms {
		w.know(manifest.KindPlatform, d.Platforms[i].Name)
	}
	for i := range d.Networks {
		w.know(manifest.KindNetwork, d.Networks[i].Name)
	}
	for i := range d.Pools {
		w.know(manifest.KindPool, d.Pools[i].Name)
	}
	for i := range d.Tenants {
		w.know(manifest.KindTenant, d.Tenants[i].Name)
	}
	return w
}

func (w *whole) know(kind, name string) {
	o := manifest.Object{ID: manifest.ID{Kind: kind, Name: name}, Index: len(w.objects[kind])}
	w.objects[kind] = append(w.objects[kind], o)
	if _, known := w.first[o.ID]; !known {
		w.first[o.ID] = o
	}
}

func (w *whole) valid(kind string, index int) bool {
	return !w.bad[w.objects[kind][index]]
}

func (w *whole) hasPlatform() bool {
	return len(w.Platforms) == 1 && w.valid(manifest.KindPlatform, 0)
}

// missing returns why a reference to an object cannot be used, or "" if it can.
func (w *whole) missing(kind, name string) string {
	id := manifest.ID{Kind: kind, Name: name}
	noun := nouns[kind]
	if o, ok := w.first[id]; ok {
		if w.bad[o] {
			return fmt.Sprintf("%s %s%s is refused itself; correct that first", noun, name, w.Where(o))
		}
		return ""
	}
	if where, ok := w.Refused(id); ok {
		return fmt.Sprintf("%s %s%s is refused itself; correct that first", noun, name, where)
	}
	if w.Incomplete() {
		return ""
	}
	if like, ok := wording.Nearest(name, w.names(kind)); ok {
		return fmt.Sprintf("there is no %s %s; did you mean %s?", noun, wording.Text(name), like)
	}
	return fmt.Sprintf("there is no %s %s; declare it, or name another", noun, wording.Text(name))
}

func (w *whole) names(kind string) []string {
	names := make([]string, len(w.objects[kind]))
	for i, o := range w.objects[kind] {
		names[i] = o.Name
	}
	return names
}

// nouns are the kinds' names in messages.
var nouns = map[string]string{
	manifest.KindPlatform: "platform",
	manifest.KindPool:     "pool",
	manifest.KindTenant:   "tenant",
	manifest.KindNetwork:  "secondary network",
}

// noTwins refuses all objects of one name except the first.
func noTwins(w *whole) {
	for _, kind := range []string{manifest.KindNetwork, manifest.KindPool, manifest.KindTenant} {
		for _, o := range w.objects[kind] {
			if first := w.first[o.ID]; first.Index != o.Index {
				w.refuse(o, nil, "%s %s is declared twice%s; keep one of them", nouns[kind], o.Name, w.Where(first))
			}
		}
	}
}

// byAge returns the indexes of a list, from the oldest object to the youngest: if two objects
// claim the same, the older one gets it. Objects that were created in the same second are
// ordered by name, since the API server's lists have no defined order. Objects that do not
// exist yet are the youngest, in their order in the file.
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
