package backstage

import (
	"regexp"
	"strings"
	"testing"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// nameFormat is the format of names in Backstage's catalog.
var nameFormat = regexp.MustCompile(`^[a-zA-Z0-9]+([-_.][a-zA-Z0-9]+)*$`)

func TestList(t *testing.T) {
	tenant := func(name string, access ...v1alpha1.Access) *estate.Tenant {
		return &estate.Tenant{Name: name, Namespaces: []string{name, name + "-dev"}, Access: access}
	}
	e := &estate.Estate{Tenants: []*estate.Tenant{
		tenant("shop", v1alpha1.Access{Group: "oidc:auditors", Role: v1alpha1.RoleViewer}, v1alpha1.Access{Group: "oidc:team/shop", Role: v1alpha1.RoleOperator}),
		tenant("cart", v1alpha1.Access{Group: "oidc:team/shop", Role: "deployer"}),
		tenant("bank", v1alpha1.Access{User: "ann", Role: v1alpha1.RoleOperator}),
		tenant("jobs", v1alpha1.Access{Group: "oidc:", Role: v1alpha1.RoleOperator}),
	}}
	e.Platform.GroupPrefix = "oidc:"
	all, err := List(e, map[string]string{"shop": "#shop"})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, entity := range all {
		if !nameFormat.MatchString(entity.Metadata.Name) || len(entity.Metadata.Name) > 63 {
			t.Errorf("the name %q", entity.Metadata.Name)
		}
		owner, _ := entity.Spec["owner"].(string)
		lines = append(lines, strings.TrimSpace(entity.Kind+" "+entity.Metadata.Name+" "+entity.Metadata.Title+entity.Metadata.Description+" "+owner))
	}
	const want = `Group team-shop team/shop
Group bank bank
Group jobs jobs
System shop #shop group:team-shop
Component shop  group:team-shop
Component shop-dev  group:team-shop
System cart  group:team-shop
Component cart  group:team-shop
Component cart-dev  group:team-shop
System bank  group:bank
Component bank  group:bank
Component bank-dev  group:bank
System jobs  group:jobs
Component jobs  group:jobs
Component jobs-dev  group:jobs`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestSameName(t *testing.T) {
	e := &estate.Estate{Tenants: []*estate.Tenant{
		{Name: "a", Access: []v1alpha1.Access{{Group: "team:a", Role: v1alpha1.RoleOperator}}},
		{Name: "b", Access: []v1alpha1.Access{{Group: "team/a", Role: v1alpha1.RoleOperator}}},
	}}
	if _, err := List(e, nil); err == nil || !strings.Contains(err.Error(), `"team:a" and "team/a"`) {
		t.Errorf("%v", err)
	}
}

func TestFormatName(t *testing.T) {
	for group, want := range map[string]string{
		"team-a": "team-a", "oidc:a b": "oidc-a-b", "ü": "team", strings.Repeat("a", 62) + "-b": strings.Repeat("a", 62),
		"0f3c-11": "0f3c-11", "a.b_c": "a-b-c",
	} {
		if got := formatName(group); got != want {
			t.Errorf("%s: %s, want %s", group, got, want)
		}
	}
}
