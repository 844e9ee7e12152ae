package verify_test

import (
	"context"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/test/sandbox"
)

// TestTypeChecks fails if kube-controller-manager, which knows the types of the kinds that a
// policy matches, reports a type error in an expression. Users would find its warnings in the
// policy's status.
func TestTypeChecks(t *testing.T) {
	sandbox.Thorough(t)
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.WithControllers, TypeChecks: true})
	installKinds(t, cluster)
	p := buildProving(t, cluster.Config, "type checks", newPlatform("ingress"))
	if _, err := apply.New(p.admin).Apply(t.Context(), install.PolicyObjects()...); err != nil {
		t.Fatal(err)
	}
	var policies admissionv1.ValidatingAdmissionPolicyList
	var unchecked string
	if err := wait.PollUntilContextTimeout(t.Context(), time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := p.admin.List(ctx, &policies); err != nil {
			return false, err
		}
		for _, policy := range policies.Items {
			if policy.Status.ObservedGeneration != policy.Generation || policy.Status.TypeChecking == nil {
				unchecked = policy.Name
				return false, nil
			}
		}
		return len(policies.Items) > 0, nil
	}); err != nil {
		t.Fatalf("%s is not checked: %v", unchecked, err)
	}
	for _, policy := range policies.Items {
		for _, w := range policy.Status.TypeChecking.ExpressionWarnings {
			if admissionpolicy.IsUntypedWarning(w.Warning) {
				t.Logf("%s, %s: a field without a type", policy.Name, w.FieldRef)
				continue
			}
			t.Errorf("%s, %s: %s", policy.Name, w.FieldRef, w.Warning)
		}
	}
}
