package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/rules/attack"
)

// triers is the number of concurrent attacks.
const triers = 8

// Run tries attacks, concurrently if they do not interfere. It passes each result to report at
// once, and returns all results in the order of the attacks. When the context ends, it returns
// early with the results so far.
func (r *Runner) Run(ctx context.Context, attacks []attack.Attack, report func(Result)) ([]Result, error) {
	results := make([]*Result, len(attacks))
	var mu sync.Mutex
	for _, phase := range splitPhases(attacks) {
		var wait sync.WaitGroup
		turns := make(chan struct{}, triers)
		for _, chain := range phase {
			turns <- struct{}{}
			wait.Go(func() {
				defer func() { <-turns }()
				for _, i := range chain {
					if ctx.Err() != nil {
						return
					}
					result := r.Try(ctx, attacks[i])
					if ctx.Err() != nil { // it was interrupted and proves nothing
						return
					}
					mu.Lock()
					results[i] = &result
					if report != nil {
						report(result)
					}
					mu.Unlock()
				}
			})
		}
		wait.Wait()
	}
	var all []Result
	for _, result := range results {
		if result != nil {
			all = append(all, *result)
		}
	}
	return all, ctx.Err()
}

// splitPhases returns the attacks, by index, in phases that run one after the other. A phase
// consists of chains that may run at the same time; the attacks of a chain run one after the
// other. Attacks that prepare a binding come after all attacks that its rights would affect,
// and attacks that RBAC itself must refuse run alone.
func splitPhases(attacks []attack.Attack) [][][]int {
	var plain, mistaken, alone []int
	for i, a := range attacks {
		switch {
		case !slices.ContainsFunc(a.Setup, grantsRights):
			plain = append(plain, i)
		case a.StoppedBy.Name != attack.ByRBAC.Name:
			mistaken = append(mistaken, i)
		default:
			alone = append(alone, i)
		}
	}
	all := [][][]int{buildChains(attacks, plain), buildChains(attacks, mistaken)}
	if len(alone) > 0 {
		all = append(all, [][]int{alone})
	}
	return all
}

// grantsRights reports whether an object gives rights.
func grantsRights(o client.Object) bool {
	kind := o.GetObjectKind().GroupVersionKind()
	return kind.Group == rbacv1.GroupName && strings.HasSuffix(kind.Kind, "Binding")
}

// buildChains puts attacks that prepare or request an object of the same name into one chain.
func buildChains(attacks []attack.Attack, indices []int) [][]int {
	prepared := map[string]bool{}
	for _, i := range indices {
		for _, o := range attacks[i].Setup {
			prepared[formatKey(o)] = true
		}
	}
	chainOf := map[string]int{}
	var all [][]int
	for _, i := range indices {
		var keys []string
		for _, o := range attacks[i].Setup {
			keys = append(keys, formatKey(o))
		}
		if request := attacks[i].Request; request != nil && prepared[formatKey(request.Object)] {
			keys = append(keys, formatKey(request.Object))
		}
		chain := len(all)
		for _, k := range keys {
			if c, ok := chainOf[k]; ok && c < chain {
				chain = c
			}
		}
		if chain == len(all) {
			all = append(all, nil)
		}
		// Chains with a common object become one chain.
		for _, k := range keys {
			if c, ok := chainOf[k]; ok && c != chain {
				all[chain] = append(all[chain], all[c]...)
				all[c] = nil
				for other, current := range chainOf {
					if current == c {
						chainOf[other] = chain
					}
				}
			}
			chainOf[k] = chain
		}
		all[chain] = append(all[chain], i)
	}
	return slices.DeleteFunc(all, func(chain []int) bool { return len(chain) == 0 })
}

func formatKey(o client.Object) string {
	return fmt.Sprintf("%s %s/%s", o.GetObjectKind().GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName())
}
