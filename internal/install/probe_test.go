package install_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"croft.dev/croft/internal/admissionpolicy"
	"croft.dev/croft/internal/evaluator"
	"croft.dev/croft/internal/install"
)

// TestOperatorStoresNoPods wants the operator's pods to be dry runs, and everybody else's to
// be left alone. A dry run that asks for the version of its namespace is told it.
func TestOperatorStoresNoPods(t *testing.T) {
	system := &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "kube-system", ResourceVersion: "41"},
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
		as, prefix string
		stored     bool
		says       string
	}{
		"the operator's dry run": {admissionpolicy.OperatorUser, "croft-probe-", false, ""},
		"the operator's pod":     {admissionpolicy.OperatorUser, "", true, "creates pods in dry runs only"},
		"the operator's pod that asks for a version": {
			admissionpolicy.OperatorUser, install.RevisionProbe, true, "creates pods in dry runs only",
		},
		"the operator's dry run that asks for a version": {
			admissionpolicy.OperatorUser, install.RevisionProbe, false, "41",
		},
		"a Deployment's pod": {"system:serviceaccount:kube-system:replicaset-controller", install.RevisionProbe, true, ""},
	} {
		pod.GenerateName = test.prefix
		answer, err := judge.Judge(t.Context(), evaluator.Request{
			User: &user.DefaultInfo{Name: test.as}, Verb: "create", Resource: corev1.SchemeGroupVersion.WithResource("pods"),
			Namespace: "kube-system", Object: untyped(t, pod), Authorized: true, Stored: test.stored,
		})
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		if len(answer.Denials) > 0 && answer.Denials[0].By == install.ProbesName {
			said = answer.Denials[0].Message
		}
		if test.says == "" && len(answer.Denials) > 0 || !strings.Contains(said, test.says) {
			t.Errorf("%s: denied with %q, not %q: %v", name, said, test.says, answer.Err())
		}
	}
}
