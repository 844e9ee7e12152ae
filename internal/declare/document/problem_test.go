package document

import (
	"errors"
	"testing"
)

func TestProblem(t *testing.T) {
	for want, p := range map[string]Problem{
		"Tenant/shop: spec.pool: m":     {Kind: "Tenant", Name: "shop", Field: "spec.pool", Message: "m"},
		"Tenant/shop: m":                {Kind: "Tenant", Name: "shop", Message: "m"},
		"a.yaml:3: Tenant: m":           {Kind: "Tenant", File: "a.yaml", Line: 3, Message: "m"},
		"a.yaml:3: tenants.shop.x: m":   {Kind: "Tenant", Name: "shop", Field: "spec.x", Path: "tenants.shop.x", File: "a.yaml", Line: 3, Message: "m"},
		"a.yaml: m":                     {File: "a.yaml", Message: "m"},
		`a.yaml: tenants.a\nb: m\nmore`: {File: "a.yaml", Path: "tenants.a\nb", Message: "m\nmore"},
	} {
		if got := p.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if err := (Problems{}).Err(); err != nil {
		t.Errorf("no problems are an error: %v", err)
	}
	var problems Problems
	if err := (Problems{{Message: "a"}, {Message: "b"}}).Err(); !errors.As(err, &problems) || err.Error() != "a\nb" {
		t.Errorf("got %v", err)
	}
}
