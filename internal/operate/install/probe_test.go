package install_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

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
	judge, err := evaluator.New(append(objects(t, install.Options{}), system))
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
			Namespace: "kube-system", Object: untyped(t, pod), Authorized: true, Stored: test.stored,
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

// TestRevision fails if the operator does not get the version of a namespace that an API
// server evaluates, or if a LimitRange is refused that does not ask for it.
func TestRevision(t *testing.T) {
	shop := &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "shop", ResourceVersion: "41"},
	}
	judge, err := evaluator.New(append(objects(t, install.Options{}), shop))
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
			Namespace: "shop", Object: untyped(t, limits), Authorized: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, d := range answer.Denials {
			said += d.Message
		}
		if test.wantText == "" && said != "" || !strings.Contains(said, test.wantText) {
			t.Errorf("%s, %q: the answer is %q, want %q", test.as, test.prefix, said, test.wantText)
		}
	}
}
