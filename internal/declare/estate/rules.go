package estate

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/wording"
)

// rule checks the whole declaration and refuses the objects that do not fit.
type rule func(*checker)

// rules run in this order: a rule that depends on whether an object was refused runs after the
// rules that refuse it.
var rules = []rule{
	checkOnePlatform,
	forEachPlatform(checkAdmins),
	forEachPlatform(checkAddons),
	forEachPlatform(checkRoles),
	forEachPlatform(checkTolerations),
	forEachPlatform(checkPoolKey),
	forEachPlatform(checkTenantDefaults),
	forEachPlatform(checkDefaultMetadata),
	forEachPlatform(checkDefaultTemplates),
	forEachPlatform(checkPlatformContainers),
	forEachPlatform(checkPlatformTags),
	forEachPlatform(checkPlatformClassRef),
	forEachPlatform(checkDNSPods),
	forEachPlatform(checkDNSAtMetadata),
	forEachPlatform(checkNameServers),

	checkDuplicates,

	checkNetworkOverlaps,
	checkDefinitionNames,
	forEachNetwork(checkNetworkAddresses),
	forEachNetwork(checkReservations),
	forEachNetwork(checkPrefixes),
	forEachNetwork(checkGateways),
	forEachNetwork(checkRoutes),

	forEachPool(checkPoolNetworks),
	forEachPool(checkWaitForNetworks),
	forEachPool(checkNetworkZones),
	forEachPool(checkInterfaces),
	forEachPool(checkPoolPrefixes),
	forEachPool(checkDurations),
	forEachPool(checkRequirementKeys),
	forEachPool(checkStartupTaints),
	forEachPool(checkPoolTags),
	forEachPool(checkAWSClass),
	forEachPool(checkKubeletDNS),
	forEachPool(checkPoolLimits),
	forEachPool(checkLimitNames),
	forEachPool(checkNodeTTL),
	forEachPool(checkBudgets),
	forEachPool(checkClassRef),
	forEachPool(checkInstances),
	forEachPool(checkInstanceTypes),

	forEachTenant(checkTenantPools),
	forEachTenant(checkTenantNetworks),
	forEachTenant(checkAccessRoles),
	forEachTenant(checkSystemNames),
	forEachTenant(checkTopLevelNames),
	forEachTenant(checkTenantMetadata),
	forEachTenant(checkTenantTemplates),
	forEachTenant(checkMetadataDenied),
	forEachTenant(checkAllowCIDRs),
	forEachTenant(checkConsents),
	forEachTenant(checkCallersFrom),
	checkDefaultCallersFrom,
	forEachTenant(checkDefaultClasses),
	forEachTenant(checkTenantResources),
	forEachTenant(checkTenantContainers),
	forEachTenant(checkTenantAdmins),
	forEachTenant(checkAccessExpiry),
	forEachTenant(checkFreeze),
	forEachTenant(checkMinimums),
	forEachTenant(checkSources),
	forEachTenant(checkRequests),
	checkNamespaceOwners,
	checkDomainOwners,
	checkThresholds,
}

// forEachPlatform returns a rule that applies a check to each Platform.
func forEachPlatform(check func(*v1alpha1.PlatformSpec) []finding) rule {
	return func(w *checker) {
		for i := range w.Platforms {
			spec := resolvePlatform(w.Platforms[i].Spec)
			w.recordFindings(w.objects[manifest.KindPlatform][i], check(&spec))
		}
	}
}

func forEachNetwork(check func(*checker, *v1alpha1.SecondaryNetwork) []finding) rule {
	return func(w *checker) {
		for i := range w.Networks {
			w.recordFindings(w.objects[manifest.KindNetwork][i], check(w, &w.Networks[i]))
		}
	}
}

func forEachPool(check func(*checker, *v1alpha1.Pool) []finding) rule {
	return func(w *checker) {
		for i := range w.Pools {
			w.recordFindings(w.objects[manifest.KindPool][i], check(w, &w.Pools[i]))
		}
	}
}

func forEachTenant(check func(*checker, *v1alpha1.Tenant) []finding) rule {
	return func(w *checker) {
		for i := range w.Tenants {
			w.recordFindings(w.objects[manifest.KindTenant][i], check(w, &w.Tenants[i]))
		}
	}
}

// checker is a declaration while it is checked.
type checker struct {
	*manifest.Declaration
	// platform is the effective platform with its defaults.
	platform v1alpha1.PlatformSpec
	// objects are the objects by kind, in the order of the Declaration.
	objects map[string][]manifest.Object
	// first is the first object of each name; any other of that name is refused.
	first map[manifest.ID]manifest.Object

	// granted maps requests to the names of the granted namespaces.
	granted map[grant][]string
	// requestLabels are the labels of TenantNamespaces.
	requestLabels map[request]map[string]string
	// callers are the TenantCallers by namespace. accepted are the decisions about them, which are
	// computed once for each tenant.
	callers  map[string][]*v1alpha1.TenantCaller
	accepted map[*v1alpha1.Tenant]acceptance
	// defaultTemplates are read from the platform once. nil means not yet.
	defaultTemplates []Template

	invalid  map[manifest.Object]bool
	problems document.Problems
	warnings document.Problems
}

func newChecker(d *manifest.Declaration) *checker {
	w := &checker{
		Declaration: d,
		platform:    resolvePlatform(v1alpha1.PlatformSpec{}),
		objects:     map[string][]manifest.Object{},
		first:       map[manifest.ID]manifest.Object{},
		granted:     indexGranted(d),
		invalid:     map[manifest.Object]bool{},

		requestLabels: indexRequestLabels(d),
		callers:       indexCallers(d),
		accepted:      map[*v1alpha1.Tenant]acceptance{},
	}
	if len(d.Platforms) > 0 {
		w.platform = resolvePlatform(d.Platforms[0].Spec)
	}
	for i := range d.Platforms {
		w.addObject(manifest.KindPlatform, d.Platforms[i].Name)
	}
	for i := range d.Networks {
		w.addObject(manifest.KindNetwork, d.Networks[i].Name)
	}
	for i := range d.Pools {
		w.addObject(manifest.KindPool, d.Pools[i].Name)
	}
	for i := range d.Tenants {
		w.addObject(manifest.KindTenant, d.Tenants[i].Name)
	}
	return w
}

func (w *checker) addObject(kind, name string) {
	o := manifest.Object{ID: manifest.ID{Kind: kind, Name: name}, Index: len(w.objects[kind])}
	w.objects[kind] = append(w.objects[kind], o)
	if _, known := w.first[o.ID]; !known {
		w.first[o.ID] = o
	}
}

func (w *checker) isValid(kind string, index int) bool {
	return !w.invalid[w.objects[kind][index]]
}

func (w *checker) hasPlatform() bool {
	return len(w.Platforms) == 1 && w.isValid(manifest.KindPlatform, 0)
}

// explainMissing returns why a reference to an object cannot be used, or "" if it can.
func (w *checker) explainMissing(kind, name string) string {
	id := manifest.ID{Kind: kind, Name: name}
	noun := nouns[kind]
	if o, ok := w.first[id]; ok {
		if w.invalid[o] {
			return fmt.Sprintf("%s %s%s is refused itself; correct that first", noun, name, w.FormatLocation(o))
		}
		return ""
	}
	if where, ok := w.FindRefused(id); ok {
		return fmt.Sprintf("%s %s%s is refused itself; correct that first", noun, name, where)
	}
	if w.IsIncomplete() {
		return ""
	}
	if like, ok := wording.Nearest(name, w.listNames(kind)); ok {
		return fmt.Sprintf("there is no %s %s; did you mean %s?", noun, wording.Text(name), like)
	}
	return fmt.Sprintf("there is no %s %s; declare it, or name another", noun, wording.Text(name))
}

func (w *checker) listNames(kind string) []string {
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

// checkDuplicates refuses all objects of one name except the first.
func checkDuplicates(w *checker) {
	for _, kind := range []string{manifest.KindNetwork, manifest.KindPool, manifest.KindTenant} {
		for _, o := range w.objects[kind] {
			if first := w.first[o.ID]; first.Index != o.Index {
				w.refuse(o, nil, "%s %s is declared twice%s; keep one of them", nouns[kind], o.Name, w.FormatLocation(first))
			}
		}
	}
}

// sortByAge returns the indexes of a list, from the oldest object to the youngest: if two objects
// claim the same, the older one gets it. Objects that were created in the same second are
// ordered by name, since the API server's lists have no defined order. Objects that do not
// exist yet are the youngest, in their order in the file.
func sortByAge[T any, P interface {
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
