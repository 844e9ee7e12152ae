package estate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/budget"
	"croft.dev/croft/internal/declare/quotaplan"
)

// Tenant is a Tenant with every default and every derived grant set.
type Tenant struct {
	Name string
	// Pools are the pools that pods may run on, with the default pool first. Never empty.
	Pools []string
	// Namespaces are never empty: the declared ones in their order, then Requested, sorted.
	Namespaces []string
	// Requested maps each namespace that the tenant requested to the namespace of its
	// TenantNamespace.
	Requested map[string]string
	// NamespaceLabels and NamespaceAnnotations are set on all namespaces, in addition to croft's own.
	NamespaceLabels, NamespaceAnnotations map[string]string
	// Choose are the values of labels that the team may choose for requested namespaces, by key.
	// ChosenLabels are the labels that it has chosen, by namespace.
	Choose       map[string]v1alpha1.LabelValues
	ChosenLabels map[string]map[string]string
	// Objects are the manifests of objects that exist in every namespace, sorted by kind and name.
	Objects []Template
	// Secrets are the copies of the platform's Secrets that exist in every namespace, sorted by name.
	Secrets []SecretCopy
	// MayRequest is the maximum number of requested namespaces. MaxLifetime is the maximum time from
	// a request to the end of its namespace, or 0 without a limit.
	MayRequest  int
	MaxLifetime time.Duration
	// Access has the groups with the Platform's prefix. It does not contain access that has
	// ended.
	Access []v1alpha1.Access
	// Domains are all hosts that the tenant may serve, exact or "*.", starting with the derived
	// ones.
	Domains []string
	// Quota applies to all namespaces together. If it is empty, nothing is counted.
	Quota corev1.ResourceList
	// Minimums maps namespaces to the shares that are reserved for them.
	Minimums map[string]corev1.ResourceList
	// Shares divides the quota among the namespaces: evenly apart from minimums, unless the
	// caller sets other shares.
	Shares map[string]corev1.ResourceList
	Limits *v1alpha1.ContainerLimits
	Egress v1alpha1.Egress
	// AllowCIDRs are additional destinations of restricted egress.
	AllowCIDRs []string
	// Connections are the connections with other tenants to which both have agreed, and which
	// have not ended. Pending are the reasons why the tenant's other consents open none.
	Connections []Connection
	Pending     []string
	// Consents are the UIDs of the Tenants to which the tenant has consented, by name. It is empty
	// for objects that were not read from an API server.
	Consents map[string]string
	// Callers are the decisions about the TenantCallers in the tenant's namespaces, from the oldest to
	// the youngest.
	Callers []CallerDecision
	// Networks are the secondary networks to which pods may be attached, in the order in which
	// they were granted.
	Networks    []Network
	PodSecurity v1alpha1.PodSecurityLevel
	// Allowances has every field set: lists are never nil.
	Allowances v1alpha1.Allowances
	// Sources are the tenant's sources for Flux or Argo CD, sorted by name.
	Sources  []Source
	CostCode string
	// Freeze is nil if the tenant is not frozen, or no longer.
	Freeze *v1alpha1.Freeze
	// FreezeChange is the time at which the freeze ends, or the next one begins, or the zero time.
	FreezeChange metav1.Time
	// FreezeNotice describes the freeze in a line for the tenant's people.
	FreezeNotice string
	// Budget is the tenant's budget for a month, or nil. BudgetStage is the stage in force, by the
	// Tenant's status, and BudgetText a sentence with its figures; both are empty below the first stage.
	Budget      *v1alpha1.TenantBudget
	BudgetStage v1alpha1.BudgetStage
	BudgetText  string
	// PriceText has the figures for warnings with the price of a workload, or is empty: see describePrices.
	PriceText string
	Deletion  v1alpha1.DeletionPolicy
}

func resolveTenant(platform *Platform, t *v1alpha1.Tenant, requested map[string]string, now time.Time) *Tenant {
	defaults := &platform.TenantDefaults
	namespaces := slices.Concat(listNamespaces(t), slices.Sorted(maps.Keys(requested)))
	quota := resolveQuota(&platform.PlatformSpec, t)
	freeze, notice, freezeChange := resolveFreeze(t, now)
	limit := budget.Resolve(defaults.Budget, t.Spec.Budget)
	var stage v1alpha1.BudgetStage
	var text string
	if limit != nil {
		stage, text = budget.Describe(t.Name, t.Spec.Contact, t.Status.Budget)
	}
	return &Tenant{
		Name:        t.Name,
		Pools:       listPools(t),
		Namespaces:  namespaces,
		Requested:   requested,
		MayRequest:  int(t.Spec.SelfService.Namespaces),
		Access:      prefixGroups(platform.GroupPrefix, filterCurrentAccess(t.Spec.Access, now)),
		Domains:     listDomains(platform.TenantDomain, t),
		Quota:       quota,
		Minimums:    t.Spec.QuotaMinimums,
		Shares:      quotaplan.DivideEvenly(quota, namespaces, t.Spec.QuotaMinimums),
		Limits:      resolveLimits(defaults, t),
		Egress:      cmp.Or(t.Spec.Network.Egress, defaults.Egress),
		AllowCIDRs:  t.Spec.Network.AllowCIDRs,
		PodSecurity: cmp.Or(t.Spec.Policy.PodSecurity, defaults.PodSecurity),
		Allowances:  mergeAllowances(&defaults.Policy, &t.Spec.Policy.Allowances),
		Sources:     listSources(t),
		Secrets:     resolveSecrets(defaults.Secrets, t.Spec.Secrets),
		CostCode:    t.Spec.CostCode,
		Budget:      limit,
		BudgetStage: stage,
		BudgetText:  text,
		PriceText:   describePrices(platform, t, limit),
		Deletion:    cmp.Or(t.Spec.Deletion, v1alpha1.DeletionRetain),

		MaxLifetime:  t.Spec.SelfService.GetMaxLifetime(),
		Freeze:       freeze,
		FreezeNotice: notice,
		FreezeChange: metav1.NewTime(freezeChange),

		NamespaceLabels:      mergeMetadata(defaults.Namespace.Labels, t.Spec.Namespace.Labels, t.Name),
		NamespaceAnnotations: mergeMetadata(defaults.Namespace.Annotations, t.Spec.Namespace.Annotations, t.Name),
		Choose:               mergeChoices(defaults.Namespace.Choose, t.Spec.Namespace.Choose),
	}
}

// Declares reports whether the tenant declares a namespace, as opposed to requesting it.
func (t *Tenant) Declares(namespace string) bool {
	_, requested := t.Requested[namespace]
	return !requested && slices.Contains(t.Namespaces, namespace)
}

func listPools(t *v1alpha1.Tenant) []string {
	if len(t.Spec.Pools) > 0 {
		return t.Spec.Pools
	}
	return []string{t.Spec.Pool}
}

func listNamespaces(t *v1alpha1.Tenant) []string {
	if len(t.Spec.Namespaces) > 0 {
		return t.Spec.Namespaces
	}
	return []string{t.Name}
}

// filterCurrentAccess returns the access that has not ended.
func filterCurrentAccess(access []v1alpha1.Access, now time.Time) []v1alpha1.Access {
	ended := func(a v1alpha1.Access) bool { return a.Ended(now) }
	if !slices.ContainsFunc(access, ended) {
		return access
	}
	return slices.DeleteFunc(slices.Clone(access), ended)
}

func prefixGroups(prefix string, access []v1alpha1.Access) []v1alpha1.Access {
	if prefix == "" {
		return access
	}
	all := slices.Clone(access)
	for i := range all {
		if all[i].Group != "" {
			all[i].Group = prefix + all[i].Group
		}
	}
	return all
}

// listDomains returns all domains that the tenant may serve, starting with those derived from its
// name.
func listDomains(tenantDomain string, t *v1alpha1.Tenant) []string {
	if tenantDomain == "" {
		return t.Spec.Domains
	}
	own := t.Name + "." + tenantDomain
	all := []string{own, "*." + own}
	for _, d := range t.Spec.Domains {
		if !slices.Contains(all[:2], d) {
			all = append(all, d)
		}
	}
	return all
}

// resolveQuota returns the tenant's effective quota. An empty quota of the tenant removes the
// platform's or croft's default; a missing one does not.
func resolveQuota(platform *v1alpha1.PlatformSpec, t *v1alpha1.Tenant) corev1.ResourceList {
	switch {
	case t.Spec.Quota != nil:
		return t.Spec.Quota
	case platform.TenantDefaults.Quota != nil:
		return platform.TenantDefaults.Quota
	default:
		return BuiltinQuota(platform)
	}
}

func resolveLimits(defaults *v1alpha1.TenantDefaults, t *v1alpha1.Tenant) *v1alpha1.ContainerLimits {
	switch {
	case t.Spec.Limits != nil:
		return t.Spec.Limits
	case defaults.Limits != nil:
		return defaults.Limits
	default:
		return BuiltinLimits()
	}
}

// describePrices returns the figures with which a policy computes the price of a workload: the label of nodes that selects
// a pool, the default pool, the requests of a container without any, and the text of budget.DescribePrices. It
// returns "" without prices, or if the tenant's people get none.
func describePrices(platform *Platform, t *v1alpha1.Tenant, limit *v1alpha1.TenantBudget) string {
	if limit == nil || !limit.PriceInResponse {
		return ""
	}
	prices := budget.DescribePrices(t.Status.Budget)
	if prices == "" {
		return ""
	}
	limits := resolveLimits(&platform.TenantDefaults, t)
	return strings.Join([]string{platform.NodePoolKey, listPools(t)[0],
		getDefaultRequest(limits, corev1.ResourceCPU), getDefaultRequest(limits, corev1.ResourceMemory), prices}, ";")
}

// getDefaultRequest returns the request that the API server sets on a container without requests and limits, by
// the LimitRange of its namespace.
func getDefaultRequest(limits *v1alpha1.ContainerLimits, name corev1.ResourceName) string {
	for _, list := range []corev1.ResourceList{limits.DefaultRequest, limits.Default, limits.Max, limits.Min} {
		if quantity, ok := list[name]; ok {
			return quantity.String()
		}
	}
	return "0"
}

// BuiltinLimits returns the limits that apply if neither the tenant nor the platform sets any:
// a container without requests counts as a tenth of a CPU and 128Mi. There are no default
// limits: with these the API server would refuse every container that requests more than the
// default limit and sets no limit, as many charts do; and containers that use more memory than
// they requested are evicted first anyway.
func BuiltinLimits() *v1alpha1.ContainerLimits {
	return &v1alpha1.ContainerLimits{
		DefaultRequest: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(100, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(128<<20, resource.BinarySI),
		},
	}
}
