package install_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/evaluator"
)

// TestOperatorStoresNoPods fails if the operator can create a pod without a dry run, or if
// the policy affects other users' pods.
func TestOperatorStoresNoPods(t *testing.T) {
	system := &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "kube-system"},
	}
	judge, err := evaluator.New(append(buildObjects(t, install.Options{}), system))
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "a"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}
	for name, test := range map[string]struct {
		as     string
		stored bool
		by     string
	}{
		"the operator's dry run": {admissionpolicy.OperatorUser, false, ""},
		"the operator's pod":     {admissionpolicy.OperatorUser, true, install.ProbesName},
		"a Deployment's pod":     {"system:serviceaccount:kube-system:replicaset-controller", true, ""},
	} {
		answer, err := judge.Evaluate(t.Context(), evaluator.Request{
			User: &user.DefaultInfo{Name: test.as}, Verb: "create", Resource: corev1.SchemeGroupVersion.WithResource("pods"),
			Namespace: "kube-system", Object: convertToUnstructured(t, pod), Authorized: true, Stored: test.stored,
		})
		if err != nil {
			t.Fatal(err)
		}
		by := ""
		for _, d := range answer.Denials {
			by = d.DeniedBy
		}
		if by != test.by {
			t.Errorf("%s: denied by %q, not %q", name, by, test.by)
		}
	}
}

// TestOperatorConfigMaps fails if the operator can write a ConfigMap other than croft's in a tenant's
// namespace, or if the policy affects other users.
func TestOperatorConfigMaps(t *testing.T) {
	newNamespace := func(name string, labels map[string]string) client.Object {
		return &corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		}
	}
	tenant := map[string]string{v1alpha1.TenantLabel: "shop"}
	judge, err := evaluator.New(append(buildObjects(t, install.Options{}),
		newNamespace("shop", tenant), newNamespace("kube-system", tenant), newNamespace("ingress", map[string]string{"a": "b"}), newNamespace("bare", nil)))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		as, namespace, manager string
		rule                   string
	}{
		"croft's":                      {admissionpolicy.OperatorUser, "shop", "croft", ""},
		"the tenant's":                 {admissionpolicy.OperatorUser, "shop", "", "own-config-maps"},
		"another tool's":               {admissionpolicy.OperatorUser, "shop", "Helm", "own-config-maps"},
		"in a labelled kube-system":    {admissionpolicy.OperatorUser, "kube-system", "croft", "tenant-config-maps"},
		"in a platform's namespace":    {admissionpolicy.OperatorUser, "ingress", "croft", "tenant-config-maps"},
		"in a namespace without label": {admissionpolicy.OperatorUser, "bare", "croft", "tenant-config-maps"},
		"of another user":              {"ann", "kube-system", "", ""},
	} {
		labels := map[string]string{"a": "b"}
		if test.manager != "" {
			labels[v1alpha1.ManagedByLabel] = test.manager
		}
		config := convertToUnstructured(t, &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Name: "a", Labels: labels},
		})
		for _, verb := range []string{"create", "update", "delete"} {
			request := evaluator.Request{
				User: &user.DefaultInfo{Name: test.as}, Verb: verb, Resource: corev1.SchemeGroupVersion.WithResource("configmaps"),
				Namespace: test.namespace, Name: "a", Object: config, Old: config, Authorized: true, Stored: true,
			}
			switch verb {
			case "create":
				request.Old = nil
			case "delete":
				request.Object = nil
			}
			answer, err := judge.Evaluate(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			rule := ""
			for _, d := range answer.Denials {
				if d.DeniedBy == install.ConfigMapsName {
					rule = d.Rule
				}
			}
			if rule != test.rule {
				t.Errorf("%s %s: refused by the rule %q, want %q: %v", verb, name, rule, test.rule, answer.Denials)
			}
		}
	}
}

// TestRevision fails if the operator does not get the version of a namespace that an API
// server evaluates, or if a LimitRange is refused that does not ask for it.
func TestRevision(t *testing.T) {
	shop := &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "shop", ResourceVersion: "41"},
	}
	judge, err := evaluator.New(append(buildObjects(t, install.Options{}), shop))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ as, prefix, wantText string }{
		{admissionpolicy.OperatorUser, install.RevisionProbe, "41"},
		{admissionpolicy.OperatorUser, "", ""},
		{admissionpolicy.OperatorUser, "others-", ""},
		{"jane", install.RevisionProbe, ""},
	} {
		limits := &corev1.LimitRange{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "LimitRange"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "croft", GenerateName: test.prefix},
		}
		answer, err := judge.Evaluate(t.Context(), evaluator.Request{
			User: &user.DefaultInfo{Name: test.as}, Verb: "create", Resource: corev1.SchemeGroupVersion.WithResource("limitranges"),
			Namespace: "shop", Object: convertToUnstructured(t, limits), Authorized: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		message := ""
		for _, d := range answer.Denials {
			message += d.Message
		}
		if test.wantText == "" && message != "" || !strings.Contains(message, test.wantText) {
			t.Errorf("%s, %q: the answer is %q, want %q", test.as, test.prefix, message, test.wantText)
		}
	}
}
