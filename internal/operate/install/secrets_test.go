package install_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/operate/install/installtest"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/evaluator"
)

// TestCopierRights fails if the copier has a right on Secrets without names, outside of the namespace of
// sources, or other rights than these, or if an installation without the option has it.
func TestCopierRights(t *testing.T) {
	copies := []estate.SecretCopy{{Name: "registry", Source: "b"}, {Name: "ca", Source: "b"}, {Name: "registry", Source: "a"}}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.SystemNamespace, Name: install.SecretsName}
	for name, test := range map[string]struct {
		copies         []estate.SecretCopy
		names, sources []string
	}{
		"copies": {copies, []string{"croft-none", "ca", "registry"}, []string{"croft-none", "a", "b"}},
		// An empty list would allow all names.
		"no copies": {nil, []string{"croft-none"}, []string{"croft-none"}},
	} {
		all := buildObjects(t, install.Options{Image: "croft:test", CopySecrets: true, Secrets: test.copies})
		rights, problems := installtest.FindGranted(account, all)
		for _, problem := range problems {
			t.Errorf("%s: %s", name, problem)
		}
		var got []string
		for _, right := range rights {
			got = append(got, right.String())
		}
		slices.Sort(got)
		want := []string{
			"create leases.coordination.k8s.io in croft-system", "list namespaces", "list rolebindings.rbac.authorization.k8s.io",
			"list secrets in croft-secrets", "patch leases.coordination.k8s.io in croft-system", "watch namespaces",
			"watch rolebindings.rbac.authorization.k8s.io", "watch secrets in croft-secrets",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: it has the rights %q, want %q", name, got, want)
		}
		found := 0
		for _, o := range all {
			var rules []rbacv1.PolicyRule
			switch o := o.(type) {
			case *rbacv1.Role:
				rules = o.Rules
			case *rbacv1.ClusterRole:
				rules = o.Rules
			}
			for _, rule := range rules {
				if !slices.Contains(rule.Resources, "secrets") {
					continue
				}
				found++
				expected := test.names
				if o.GetNamespace() == v1alpha1.SecretsNamespace {
					expected = test.sources
				}
				if !slices.Equal(rule.ResourceNames, expected) || slices.Contains(rule.Verbs, "get") && o.GetNamespace() == "" {
					t.Errorf("%s: %T %s gives %v on Secrets with the names %v, want %v", name, o, o.GetName(), rule.Verbs, rule.ResourceNames, expected)
				}
			}
		}
		if found != 2 {
			t.Errorf("%s: %d rules on Secrets, want 2", name, found)
		}
	}
	for _, o := range buildObjects(t, install.Options{Image: "croft:test", Secrets: copies}) {
		if strings.HasPrefix(o.GetName(), install.SecretsName) {
			t.Errorf("%T %s without the option", o, o.GetName())
		}
	}
}

// TestCopierWrites fails if the copier can change or delete a Secret that it did not write, write one without
// croft's label or with a token, or if the policy affects other users. A patch that is allowed returns the
// whole Secret.
func TestCopierWrites(t *testing.T) {
	shop := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	judge, err := evaluator.New(append(buildObjects(t, install.Options{Image: "croft:test", CopySecrets: true}), shop))
	if err != nil {
		t.Fatal(err)
	}
	newSecret := func(manager string, kind corev1.SecretType) client.Object {
		s := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "registry"}, Type: kind}
		if manager != "" {
			s.Labels = map[string]string{"a": "b", v1alpha1.ManagedByLabel: manager}
		}
		return s
	}
	marked, own, helms := newSecret("croft", corev1.SecretTypeOpaque), newSecret("", corev1.SecretTypeOpaque), newSecret("Helm", corev1.SecretTypeOpaque)
	token, node := newSecret("croft", corev1.SecretTypeServiceAccountToken), newSecret("croft", "bootstrap.kubernetes.io/token")
	for name, test := range map[string]struct {
		as, verb  string
		old, sent client.Object
		rule      string
	}{
		"a new copy":                      {admissionpolicy.CopierUser, "create", nil, marked, ""},
		"a changed copy":                  {admissionpolicy.CopierUser, "patch", marked, marked, ""},
		"a deleted copy":                  {admissionpolicy.CopierUser, "delete", marked, nil, ""},
		"a new Secret without the label":  {admissionpolicy.CopierUser, "create", nil, own, "marked"},
		"another tool's label":            {admissionpolicy.CopierUser, "create", nil, helms, "marked"},
		"a copy that loses the label":     {admissionpolicy.CopierUser, "patch", marked, own, "marked"},
		"a team's Secret":                 {admissionpolicy.CopierUser, "patch", own, marked, "own-copies"},
		"a patch without a change":        {admissionpolicy.CopierUser, "patch", own, own, "marked"},
		"another tool's Secret":           {admissionpolicy.CopierUser, "update", helms, marked, "own-copies"},
		"a team's Secret that is deleted": {admissionpolicy.CopierUser, "delete", own, nil, "own-copies"},
		"a token of a service account":    {admissionpolicy.CopierUser, "create", nil, token, "no-tokens"},
		"a token of nodes":                {admissionpolicy.CopierUser, "create", nil, node, "no-tokens"},
		"another user":                    {"ann", "patch", own, own, ""},
		"an account of the same name":     {"system:serviceaccount:shop:croft-secrets", "create", nil, token, ""},
	} {
		request := evaluator.Request{
			User: &user.DefaultInfo{Name: test.as}, Verb: test.verb, Resource: corev1.SchemeGroupVersion.WithResource("secrets"),
			Namespace: "shop", Name: "registry", Authorized: true, Stored: true,
		}
		if test.old != nil {
			request.Old = convertToUnstructured(t, test.old)
		}
		if test.sent != nil {
			request.Object = convertToUnstructured(t, test.sent)
		}
		answer, err := judge.Evaluate(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		rule := ""
		for _, d := range answer.Denials {
			if d.DeniedBy == install.SecretsName && rule == "" {
				rule = d.Rule
			}
		}
		if rule != test.rule {
			t.Errorf("%s: refused by the rule %q, want %q: %v", name, rule, test.rule, answer.Denials)
		}
	}
}
