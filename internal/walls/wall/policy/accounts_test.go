package policy

import (
	"slices"
	"testing"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// TestSubjects expects each user and group with access, and each subject of shareWith, once
// and in the format of TenantRules.
func TestSubjects(t *testing.T) {
	shop := &estate.Tenant{
		Access: []v1alpha1.Access{{Group: "oidc:devs", Role: v1alpha1.RoleOperator}, {Group: "oidc:devs", Role: v1alpha1.RoleViewer}, {User: "ann", Role: v1alpha1.RoleViewer}},
		Allowances: v1alpha1.Allowances{ShareWith: []v1alpha1.Sharer{
			{Group: "sre"}, {User: "ann"}, {User: "*"}, {ServiceAccount: "monitoring/prometheus"}, {ServiceAccount: "ci/*"},
		}},
	}
	want := []string{"Group:oidc:devs", "User:ann", "Group:sre", "User:*", "ServiceAccount:monitoring/prometheus", "ServiceAccount:ci/*"}
	if got := listAllowedSubjects(shop); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := listAllowedSubjects(&estate.Tenant{}); got == nil || len(got) > 0 {
		t.Errorf("a tenant without people has %#v, and policies read a list", got)
	}
}
