// Package model tests the operator with random sequences of actions and faults on a real control
// plane. Every version of every object is checked, not only the final state: the watches of one
// etcd share their revisions, so their events have one order.
//
// The seed of a run is printed. A run that fails is repeated with fewer and fewer steps, and the
// shortest sequence that still fails is printed. To repeat a run, and only some of its steps:
//
//	CROFT_TEST_MODEL=1 CROFT_MODEL_SEED=7 CROFT_MODEL_STEPS=0-39,45 go test ./internal/test/model -run TestModel
//
// The generator is not a library's, such as pgregory.net/rapid: these evaluate thousands of
// candidates to shrink a sequence, each of which takes seconds on a control plane, and they expect
// that a sequence that has failed fails again.
//
// TestPlantedBugs shows that the model finds bugs: croft with a planted bug violates the expected family
// of invariants in a fixed course of a few steps.
package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/api/v1alpha1"
)

// step is an action or a fault. All of its details are fixed when it is generated, and it does
// nothing where it is not applicable. So a sequence without some of its steps is valid, too.
type step struct {
	index  int
	action string
	// tenant and other are tenants, and namespace is a namespace that any tenant may declare.
	tenant, other, namespace string
	spec                     v1alpha1.TenantSpec
	// number has another meaning for each action.
	number int
}

// String describes a step in one line.
func (s step) String() string {
	text := fmt.Sprintf("%d: %s", s.index, s.action)
	switch s.action {
	case declareTenant:
		text += fmt.Sprintf(" %s %s", s.tenant, describeSpec(&s.spec))
	case deleteTenant, redeclarePools, deletePods:
		text += " " + s.tenant
	case renameTenant:
		text += fmt.Sprintf(" %s to %s", s.tenant, s.other)
	case adoptNamespace, releaseNamespace:
		text += fmt.Sprintf(" %s, tenant %s", s.namespace, s.tenant)
	case giveNamespace:
		text += fmt.Sprintf(" %s of %s to %s", s.namespace, s.tenant, s.other)
	case deleteNamespace:
		text += " " + s.namespace
	case createPod, createObject:
		text += fmt.Sprintf(" as %s in namespace %d", s.tenant, s.number)
	case freezeController, awaitApplied:
	case editObject:
		text += fmt.Sprintf(" %s in a namespace of %s", edits[s.number%len(edits)].name, s.tenant)
	default:
		text += fmt.Sprintf(" %d", s.number)
	}
	return text
}

func describeSpec(s *v1alpha1.TenantSpec) string {
	var quota []string
	for name, amount := range s.Quota {
		quota = append(quota, string(name)+"="+amount.String())
	}
	slices.Sort(quota)
	return fmt.Sprintf("{pools: %s%v, namespaces: %v, domains: %v, quota: %v, access: %d, deletion: %s}",
		s.Pool, s.Pools, s.Namespaces, s.Domains, quota, len(s.Access), s.Deletion)
}

// The actions of admins, of a tenant's people, and faults.
const (
	declareTenant    = "declare tenant"
	deleteTenant     = "delete tenant"
	renameTenant     = "rename tenant"
	redeclarePools   = "move tenant to other pools"
	adoptNamespace   = "adopt namespace"
	giveNamespace    = "give namespace"
	releaseNamespace = "release namespace"
	deleteNamespace  = "delete namespace"
	editObject       = "edit"

	createPod    = "create pod"
	createObject = "create ConfigMap"
	deletePods   = "delete pods of"

	awaitWrites    = "wait for writes of the operator:"
	killOperator   = "kill and restart operator"
	secondOperator = "suspend the operator, and resume it after writes of another one:"
	conflictStorm  = "refuse writes as conflicts, of each hundred:"
	loseAnswers    = "lose answers to writes, of each hundred:"
	jumpClock      = "move the operator's clock by minutes:"
	restartServer  = "restart the API server"

	// Only fixed courses have these.
	freezeController = "freeze kube-controller-manager until the next comparison"
	awaitIdle        = "wait until the operator has written nothing for seconds:"
	awaitApplied     = "compare with the declared state"
)

// weights are the relative frequencies of actions.
var weights = []struct {
	action string
	weight int
}{
	{declareTenant, 200}, {deleteTenant, 50}, {renameTenant, 40}, {redeclarePools, 50},
	{adoptNamespace, 50}, {giveNamespace, 60}, {releaseNamespace, 50}, {deleteNamespace, 20}, {editObject, 160},
	{createPod, 80}, {createObject, 80}, {deletePods, 30},
	{awaitWrites, 250}, {killOperator, 20}, {secondOperator, 15}, {conflictStorm, 20}, {loseAnswers, 20}, {jumpClock, 20},
	{restartServer, 1},
}

// Small numbers of names, so that tenants often declare the same namespaces and domains.
var (
	tenantNames    = []string{"t0", "t1", "t2", "t3", "t4"}
	poolNames      = []string{"p0", "p1", "p2"}
	namespaceNames = []string{"n0", "n1", "n2", "n3", "n4", "n5"}
	domainNames    = []string{"a.example.com", "*.a.example.com", "x.a.example.com", "b.example.com", "*.b.example.com", "c.example.com"}
)

// generateSteps returns the sequence of a seed. A longer sequence begins with the same steps.
func generateSteps(seed uint64, n int) []step {
	random := rand.New(rand.NewPCG(seed, 40)) //nolint:gosec // a reproducible test
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	steps := make([]step, n)
	for i := range steps {
		drawn, action := random.IntN(total), ""
		for _, w := range weights {
			if drawn -= w.weight; drawn < 0 {
				action = w.action
				break
			}
		}
		steps[i] = step{
			index: i, action: action, tenant: chooseOne(random, tenantNames), other: chooseOne(random, tenantNames),
			namespace: chooseOne(random, namespaceNames), number: random.IntN(60),
		}
		switch action {
		case declareTenant, redeclarePools:
			steps[i].spec = generateSpec(random, steps[i].tenant)
		case jumpClock:
			steps[i].number = random.IntN(2*24*60) - 24*60
		case awaitWrites, secondOperator:
			steps[i].number = 1 + random.IntN(12)
		}
	}
	return steps
}

func chooseOne[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// chooseSome returns up to most of the elements, each at most once.
func chooseSome(random *rand.Rand, from []string, most int) []string {
	some := slices.Clone(from)
	random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	return some[:random.IntN(most+1)]
}

// generateSpec returns a valid spec. It may contradict other tenants' specs: a namespace or a domain
// may be another tenant's. It always has a quota.
func generateSpec(random *rand.Rand, tenant string) v1alpha1.TenantSpec {
	spec := v1alpha1.TenantSpec{
		Domains:  chooseSome(random, domainNames, 2),
		Deletion: chooseOne(random, []v1alpha1.DeletionPolicy{v1alpha1.DeletionRetain, v1alpha1.DeletionDelete}),
		CostCode: chooseOne(random, []string{"", "one", "two"}),
		Quota: corev1.ResourceList{
			"configmaps": resource.MustParse(chooseOne(random, []string{"12", "30", "60"})),
			"pods":       resource.MustParse(chooseOne(random, []string{"6", "20"})),
		},
	}
	if random.IntN(2) == 0 {
		spec.Quota["requests.cpu"] = resource.MustParse(chooseOne(random, []string{"1", "2500m", "7"}))
	}
	if spec.Pools = chooseSome(random, poolNames, len(poolNames)); len(spec.Pools) < 2 {
		spec.Pools, spec.Pool = nil, chooseOne(random, poolNames)
	}
	if random.IntN(3) > 0 {
		spec.Namespaces = append([]string{tenant}, chooseSome(random, namespaceNames, 2)...)
	}
	for i, role := range []v1alpha1.Role{v1alpha1.RoleOperator, v1alpha1.RoleViewer} {
		if random.IntN(4) > 0 {
			spec.Access = append(spec.Access, v1alpha1.Access{Group: fmt.Sprintf("%s-%d", tenant, i), Role: role})
		}
	}
	if random.IntN(3) == 0 {
		spec.Network.Egress = v1alpha1.EgressRestricted
	}
	if random.IntN(3) == 0 {
		spec.Policy.PodSecurity = v1alpha1.PodSecurityRestricted
	}
	return spec
}

// newCourse numbers the steps of a fixed course.
func newCourse(steps ...step) []step {
	for i := range steps {
		steps[i].index = i
	}
	return steps
}

// declareOne returns the declaration of a tenant with one namespace and access. change may be nil.
func declareOne(tenant string, change func(*v1alpha1.TenantSpec)) step {
	spec := v1alpha1.TenantSpec{
		Pool: poolNames[0], Deletion: v1alpha1.DeletionDelete,
		Access: []v1alpha1.Access{{Group: tenant + "-0", Role: v1alpha1.RoleOperator}},
		Quota:  corev1.ResourceList{"configmaps": resource.MustParse("60"), "pods": resource.MustParse("6")},
	}
	if change != nil {
		change(&spec)
	}
	return step{action: declareTenant, tenant: tenant, spec: spec}
}

// selectSteps returns the steps of a selection such as "0-39,45". "" selects all.
func selectSteps(steps []step, selection string) ([]step, error) {
	if selection == "" {
		return steps, nil
	}
	var selected []step
	for _, part := range strings.Split(selection, ",") {
		var from, until int
		if n, _ := fmt.Sscanf(part, "%d-%d", &from, &until); n == 1 {
			until = from
		} else if n != 2 {
			return nil, fmt.Errorf("%q is neither a step nor a range of steps", part)
		}
		if from < 0 || until < from || until >= len(steps) {
			return nil, fmt.Errorf("%s: there are %d steps", part, len(steps))
		}
		selected = append(selected, steps[from:until+1]...)
	}
	return selected, nil
}

// formatSelection is the inverse of selectSteps.
func formatSelection(steps []step) string {
	var parts []string
	for i := 0; i < len(steps); {
		j := i
		for j+1 < len(steps) && steps[j+1].index == steps[j].index+1 {
			j++
		}
		part := fmt.Sprint(steps[i].index)
		if j > i {
			part += fmt.Sprintf("-%d", steps[j].index)
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, ",")
}

// shrinkSequence drops steps as long as the rest still fails, first many at a time. mayContinue
// limits its time.
func shrinkSequence(steps []step, fails func([]step) bool, mayContinue func() bool) []step {
	for size := max(1, len(steps)/2); mayContinue(); {
		dropped := false
		for from := 0; from < len(steps) && mayContinue(); {
			fewer := slices.Concat(steps[:from], steps[min(from+size, len(steps)):])
			if len(fewer) > 0 && fails(fewer) {
				steps, dropped = fewer, true
			} else {
				from += size
			}
		}
		if size == 1 && !dropped {
			break
		}
		size = max(1, size/2)
	}
	return steps
}
