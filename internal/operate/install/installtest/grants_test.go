package installtest_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/operate/install/installtest"
)

var subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "croft-system", Name: "croft"}

func newRule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// newRoles returns a bound ClusterRole with rules, a bound Role, and one that is not bound.
func newRoles(rules ...rbacv1.PolicyRule) []client.Object {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta("", "croft"), Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta("", "croft"), Subjects: []rbacv1.Subject{subject}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "croft"},
		},
		&rbacv1.Role{ObjectMeta: meta("croft-system", "croft"), Rules: []rbacv1.PolicyRule{newRule("coordination.k8s.io", []string{"get"}, "leases")}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta("croft-system", "croft"), Subjects: []rbacv1.Subject{subject}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "croft"},
		},
		&rbacv1.ClusterRole{ObjectMeta: meta("", "other"), Rules: []rbacv1.PolicyRule{newRule("*", []string{"*"}, "*")}},
	}
}

// TestCompare adds rights that are not needed, and refused requests. Default tier.
func TestCompare(t *testing.T) {
	lease := installtest.Request{Namespace: "croft-system", Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Code: 200}
	get := installtest.Request{Namespace: "shop", Verb: "get", Resource: "limitranges", Code: 404}
	apply := installtest.Request{Namespace: "shop", Verb: "patch", Resource: "limitranges", Code: 201}
	needed := newRule("", []string{"get", "create", "patch"}, "limitranges")
	for name, test := range map[string]struct {
		rules    []rbacv1.PolicyRule
		requests []installtest.Request
		excuses  []installtest.Excuse
		want     []string
	}{
		"every right is used":   {[]rbacv1.PolicyRule{needed}, []installtest.Request{lease, get, apply}, nil, nil},
		"a verb that is unused": {[]rbacv1.PolicyRule{needed, newRule("", []string{"delete"}, "limitranges")}, []installtest.Request{lease, get, apply}, nil, []string{"no request used it: delete limitranges"}},
		"a resource that is unused": {
			[]rbacv1.PolicyRule{needed, newRule("apps", []string{"get"}, "deployments", "daemonsets")}, []installtest.Request{lease, get, apply}, nil,
			[]string{"no request used it: get daemonsets.apps", "no request used it: get deployments.apps"},
		},
		"the same resource of another group": {
			[]rbacv1.PolicyRule{needed, newRule("apps", []string{"get"}, "limitranges")}, []installtest.Request{lease, get, apply}, nil,
			[]string{"no request used it: get limitranges.apps"},
		},
		"a subresource is not its resource": {
			[]rbacv1.PolicyRule{needed, newRule("", []string{"patch"}, "limitranges/status")}, []installtest.Request{lease, get, apply}, nil,
			[]string{"no request used it: patch limitranges/status"},
		},
		"an update by apply does not create": {
			[]rbacv1.PolicyRule{needed}, []installtest.Request{lease, get, {Verb: "patch", Resource: "limitranges", Code: 200}}, nil,
			[]string{"no request used it: create limitranges"},
		},
		"a right in one namespace, used in another": {
			[]rbacv1.PolicyRule{needed}, []installtest.Request{{Namespace: "shop", Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Code: 200}, get, apply}, nil,
			[]string{"no request used it: get leases.coordination.k8s.io in croft-system"},
		},
		"a refused request is no use, and is red": {
			[]rbacv1.PolicyRule{needed, newRule("", []string{"list"}, "limitranges")},
			[]installtest.Request{lease, get, apply, {Verb: "list", Resource: "limitranges", Code: 403, Message: "no", Refused: true}}, nil,
			[]string{"no request used it: list limitranges", "refused: list limitranges: no"},
		},
		"an excuse": {
			[]rbacv1.PolicyRule{needed, newRule("", []string{"delete"}, "limitranges")}, []installtest.Request{lease, get, apply},
			[]installtest.Excuse{{Rights: []string{"delete limitranges"}}}, nil,
		},
		"an excuse for a right that is used sometimes": {
			[]rbacv1.PolicyRule{needed}, []installtest.Request{lease, get, apply}, []installtest.Excuse{{Rights: []string{"get limitranges"}, DependsOnTiming: true}}, nil,
		},
		"an excuse for a right that is not given, ever": {
			[]rbacv1.PolicyRule{needed}, []installtest.Request{lease, get, apply}, []installtest.Excuse{{Rights: []string{"get pods"}, DependsOnTiming: true}},
			[]string{"an excuse for a right that is used or not given: get pods"},
		},
		"an excuse for a right that is used": {
			[]rbacv1.PolicyRule{needed}, []installtest.Request{lease, get, apply}, []installtest.Excuse{{Rights: []string{"get limitranges"}}},
			[]string{"an excuse for a right that is used or not given: get limitranges"},
		},
		"an excuse for a right that is not given": {
			[]rbacv1.PolicyRule{needed}, []installtest.Request{lease, get, apply}, []installtest.Excuse{{Rights: []string{"get pods"}}},
			[]string{"an excuse for a right that is used or not given: get pods"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rights, problems := installtest.FindGranted(subject, newRoles(test.rules...))
			if len(problems) > 0 {
				t.Error(problems)
			}
			if got := installtest.Compare(rights, test.requests, test.excuses); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestGranted fails if a wildcard, a right to grant rights without resource names, or a
// right that is granted twice is not reported. Default tier.
func TestGranted(t *testing.T) {
	named := newRule("rbac.authorization.k8s.io", []string{"bind", "escalate"}, "clusterroles")
	named.ResourceNames = []string{"croft-viewer"}
	for name, test := range map[string]struct {
		rule rbacv1.PolicyRule
		want string
	}{
		"in order":          {newRule("", []string{"get"}, "pods"), ""},
		"named":             {named, ""},
		"any verb":          {newRule("", []string{"*"}, "pods"), "a wildcard: * pods"},
		"any group":         {newRule("*", []string{"get"}, "pods"), "a wildcard: get pods.*"},
		"any resource":      {newRule("", []string{"get"}, "*"), "a wildcard: get *"},
		"any role bound":    {newRule("rbac.authorization.k8s.io", []string{"bind"}, "clusterroles"), "without names of what it is limited to: bind clusterroles.rbac.authorization.k8s.io"},
		"any role written":  {newRule("rbac.authorization.k8s.io", []string{"escalate"}, "roles"), "without names of what it is limited to: escalate roles.rbac.authorization.k8s.io"},
		"everybody":         {newRule("", []string{"impersonate"}, "groups"), "without names of what it is limited to: impersonate groups"},
		"twice":             {newRule("", []string{"get", "get"}, "pods"), "granted twice: get pods"},
		"there, everywhere": {newRule("coordination.k8s.io", []string{"get"}, "leases"), "granted twice: get leases.coordination.k8s.io in croft-system"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, problems := installtest.FindGranted(subject, newRoles(test.rule)); strings.Join(problems, "\n") != test.want {
				t.Errorf("got %q, want %q", problems, test.want)
			}
		})
	}
}

// TestRead fails if another user's request is read, or one of the user's is not. Default
// tier.
func TestRead(t *testing.T) {
	log := `{"kind":"Event","verb":"patch","user":{"username":"me"},"objectRef":{"resource":"tenants","subresource":"status","apiGroup":"croft.dev","name":"shop"},"responseStatus":{"code":200}}
{"kind":"Event","verb":"get","user":{"username":"you"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200}}
{"kind":"Event","verb":"get","user":{"username":"you"},"impersonatedUser":{"username":"me"},"objectRef":{"resource":"pods","namespace":"shop"},"responseStatus":{"code":403,"message":"pods is forbidden: User \"me\" cannot get resource"}}
{"kind":"Event","verb":"create","user":{"username":"me"},"objectRef":{"resource":"pods","namespace":"shop"},"responseStatus":{"code":403,"message":"pods \"a\" is forbidden: ValidatingAdmissionPolicy 'croft-pods' denied request"}}
{"kind":"Event","verb":"get","user":{"username":"me"},"impersonatedUser":{"username":"you"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200}}
{"kind":"Event","verb":"get","user":{"username":"me"},"requestURI":"/apis","responseStatus":{"code":200}}
{"kind":"Event","verb":"get","user":{"username":"me"},"objectRef":{"reso`
	got, err := installtest.Read(strings.NewReader(log), "me")
	want := []installtest.Request{
		{Verb: "patch", Group: "croft.dev", Resource: "tenants/status", Name: "shop", Code: 200},
		{Namespace: "shop", Verb: "get", Resource: "pods", Code: 403, Message: `pods is forbidden: User "me" cannot get resource`, Refused: true},
		{Namespace: "shop", Verb: "create", Resource: "pods", Code: 403, Message: `pods "a" is forbidden: ValidatingAdmissionPolicy 'croft-pods' denied request`},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}
