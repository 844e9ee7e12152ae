package quotaplan_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/internal/declare/quotaplan"
)

func newResourceList(name corev1.ResourceName, amount string) corev1.ResourceList {
	if amount == "" {
		return nil
	}
	return corev1.ResourceList{name: resource.MustParse(amount)}
}

// newSpace returns a namespace with a ledger entry, spec.hard, status.hard and status.used. ""
// represents a missing value.
func newSpace(namespace, ledger, spec, hard, used string) quotaplan.Space {
	const name = corev1.ResourcePods
	return quotaplan.Space{
		Namespace: namespace, Share: newResourceList(name, ledger),
		Spec: newResourceList(name, spec), Hard: newResourceList(name, hard), Used: newResourceList(name, used),
	}
}

func markLeaving(s quotaplan.Space) quotaplan.Space {
	s.Leaving = true
	return s
}

func TestPlan(t *testing.T) {
	for _, test := range []struct {
		name   string
		total  string
		spaces []quotaplan.Space
		want   map[string]string
	}{
		{"nothing is seen yet", "10",
			[]quotaplan.Space{newSpace("a", "", "", "", ""), newSpace("b", "", "", "", "")},
			map[string]string{"a": "0", "b": "0"}},
		{"one is seen: the other's part is kept for it", "10",
			[]quotaplan.Space{newSpace("a", "0", "0", "0", "0"), newSpace("b", "0", "0", "", "")},
			map[string]string{"a": "5", "b": "0"}},
		{"all are seen: all of it is given, to the last one", "10",
			[]quotaplan.Space{newSpace("a", "0", "0", "0", "0"), newSpace("b", "0", "0", "0", "0"), newSpace("c", "0", "0", "0", "0")},
			map[string]string{"a": "4", "b": "3", "c": "3"}},
		{"settled", "10",
			[]quotaplan.Space{newSpace("a", "5", "5", "5", "2"), newSpace("b", "5", "5", "5", "1")},
			map[string]string{"a": "5", "b": "5"}},
		{"one runs short: the other shrinks first", "10",
			[]quotaplan.Space{newSpace("a", "5", "5", "5", "4"), newSpace("b", "5", "5", "5", "0")},
			map[string]string{"a": "5", "b": "3"}},
		{"a reduced share is not in force yet", "10",
			[]quotaplan.Space{newSpace("a", "5", "5", "5", "4"), newSpace("b", "3", "3", "5", "0")},
			map[string]string{"a": "5", "b": "3"}},
		{"a reduced share is not written yet", "10",
			[]quotaplan.Space{newSpace("a", "5", "5", "5", "4"), newSpace("b", "3", "5", "5", "0")},
			map[string]string{"a": "5", "b": "3"}},
		{"a reduced share is in force, and granted", "10",
			[]quotaplan.Space{newSpace("a", "5", "5", "5", "4"), newSpace("b", "3", "3", "3", "0")},
			map[string]string{"a": "7", "b": "3"}},
		{"a share used meanwhile is not granted", "10",
			[]quotaplan.Space{newSpace("a", "5", "5", "5", "5"), newSpace("b", "3", "3", "3", "4")},
			map[string]string{"a": "6", "b": "4"}},
		{"a grant that is on its way is left alone", "10",
			[]quotaplan.Space{newSpace("a", "7", "5", "5", "0"), newSpace("b", "3", "3", "3", "3")},
			map[string]string{"a": "7", "b": "3"}},
		{"one namespace becomes two: it shrinks only when the other is there", "10",
			[]quotaplan.Space{newSpace("a", "", "10", "10", "2"), newSpace("b", "", "", "", "")},
			map[string]string{"a": "10", "b": "0"}},
		{"one namespace has become two", "10",
			[]quotaplan.Space{newSpace("a", "10", "10", "10", "2"), newSpace("b", "0", "0", "0", "0")},
			map[string]string{"a": "6", "b": "0"}},
		{"each had the whole", "10",
			[]quotaplan.Space{newSpace("a", "", "10", "10", "2"), newSpace("b", "", "10", "10", "0")},
			map[string]string{"a": "6", "b": "4"}},
		{"one is leaving: what it has stays taken", "10",
			[]quotaplan.Space{newSpace("a", "5", "5", "5", "5"), markLeaving(newSpace("b", "5", "5", "5", "1"))},
			map[string]string{"a": "5", "b": "5"}},
		{"the quota is raised", "20",
			[]quotaplan.Space{newSpace("a", "5", "5", "5", "5"), newSpace("b", "5", "5", "5", "1")},
			map[string]string{"a": "12", "b": "8"}},
		{"the quota is raised by one", "11",
			[]quotaplan.Space{newSpace("a", "5", "5", "5", "5"), newSpace("b", "5", "5", "5", "5")},
			map[string]string{"a": "6", "b": "5"}},
		{"the quota is lowered", "6",
			[]quotaplan.Space{newSpace("a", "5", "5", "5", "3"), newSpace("b", "5", "5", "5", "1")},
			map[string]string{"a": "4", "b": "2"}},
		{"the quota is lowered below what is used", "6",
			[]quotaplan.Space{newSpace("a", "5", "5", "5", "5"), newSpace("b", "5", "5", "5", "4")},
			map[string]string{"a": "3", "b": "2"}},
		{"more is used than the share: others give up theirs", "10",
			[]quotaplan.Space{newSpace("a", "5", "5", "5", "8"), newSpace("b", "5", "5", "5", "0")},
			map[string]string{"a": "5", "b": "1"}},
		{"a resource that is not counted yet gets nothing", "10",
			[]quotaplan.Space{newSpace("a", "0", "0", "", ""), newSpace("b", "0", "0", "0", "")},
			map[string]string{"a": "0", "b": "0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			next := quotaplan.Plan(newResourceList(corev1.ResourcePods, test.total), test.spaces)
			for namespace, want := range test.want {
				if got := next[namespace]; !quotaplan.IsEqual(got, newResourceList(corev1.ResourcePods, want)) {
					t.Errorf("%s gets %v, want %s", namespace, got, want)
				}
			}
			if len(next) != len(test.want) {
				t.Errorf("%d shares, want %d: %v", len(next), len(test.want), next)
			}
		})
	}
}

// TestPlanDropsObsoleteEntries tests a resource that the quota no longer names, and a
// namespace that leaves without having been in the ledger.
func TestPlanDropsObsoleteEntries(t *testing.T) {
	next := quotaplan.Plan(newResourceList(corev1.ResourceServices, "4"), []quotaplan.Space{
		newSpace("a", "5", "5", "5", "0"), markLeaving(newSpace("b", "", "5", "5", "0")),
	})
	if len(next) != 1 || !quotaplan.IsEqual(next["a"], newResourceList(corev1.ResourceServices, "0")) {
		t.Errorf("got %v", next)
	}
}

func TestDivideEvenly(t *testing.T) {
	for _, test := range []struct {
		name, total string
		resource    corev1.ResourceName
		want        []string
	}{
		{"a single one has the whole, as it is written", "1500m", corev1.ResourceRequestsCPU, []string{"1500m"}},
		{"counts are whole", "10", corev1.ResourcePods, []string{"4", "3", "3"}},
		{"fewer than namespaces", "2", corev1.ResourcePods, []string{"1", "1", "0"}},
		{"half an object is none", "2500m", corev1.ResourcePods, []string{"1", "1"}},
		{"CPU is divided further", "1", corev1.ResourceLimitsCPU, []string{"334m", "333m", "333m"}},
		{"memory stays readable", "10Gi", corev1.ResourceRequestsMemory, []string{"3414Mi", "3413Mi", "3413Mi"}},
		{"nothing", "0", corev1.ResourcePods, []string{"0", "0"}},
		{"more than there is", "1E", corev1.ResourceRequestsStorage, []string{"36028797018963968", "36028797018963968"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			namespaces := []string{"a", "b", "c"}[:len(test.want)]
			total := newResourceList(test.resource, test.total)
			shares := quotaplan.DivideEvenly(total, namespaces, nil)
			sum := resource.Quantity{}
			for i, namespace := range namespaces {
				got := shares[namespace][test.resource]
				if got.String() != test.want[i] {
					t.Errorf("%s: %s, want %s", namespace, got.String(), test.want[i])
				}
				sum.Add(got)
			}
			if sum.Cmp(total[test.resource]) > 0 {
				t.Errorf("the shares add up to %s", sum.String())
			}
		})
	}
	if quotaplan.DivideEvenly(corev1.ResourceList{}, []string{"a"}, nil) != nil {
		t.Error("no quota has shares")
	}
}

// BenchmarkPlan measures one evaluation of a tenant's use.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{4, 64} {
		b.Run(fmt.Sprintf("%d namespaces", n), func(b *testing.B) {
			total, spaces := corev1.ResourceList{}, make([]quotaplan.Space, n)
			for i := range spaces {
				spaces[i] = quotaplan.Space{Namespace: fmt.Sprint(i), Share: corev1.ResourceList{}, Used: corev1.ResourceList{}}
				spaces[i].Spec, spaces[i].Hard = spaces[i].Share, spaces[i].Share
			}
			for r := range 20 {
				name := corev1.ResourceName(fmt.Sprintf("count/%d", r))
				total[name] = resource.MustParse("6400")
				for i, s := range spaces {
					s.Share[name], s.Used[name] = *resource.NewQuantity(int64(6400/n), resource.DecimalSI), *resource.NewQuantity(int64(i%8), resource.DecimalSI)
				}
			}
			for b.Loop() {
				quotaplan.Plan(total, spaces)
			}
		})
	}
}

// TestCurrentShares expects a namespace outside of the ledger to start without a share, and an
// entry of the ledger without a namespace of the tenant to be left out.
func TestCurrentShares(t *testing.T) {
	total, given := newResourceList(corev1.ResourcePods, "20"), newResourceList(corev1.ResourcePods, "12")
	shares := quotaplan.CurrentShares(total, []string{"a", "b"}, map[string]corev1.ResourceList{"a": given, "gone": given})
	want := map[string]corev1.ResourceList{"a": given, "b": newResourceList(corev1.ResourcePods, "0")}
	if len(shares) != 2 || !quotaplan.IsEqual(shares["a"], want["a"]) || !quotaplan.IsEqual(shares["b"], want["b"]) {
		t.Errorf("got %v, want %v", shares, want)
	}
}
