package secretcopy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxProblems and maxReason limit the annotation of the Lease.
	maxProblems, maxReason = 16, 300
)

// Problem is a reason why copies of a Secret are missing or old.
type Problem struct {
	// Source is the name of the Secret in v1alpha1.SecretsNamespace.
	Source string `json:"source"`
	Reason string `json:"reason"`
	// Copies is the number of copies. Example is one of them, as "shop/registry".
	Copies  int    `json:"copies"`
	Example string `json:"example"`
}

// problems are the problems of all copies. It is safe for concurrent use.
type problems struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]*failure
}

// failure is the problem of one copy, and the number of failures in a row.
type failure struct {
	source, reason, copy string
	attempts             int
}

func newProblems() *problems { return &problems{byKey: map[types.NamespacedName]*failure{}} }

func (p *problems) clearProblem(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, key)
}

// recordProblem records the problem of a copy. It returns the number of failures in a row, and whether the reason is
// another one than before.
func (p *problems) recordProblem(key types.NamespacedName, w declaredCopy, reason string) (attempts int, isNew bool) {
	if runes := []rune(reason); len(runes) > maxReason {
		reason = string(runes[:maxReason]) + "…"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.byKey[key]
	if f == nil {
		f = &failure{}
		p.byKey[key] = f
	}
	isNew = f.reason != reason
	f.source, f.reason, f.copy = w.source, reason, w.namespace+"/"+w.name
	f.attempts++
	return f.attempts, isNew
}

// listProblems returns the problems with the most copies first. Copies with the same source and reason are one
// problem.
func (p *problems) listProblems() []Problem {
	p.mu.Lock()
	defer p.mu.Unlock()
	type kind struct{ source, reason string }
	found := map[kind]*Problem{}
	for _, f := range p.byKey {
		at := kind{f.source, f.reason}
		if found[at] == nil {
			found[at] = &Problem{Source: f.source, Reason: f.reason, Example: f.copy}
		}
		found[at].Copies++
		found[at].Example = min(found[at].Example, f.copy)
	}
	var all []Problem
	for _, problem := range found {
		all = append(all, *problem)
	}
	slices.SortFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(b.Copies, a.Copies), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Reason, b.Reason))
	})
	return all
}

// countBySource returns the number of copies with a problem, by the name of the source.
func (p *problems) countBySource() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	copies := map[string]int{}
	for _, f := range p.byKey {
		copies[f.source]++
	}
	return copies
}

// encodeProblems returns the first problems as the value of ProblemsAnnotation.
func (p *problems) encodeProblems() string {
	all := p.listProblems()
	text, err := json.Marshal(all[:min(len(all), maxProblems)])
	if err != nil || len(all) == 0 {
		return "[]"
	}
	return string(text)
}

// ReadProblems returns the problems that a copier has written into its Lease.
func ReadProblems(lease *coordinationv1.Lease) ([]Problem, error) {
	text, ok := lease.Annotations[ProblemsAnnotation]
	if !ok {
		return nil, nil
	}
	var all []Problem
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("annotation %s of the Lease %s: %w", ProblemsAnnotation, lease.Name, err)
	}
	return all, nil
}
