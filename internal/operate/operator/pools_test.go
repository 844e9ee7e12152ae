package operator_test

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
)

func poolInUse(f *field) {
	jobs, user := pool("jobs"), tenant("user", "jobs")
	f.create(user)
	f.ready(user)
	f.delete(jobs)
	condition := f.condition(jobs, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInUse)
	if !strings.Contains(condition.Message, "user") {
		f.Errorf("the message does not name the tenant: %s", condition.Message)
	}
	f.patch(user, `{"spec":{"pool":"apps"}}`)
	f.ready(user)
	f.gone(jobs)
	f.gone(&karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "jobs"}})
}
