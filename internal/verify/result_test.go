package verify

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/internal/attack"
)

// TestJudge holds each way in which an attack can end against what may be said
// of the wall: only the very rule that should refuse, by its own words, holds it.
func TestJudge(t *testing.T) {
	refused := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New(why))
	}
	const denied = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: "
	byPolicy := attack.ByPolicy("p", "tolerations")
	wrong := errors.New("it is not placed")
	for name, c := range map[string]struct {
		attack  attack.Attack
		outcome error
		err     error
		want    Outcome
	}{
		"refused by the rule":           {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, refused(denied + "[tolerations] spec.tolerations: no"), Held},
		"refused by another rule of it": {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, refused(denied + "[node-name] spec.nodeName: no"), BlockedElsewhere},
		"its parameter is missing":      {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, refused(denied + "failed to configure binding: no params found"), BlockedElsewhere},
		"its expression failed":         {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, refused(denied + "expression 'spec.tolerations' failed: no such key"), BlockedElsewhere},
		"refused by RBAC instead":       {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, refused(`User "x" cannot create resource "pods"`), BlockedElsewhere},
		"malformed":                     {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, apierrors.NewBadRequest(denied + "[tolerations] spec.tolerations"), BlockedElsewhere},
		"the network broke":             {attack.Attack{Kind: attack.Breach, StoppedBy: attack.ByRBAC}, nil, errors.New("connection refused"), BlockedElsewhere},
		"no such object":                {attack.Attack{Kind: attack.Breach, StoppedBy: attack.ByRBAC}, nil, apierrors.NewNotFound(schema.GroupResource{}, "x"), BlockedElsewhere},
		"let through":                   {attack.Attack{Kind: attack.Breach, StoppedBy: byPolicy}, nil, nil, Breached},
		"let through, harmless":         {attack.Attack{Kind: attack.Breach, StoppedBy: attack.ByMutation("m")}, nil, nil, Held},
		"let through, not harmless":     {attack.Attack{Kind: attack.Breach, StoppedBy: attack.ByMutation("m")}, wrong, nil, Breached},
		"refused instead of changed":    {attack.Attack{Kind: attack.Breach, StoppedBy: attack.ByMutation("m")}, nil, refused("no"), BlockedElsewhere},
		"a mirror goes through":         {attack.Attack{Kind: attack.Mirror}, nil, nil, Held},
		"a mirror comes out wrong":      {attack.Attack{Kind: attack.Mirror}, wrong, nil, Breached},
		"a mirror is stopped":           {attack.Attack{Kind: attack.Mirror}, nil, refused("no"), Breached},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(c.attack, c.outcome, c.err); got.Result != c.want {
				t.Errorf("%s, want %s: %s", got.Result, c.want, got.Message)
			}
		})
	}
}
