// Package recommend finds changes of croft.yaml that save money, and checks each by a simulation: it
// places the pods that run now on the nodes that the pool would have after the change. It does no I/O.
package recommend

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/objects"
	"croft.dev/croft/internal/cost/price"
)

// Kind is the kind of a change.
type Kind string

// The kinds of changes.
const (
	// IdleNodes removes nodes without pods.
	IdleNodes Kind = "IdleNodes"
	// Consolidation moves pods together onto fewer nodes of a type that the pool has.
	Consolidation Kind = "Consolidation"
	// CapacityType replaces on-demand nodes by spot nodes of the same type.
	CapacityType Kind = "CapacityType"
	// InstanceType replaces the nodes by nodes of a cheaper type.
	InstanceType Kind = "InstanceType"
	// Requests lowers requests that are far above usage.
	Requests Kind = "Requests"
)

// Input is a cluster at one time.
type Input struct {
	objects.Objects
	Pools  []v1alpha1.Pool
	Prices *price.List
	// Usage is the present usage of pods. It is nil if it is unknown, for the reason in UsageProblem.
	Usage        Usage
	UsageProblem string
}

// Usage is the usage of containers, by pod and by the container's name.
type Usage map[types.NamespacedName]map[string]corev1.ResourceList

// Report is the result for a cluster.
type Report struct {
	Currency string `json:"currency"`
	// Recommendations begin with the largest savings.
	Recommendations []Recommendation `json:"recommendations"`
	// MonthlySavings are the savings of all recommendations. It is missing if two of them are for one
	// pool, since at most one of these has its full savings.
	MonthlySavings *money.Amount `json:"monthlySavings,omitempty"`
	// MissingPrices name the prices without which pools are left out.
	MissingPrices []string `json:"missingPrices"`
	// Limits name the pools that are not simulated, and the limits of the simulation.
	Limits []string `json:"limits"`
}

// Recommendation is one change that saves money.
type Recommendation struct {
	Kind Kind   `json:"kind"`
	Pool string `json:"pool"`
	// Tenants are the tenants with pods on the nodes that would change.
	Tenants []string `json:"tenants"`
	Reason  string   `json:"reason"`
	// MonthlySavings are the present cost of the pool's nodes minus their cost in the simulation, for 730 hours.
	MonthlySavings money.Amount `json:"monthlySavings"`
	// Requests are the requests to write to the manifests of workloads.
	Requests []Request `json:"requests,omitempty"`
	// Change is the part of croft.yaml to write. It is empty if only requests change.
	Change string `json:"change,omitempty"`
	// Assumptions are the conditions of the savings that the simulation cannot check.
	Assumptions []string `json:"assumptions"`
	// removed and placed are the nodes before and after the change.
	removed []*node
	placed  []*simulatedNode
}

// minSavings is the minimum part of the cost, in percent, that a change of placed pods must save.
const minSavings = 10

// generalLimits are limits of all recommendations.
var generalLimits = []string{
	"the simulation knows the pods that run now: pods of other times may need more nodes",
}

// Build returns the recommendations for a cluster.
func Build(in Input) *Report {
	c := readCluster(in)
	missing := map[string]bool{}
	r := &Report{Currency: in.Prices.Currency, Recommendations: []Recommendation{}, MissingPrices: []string{},
		Limits: slices.Clone(generalLimits)}
	if in.Usage == nil {
		r.Limits = append(r.Limits, "requests are not compared with usage: "+in.UsageProblem)
	}
	for _, p := range c.pools {
		r.Recommendations = append(r.Recommendations, c.recommendFor(p)...)
		maps.Copy(missing, p.missing)
		for _, limit := range p.limits {
			r.Limits = append(r.Limits, fmt.Sprintf("pool %s: %s", p.Name, limit))
		}
	}
	r.MissingPrices = append(r.MissingPrices, slices.Sorted(maps.Keys(missing))...)
	slices.SortStableFunc(r.Recommendations, func(a, b Recommendation) int {
		return cmp.Or(cmp.Compare(b.MonthlySavings, a.MonthlySavings), strings.Compare(a.Pool, b.Pool))
	})
	r.addUp()
	return r
}

// addUp sets the sum of the savings, unless recommendations exclude each other.
func (r *Report) addUp() {
	var sum money.Amount
	pools := map[string]bool{}
	for i := range r.Recommendations {
		if pools[r.Recommendations[i].Pool] {
			r.Limits = append(r.Limits, "recommendations for one pool exclude each other: their savings do not add up")
			return
		}
		pools[r.Recommendations[i].Pool] = true
		sum += r.Recommendations[i].MonthlySavings
	}
	r.MonthlySavings = &sum
}

// recommendFor returns the recommendations for one pool.
func (c *cluster) recommendFor(p *pool) []Recommendation {
	if len(p.missing) > 0 || p.changing != "" {
		if p.changing != "" {
			p.limits = append(p.limits, p.changing)
		}
		return nil
	}
	all := p.recommendRemoval()
	if len(p.nodes) == 0 {
		return all
	}
	if problem := p.findProblem(c); problem != "" {
		p.limits = append(p.limits, "it is not simulated: "+problem)
		return all
	}
	before := p.sumHourly()
	same := c.findCheapest(p, p.pods, before, func(t *instanceType) bool { return p.types[t.name] })
	all = append(all, p.recommendConsolidation(same)...)
	all = append(all, c.recommendSpot(p)...)
	all = append(all, c.recommendType(p, same)...)
	return append(all, c.recommendRequests(p, same)...)
}

// isWorthwhile reports whether a cost is so far below the other that a change is recommended.
func isWorthwhile(after, before money.Amount) bool {
	return after*100 <= before*(100-minSavings) && after < before
}

// makeRecommendation returns a recommendation that replaces nodes by others.
func (p *pool) makeRecommendation(kind Kind, removed []*node, placed []*simulatedNode) Recommendation {
	r := Recommendation{Kind: kind, Pool: p.Name, Tenants: listTenants(removed), Assumptions: []string{}, removed: removed, placed: placed}
	for _, n := range removed {
		r.MonthlySavings += n.hourly * ledger.HoursPerMonth
	}
	for _, n := range placed {
		r.MonthlySavings -= n.hourly * ledger.HoursPerMonth
	}
	return r
}

func listTenants(nodes []*node) []string {
	tenants := map[string]bool{}
	for _, n := range nodes {
		for _, pod := range n.pods {
			if pod.tenant != "" {
				tenants[pod.tenant] = true
			}
		}
	}
	return append([]string{}, slices.Sorted(maps.Keys(tenants))...)
}
