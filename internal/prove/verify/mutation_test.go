package verify_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/test/sandbox"
)

// TestMutants tests the attacks: it removes each rule, right, label and policy of the walls
// once, on a real API server, and some attack must detect it. A part whose removal no attack
// detects is either redundant and to be deleted, or lacks an attack. It prints the score, which
// `make mutants` shows.
func TestMutants(t *testing.T) {
	t.Parallel()
	started := time.Now()
	cluster := startCluster(t)
	// TestWallsHold also tries every attack on a cluster, and compares the evaluator with it.
	l := &lab{t: t, trusts: !sandbox.All()}
	whole := buildProving(t, cluster.Config, "whole", newPlatform("ingress"))
	l.addScene(whole)
	// Without platform services no other policy selects pods for ingress.
	l.addScene(buildProving(t, cluster.Config, "alone", newPlatform()))
	fmt.Printf("all attacks are stopped: %.0f s after the start\n", time.Since(started).Seconds())

	if l.offline == nil {
		l.offline = newOfflineLab(t, l.scenes)
	}
	var findings []finding
	phase := func(what string, found []finding) {
		fmt.Printf("%s: %d mutants, %.0f s after the start\n", what, len(found), time.Since(started).Seconds())
		findings = append(findings, found...)
	}
	platform := whole.listPlatformObjects()
	mutating, validating, deep := l.buildPolicyMutants(platform), l.buildRuleMutants(platform), l.buildDeepMutants(platform)
	validating = slices.DeleteFunc(validating, func(m mutant) bool {
		return slices.ContainsFunc(deep, func(d mutant) bool { return d.name == m.name })
	})
	phase("rights", l.findRightsMutants())
	phase("rights that no request shows", l.runMutants(l.buildPowerMutants()))
	phase("role bindings", l.runMutants(l.buildBindingMutants(whole)))
	phase("network policies", l.runMutants(l.buildNetworkMutants()))
	phase("objects in the tenants' namespaces", l.runMutants(l.buildTenantMutants(whole)))
	phase("policies that change things", l.runMutants(mutating))
	phase("rules behind these", l.runMutants(deep))
	phase("rules and bindings of policies that deny or warn", l.runMutants(validating))
	fmt.Printf("noticed without the cluster: %d of %d mutants\n", l.withoutCluster, len(findings))
	reportFindings(t, findings, time.Since(started))
}

func reportFindings(t *testing.T, findings []finding, took time.Duration) {
	t.Helper()
	noticed := 0
	var unnoticed []string
	for _, f := range findings {
		switch {
		case f.err != nil:
			t.Error(f.err)
		case f.noticedBy != "":
			noticed++
		}
		if f.noticedBy == "" {
			unnoticed = append(unnoticed, f.mutant)
		}
	}
	var b strings.Builder
	grouped := map[string]int{}
	for _, f := range findings {
		if f.group != "" {
			grouped[f.group+" -> "+f.noticedBy]++
			continue
		}
		fmt.Fprintf(&b, "mutant: %s -> %s\n", f.mutant, f.noticedBy)
	}
	for _, group := range slices.Sorted(maps.Keys(grouped)) {
		fmt.Fprintf(&b, "mutants: %d: %s\n", grouped[group], group)
	}
	fmt.Print(b.String())
	percent := 100 * noticed / max(1, len(findings))
	fmt.Printf("mutation score of %s: %d of %d mutants noticed (%d %%) in %.0f s\n", t.Name(), noticed, len(findings), percent, took.Seconds())
	for _, u := range unnoticed {
		t.Errorf("no attack notices: %s", u)
	}
}

// change is a change of one object.
type change struct {
	object client.Object
	// edit changes the live object. If it is nil, the object is deleted.
	edit func(client.Object)
	// added reports whether the change creates the object.
	added bool
}

// mutation is a list of changes that are applied together.
type mutation []change

func buildEdit(o client.Object, edit func(client.Object)) mutation {
	return mutation{{object: o, edit: edit}}
}

func buildDeletion(o client.Object) mutation { return mutation{{object: o}} }

func buildAddition(objects ...client.Object) mutation {
	var m mutation
	for _, o := range objects {
		m = append(m, change{object: o, added: true})
	}
	return m
}
