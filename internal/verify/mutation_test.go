package verify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/api/v1alpha1"
)

// TestMutants is the proof that the proof works: each rule, right, label and
// policy of the walls is taken away once, on a real API server, and some attack
// must notice. What none notices is either redundant, and to be removed, or lacks
// an attack. It prints the score; `make test` shows it.
func TestMutants(t *testing.T) {
	started := time.Now()
	cluster := start(t)
	open := build(t, cluster.Config, "open", platformWith(v1alpha1.EgressOpen, "ingress"))
	// Everything that an admin can restrict is restricted, so that it can be widened.
	tight := platformWith(v1alpha1.EgressRestricted, "ingress")
	tight.Spec.TenantDefaults.PodSecurity = v1alpha1.PodSecurityRestricted
	tight.Spec.TenantDefaults.Policy = v1alpha1.Allowances{
		Registries: []string{"docker.io/library"}, StorageClasses: []string{"standard"},
		IngressClasses: []string{"nginx"}, GatewayClasses: []string{"shared"},
	}
	restricted := build(t, cluster.Config, "restricted", tight)
	// Without platform services no other policy selects pods for ingress.
	alone := build(t, cluster.Config, "alone", platformWith(v1alpha1.EgressOpen))

	l := newLab(t, open, restricted, alone)
	mutating, validating := l.policyMutants(open.platformObjects())
	var findings []finding
	phase := func(what string, found []finding) {
		t.Logf("%s: %d mutants, %.0f s after the start", what, len(found), time.Since(started).Seconds())
		findings = append(findings, found...)
	}
	phase("rules and bindings of policies that deny", l.run(validating))
	phase("policies that change pods", l.run(mutating))
	var tenants []mutant
	for _, s := range l.scenes {
		tenants = append(tenants, l.tenantMutants(s)...)
	}
	phase("what stands in the tenants' namespaces", l.run(tenants))
	phase("network policies", l.run(l.networkMutants()))
	phase("role bindings", l.run(l.bindingMutants(open)))
	phase("rights that no request shows", l.run(l.powerMutants()))
	phase("rights", l.rightsFindings())
	report(t, findings, time.Since(started))
}

func report(t *testing.T, findings []finding, took time.Duration) {
	t.Helper()
	noticed, width := 0, 0
	var unnoticed []string
	for _, f := range findings {
		width = max(width, len(f.mutant))
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
	for _, f := range findings {
		fmt.Fprintf(&b, "mutant: %-*s  noticed by: %s\n", min(width, 90), f.mutant, f.noticedBy)
	}
	fmt.Print(b.String())
	percent := 100 * noticed / max(1, len(findings))
	fmt.Printf("mutation score: %d of %d mutants noticed (%d %%) in %.0f s\n", noticed, len(findings), percent, took.Seconds())
	for _, u := range unnoticed {
		t.Errorf("no attack notices: %s", u)
	}
}

type mutation = func(context.Context) (undo func(context.Context) error, err error)

// allOf makes several changes as one.
func allOf(each []mutation) mutation {
	return func(ctx context.Context) (func(context.Context) error, error) {
		var undos []func(context.Context) error
		undo := func(ctx context.Context) error {
			var errs []error
			for _, u := range slices.Backward(undos) {
				errs = append(errs, u(ctx))
			}
			return errors.Join(errs...)
		}
		for _, mutate := range each {
			u, err := mutate(ctx)
			if err != nil {
				return nil, errors.Join(err, undo(ctx))
			}
			undos = append(undos, u)
		}
		return undo, nil
	}
}
