package operator

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"croft.dev/croft/internal/operate/install"
)

// TestListLacking fails if a missing right is not reported, or an existing one is. Default
// tier.
func TestListLacking(t *testing.T) {
	have := func(verbs, groups, resources, names string) authorizationv1.ResourceRule {
		return authorizationv1.ResourceRule{
			Verbs: strings.Fields(verbs), APIGroups: strings.Split(groups, " "), Resources: strings.Fields(resources), ResourceNames: strings.Fields(names),
		}
	}
	required := []rbacv1.PolicyRule{
		{Verbs: []string{"get", "patch"}, APIGroups: []string{"croft.dev"}, Resources: []string{"tenants", "tenants/status"}},
		{Verbs: []string{"bind"}, APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterroles"}, ResourceNames: []string{"a", "b"}},
	}
	tenants := have("get patch", "croft.dev", "tenants tenants/status", "")
	bind := have("bind", "rbac.authorization.k8s.io", "clusterroles", "a b")
	for name, test := range map[string]struct {
		have []authorizationv1.ResourceRule
		want string
	}{
		"all":            {[]authorizationv1.ResourceRule{tenants, bind}, ""},
		"by wildcards":   {[]authorizationv1.ResourceRule{have("*", "*", "*", "")}, ""},
		"in several":     {[]authorizationv1.ResourceRule{have("get", "croft.dev", "tenants tenants/status", ""), have("patch", "* apps", "tenants tenants/status", ""), bind}, ""},
		"not by name":    {[]authorizationv1.ResourceRule{tenants, have("bind", "rbac.authorization.k8s.io", "clusterroles", "")}, ""},
		"a verb":         {[]authorizationv1.ResourceRule{have("get", "croft.dev", "tenants tenants/status", ""), bind}, "patch tenants.croft.dev, patch tenants/status.croft.dev"},
		"a subresource":  {[]authorizationv1.ResourceRule{have("get patch", "croft.dev", "tenants", ""), bind}, "get tenants/status.croft.dev, patch tenants/status.croft.dev"},
		"a group":        {[]authorizationv1.ResourceRule{have("get patch", "", "tenants tenants/status", ""), tenants, have("bind", "", "clusterroles", "a b")}, "bind clusterroles.rbac.authorization.k8s.io a, bind clusterroles.rbac.authorization.k8s.io b"},
		"a name":         {[]authorizationv1.ResourceRule{tenants, have("bind", "rbac.authorization.k8s.io", "clusterroles", "a")}, "bind clusterroles.rbac.authorization.k8s.io b"},
		"one of an only": {[]authorizationv1.ResourceRule{have("get patch", "croft.dev", "tenants tenants/status", "shop"), bind}, "get tenants.croft.dev, patch tenants.croft.dev, get tenants/status.croft.dev, patch tenants/status.croft.dev"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, right := range listLacking(required, test.have) {
				got = append(got, describeRight(right))
			}
			if text := strings.Join(got, ", "); text != test.want {
				t.Errorf("got %s; want %s", text, test.want)
			}
		})
	}
}

// TestExplainMissing fails if a message about many missing rights is long. Default tier.
func TestExplainMissing(t *testing.T) {
	if err := explainMissing(nil); err != nil {
		t.Error(err)
	}
	err := explainMissing(listLacking(install.Rights()[""], nil))
	if err == nil || !strings.Contains(err.Error(), " more: run croft install") || len(err.Error()) > 300 {
		t.Error(err)
	}
}
