package selfservice_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// TestNamespaceEnds expects the operator to announce the end of a namespace, to accept a later one, and to
// delete the namespace of a tenant with deletion: Retain after an end at which no operator ran.
func TestNamespaceEnds(t *testing.T) {
	sandbox.Thorough(t)
	s, stop := newSelfService(t)
	defer func() { stop() }()
	s.Patch(s.shop, `{"spec":{"deletion":"Retain"}}`)
	s.AwaitReady(s.shop)

	past := operatortest.NewTenantNamespace("shop", "shop-past")
	past.Spec.Until = &metav1.Time{Time: time.Now().Add(-time.Hour)}
	s.requestNamespace(s.ann, past, v1alpha1.ReasonNotAllowed)

	short := operatortest.NewTenantNamespace("shop", "shop-short")
	short.Spec.Until = &metav1.Time{Time: time.Now().Add(time.Hour)}
	s.AwaitReady(s.requestNamespace(s.ann, short, v1alpha1.ReasonAccepted))
	s.AwaitCondition(short, v1alpha1.ConditionEnding, metav1.ConditionTrue, v1alpha1.ReasonEndsWithinHour)

	s.extendLifetime(short, time.Now().Add(48*time.Hour))
	s.Await("the condition Ending to disappear", func() string {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(short), short); err != nil {
			return err.Error()
		}
		if ending := meta.FindStatusCondition(short.Status.Conditions, v1alpha1.ConditionEnding); ending != nil {
			return ending.Message
		}
		return ""
	})

	stop()
	s.extendLifetime(short, time.Now().Add(-time.Second))
	stop = s.Operate()
	s.AwaitDeletion(short)
	s.AwaitDeletion(operatortest.NewNamespace(short.Name))
}

// extendLifetime writes another end as a member of the team.
func (s *selfService) extendLifetime(r *v1alpha1.TenantNamespace, end time.Time) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"until":%q}}`, end.UTC().Format(time.RFC3339))
	if err := s.ann.Patch(s.Context(), r, client.RawPatch(types.MergePatchType, patch)); err != nil {
		s.Fatal(err)
	}
}
