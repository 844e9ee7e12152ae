package verify

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/internal/rules/attack"
)

// TestClassifyAnswer checks the result of each outcome of an attack: the result is Held only
// if the expected rule refuses, with its own message.
func TestClassifyAnswer(t *testing.T) {
	refused := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New(why))
	}
	const denied = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: "
	const warned = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': "
	byPolicy, byWarning := attack.ByPolicy("p", "tolerations"), attack.ByWarning("p", "tolerations")
	noKind := fmt.Errorf("create: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}})
	wrong := errors.New("it is not placed")
	for name, c := range map[string]struct {
		attack   attack.Attack
		outcome  error
		err      error
		want     Outcome
		warnings []string
	}{
		"refused by the rule":           {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, refused(denied + "[tolerations] spec.tolerations: no"), Held, nil},
		"refused by a budget":           {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, refused("ValidatingAdmissionPolicy 'croft-budgets' with binding 'croft-budgets' denied request: [new-pods] no"), NotTried, nil},
		"a mirror beyond the budget":    {attack.Attack{Kind: attack.Mirror}, nil, refused("ValidatingAdmissionPolicy 'croft-budgets' with binding 'croft-budgets' denied request: [new-pods] no"), NotTried, nil},
		"refused by another rule of it": {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, refused(denied + "[node-name] spec.nodeName: no"), BlockedElsewhere, nil},
		"its parameter is missing":      {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, refused(denied + "failed to configure binding: no params found"), BlockedElsewhere, nil},
		"its expression failed":         {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, refused(denied + "expression 'spec.tolerations' failed: no such key"), BlockedElsewhere, nil},
		"refused by RBAC instead":       {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, refused(`User "x" cannot create resource "pods"`), BlockedElsewhere, nil},
		"malformed":                     {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, apierrors.NewBadRequest(denied + "[tolerations] spec.tolerations"), BlockedElsewhere, nil},
		"the network broke":             {attack.Attack{Kind: attack.Breach, StoppedBy: attack.ByRBAC}, nil, errors.New("connection refused"), BlockedElsewhere, nil},
		"no such object":                {attack.Attack{Kind: attack.Breach, StoppedBy: attack.ByRBAC}, nil, apierrors.NewNotFound(schema.GroupResource{}, "x"), BlockedElsewhere, nil},
		"let through":                   {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, nil, Breached, nil},
		"let through, harmless":         {attack.Attack{Kind: attack.Breach, StoppedBy: attack.ByMutation("m")}, nil, nil, Held, nil},
		"let through, not harmless":     {attack.Attack{Kind: attack.Breach, StoppedBy: attack.ByMutation("m")}, wrong, nil, Breached, nil},
		"refused instead of changed":    {attack.Attack{Kind: attack.Breach, StoppedBy: attack.ByMutation("m")}, nil, refused("no"), BlockedElsewhere, nil},
		"a mirror goes through":         {attack.Attack{Kind: attack.Mirror}, nil, nil, Held, nil},
		"a mirror comes out wrong":      {attack.Attack{Kind: attack.Mirror}, wrong, nil, Breached, nil},
		"warned of by the rule":         {attack.Attack{Kind: attack.Breach, StoppedBy: byWarning}, nil, nil, Held, []string{"deprecated", warned + "[tolerations] x"}},
		"warned of by another rule":     {attack.Attack{Kind: attack.Breach, StoppedBy: byWarning}, nil, nil, Breached, []string{warned + "[node-name] x"}},
		"not warned of":                 {attack.Attack{Kind: attack.Breach, StoppedBy: byWarning}, nil, nil, Breached, nil},
		"refused instead of warned of":  {attack.Attack{Kind: attack.Breach, StoppedBy: byWarning}, nil, refused("no"), BlockedElsewhere, nil},
		"the kind is not served":        {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, noKind, NotTried, nil},
		"a mirror's kind is not served": {attack.Attack{Kind: attack.Mirror}, nil, noKind, NotTried, nil},
		"a mirror gets no answer":       {attack.Attack{Kind: attack.Mirror}, nil, errors.New("connection refused"), BlockedElsewhere, nil},
		"a mirror meets a busy server":  {attack.Attack{Kind: attack.Mirror}, nil, apierrors.NewTooManyRequests("busy", 1), BlockedElsewhere, nil},
		"a mirror is stopped":           {attack.Attack{Kind: attack.Mirror}, nil, refused("no"), Breached, nil},
		"others' business, by others":   {attack.Attack{Kind: attack.Mirror, OutsideTenants: true}, nil, refused(denied + "[some-rule] no"), NotTried, nil},
		"others' business, by croft":    {attack.Attack{Kind: attack.Mirror, OutsideTenants: true}, nil, refused("ValidatingAdmissionPolicy 'croft-pods' with binding 'croft-pods' denied request: failed"), Breached, nil},
		"others' business, by croft's constraint": {attack.Attack{Kind: attack.Mirror, OutsideTenants: true}, nil,
			refused(`admission webhook "validation.gatekeeper.sh" denied the request: [croft] [hosts] no`), Breached, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := classifyAnswer(c.attack, answer{err: c.err, outcome: c.outcome, warnings: c.warnings}); got.Result != c.want {
				t.Errorf("%s, want %s: %s", got.Result, c.want, got.Message)
			}
		})
	}
}

// TestBudgetWarnings expects warnings about budgets and prices, which are no walls, to be recognized.
func TestBudgetWarnings(t *testing.T) {
	const text = "Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': [budget] no"
	for policy, want := range map[string]bool{"croft-budget-warnings": true, "croft-price-warnings": true, "croft-pods": false} {
		if got := isCostWarning(fmt.Sprintf(text, policy, policy)); got != want {
			t.Errorf("%s: got %t, want %t", policy, got, want)
		}
	}
}

// TestClassifySweep expects RBAC itself to refuse every request of a sweep.
func TestClassifySweep(t *testing.T) {
	all := []probe{{kind: kind{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}, verb: attack.List},
		{kind: kind{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, subresource: "scale"}, verb: attack.Get}}
	resource := schema.GroupResource{Resource: "pods"}
	refused := apierrors.NewForbidden(resource, "", errors.New(`User "x" cannot list resource "pods"`))
	for name, c := range map[string]struct {
		kind   attack.Kind
		second error
		want   Outcome
	}{
		"all refused":              {attack.Breach, refused, Held},
		"one let through":          {attack.Breach, nil, Breached},
		"one not found":            {attack.Breach, apierrors.NewNotFound(resource, "x"), Breached},
		"one invalid":              {attack.Breach, apierrors.NewBadRequest("no body"), Breached},
		"one refused by another":   {attack.Breach, apierrors.NewForbidden(resource, "x", errors.New("policy")), Breached},
		"one not answered":         {attack.Breach, errors.New("connection refused"), BlockedElsewhere},
		"one too many":             {attack.Breach, apierrors.NewTooManyRequests("busy", 1), BlockedElsewhere},
		"a mirror's second passes": {attack.Mirror, nil, Breached},
	} {
		t.Run(name, func(t *testing.T) {
			got := classifySweep(attack.Attack{Kind: c.kind, StoppedBy: attack.ByRBAC}, all, []error{refused, c.second})
			if got.Result != c.want || got.Variants != 2 {
				t.Errorf("%s of %d, want %s: %s", got.Result, got.Variants, c.want, got.Message)
			}
			if c.kind == attack.Breach && c.want == Breached && (len(got.Breaches) != 1 || got.Breaches[0] != "get deployments.apps/scale") {
				t.Errorf("the breaches are %v", got.Breaches)
			}
		})
	}
	if got := classifySweep(attack.Attack{Kind: attack.Mirror}, all, []error{nil, apierrors.NewNotFound(resource, "x")}); got.Result != Held {
		t.Errorf("a mirror that nothing refused: %s: %s", got.Result, got.Message)
	}
}
