package doctor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/diagnose/doctor"
)

// runDryRuns gathers, sends the dry runs, and returns the result of one check.
func (k *doctorCluster) runDryRuns(t *testing.T, config *rest.Config, check string) doctor.Result {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := doctor.Gather(t.Context(), c, k.version, doctor.Options{Checks: []string{check}})
	if err != nil {
		t.Fatal(err)
	}
	if err := doctor.Try(t.Context(), config, c, seen); err != nil {
		t.Fatal(err)
	}
	return findResult(t, doctor.Check(seen), check)
}

// awaitDryRuns waits until the dry runs have the expected result, since policies take effect after
// a moment.
func (k *doctorCluster) awaitDryRuns(t *testing.T, check string, matches func(doctor.Result) bool) {
	t.Helper()
	var last doctor.Result
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = k.runDryRuns(t, k.box.Config, check)
		return matches(last), nil
	})
	if err != nil {
		t.Fatalf("%v; it finds %q, and could not look at %q", err, formatFindings(last), last.Unreadable)
	}
}

// testKubelets fails if doctor does not report an admission policy that refuses writes of
// kubelets and volume controllers. The walls exist.
func (k *doctorCluster) testKubelets(t *testing.T) {
	clean := func(r doctor.Result) bool { return len(r.Findings) == 0 && len(r.Unreadable) == 0 }
	scope := func(scope admissionv1.ScopeType) {
		t.Helper()
		policy := &admissionv1.ValidatingAdmissionPolicy{}
		if err := k.Get(t.Context(), client.ObjectKey{Name: "croft-finalizers"}, policy); err != nil {
			t.Fatal(err)
		}
		for i := range policy.Spec.MatchConstraints.ResourceRules {
			policy.Spec.MatchConstraints.ResourceRules[i].Scope = &scope
		}
		if err := k.Update(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
	}
	scope(admissionv1.NamespacedScope)
	k.awaitDryRuns(t, "kubelets", clean)
	scope(admissionv1.AllScopes) // the scope that croft-finalizers once had
	k.awaitDryRuns(t, "kubelets", func(r doctor.Result) bool {
		return hasFinding(formatFindings(r), "Problem CSINode/croft-doctor: system:node:croft-doctor may not create it: csinodes") &&
			hasFinding(formatFindings(r), "croft-finalizers") && strings.Contains(r.Findings[0].Fix, "croft's own policy")
	})
	scope(admissionv1.NamespacedScope)
	k.awaitDryRuns(t, "kubelets", clean)

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real"}}
	k.createObjects(t, node)
	k.awaitDryRuns(t, "kubelets", clean)
	k.createObjects(t, newDenyPolicy()...)
	k.awaitDryRuns(t, "kubelets", func(r doctor.Result) bool {
		return !slices.ContainsFunc([]string{"Node/real", "CSINode/real", "Lease/real", "Pod/croft-doctor", "ResourceSlice/croft-doctor", "VolumeAttachment/croft-doctor"}, func(object string) bool {
			return !hasFinding(formatFindings(r), fmt.Sprintf("Problem %s: ", object))
		}) && strings.Contains(r.Findings[0].Fix, "limit the policy")
	})

	as := rest.CopyConfig(k.box.Config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "jane"}
	r := k.runDryRuns(t, as, "kubelets")
	if len(r.Findings) > 0 || !slices.Equal(r.Unreadable, []string{"writes of kubelets: you may not impersonate system:node:croft-doctor, you may not impersonate system:serviceaccount:kube-system:attachdetach-controller"}) {
		t.Errorf("for a caller without the right to impersonate it finds %q, and could not look at %q", formatFindings(r), r.Unreadable)
	}
	if r := k.runDryRuns(t, as, "attacks"); len(r.Findings) > 0 || len(r.Unreadable) == 0 {
		t.Errorf("for a caller who may not read tenants, attacks finds %q, and reports nothing as unread", formatFindings(r))
	}
}

// newDenyPolicy returns a policy that refuses every write of kubelets and volume controllers,
// and its binding.
func newDenyPolicy() []client.Object {
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "strict"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
			}}}},
			Validations: []admissionv1.Validation{{
				Expression: `!request.userInfo.username.startsWith("system:node:") && !request.userInfo.username.startsWith("system:serviceaccount:kube-system:")`,
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "strict"},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "strict", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	return []client.Object{policy, binding}
}
