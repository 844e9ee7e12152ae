package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

// Progress maps the reasons for which Ready is not True to Reconciling, if time may resolve
// them, or to Stalled, if a person must act. A reason that it does not have is final. If the
// operator cannot know, it is Reconciling: tools stop waiting for objects that are Stalled.
var Progress = map[string]string{
	v1alpha1.ReasonAPIServerBehind:    v1alpha1.ConditionReconciling,
	v1alpha1.ReasonAccountUnreachable: v1alpha1.ConditionReconciling,
	v1alpha1.ReasonApplyFailed:        v1alpha1.ConditionReconciling,
	v1alpha1.ReasonAwaitingApproval:   v1alpha1.ConditionReconciling,
	v1alpha1.ReasonDeleting:           v1alpha1.ConditionReconciling,
	v1alpha1.ReasonLaunchesRefused:    v1alpha1.ConditionReconciling,
	v1alpha1.ReasonNoPlatform:         v1alpha1.ConditionReconciling,
	v1alpha1.ReasonNodePoolNotReady:   v1alpha1.ConditionReconciling,
	v1alpha1.ReasonNotEnforcedYet:     v1alpha1.ConditionReconciling,
	v1alpha1.ReasonPending:            v1alpha1.ConditionReconciling,
	v1alpha1.ReasonSwitchingEngine:    v1alpha1.ConditionReconciling,

	v1alpha1.ReasonEngineMissing:     v1alpha1.ConditionStalled,
	v1alpha1.ReasonEngineUnsafe:      v1alpha1.ConditionStalled,
	v1alpha1.ReasonInUse:             v1alpha1.ConditionStalled,
	v1alpha1.ReasonInterfacesMissing: v1alpha1.ConditionStalled,
	v1alpha1.ReasonInvalid:           v1alpha1.ConditionStalled,
	v1alpha1.ReasonLimitReached:      v1alpha1.ConditionStalled,
	v1alpha1.ReasonNameNotAllowed:    v1alpha1.ConditionStalled,
	v1alpha1.ReasonNameTaken:         v1alpha1.ConditionStalled,
	v1alpha1.ReasonNamespaceNotOwned: v1alpha1.ConditionStalled,
	v1alpha1.ReasonNotAllowed:        v1alpha1.ConditionStalled,
	v1alpha1.ReasonRangeFull:         v1alpha1.ConditionStalled,
	v1alpha1.ReasonRefused:           v1alpha1.ConditionStalled,
	v1alpha1.ReasonRejected:          v1alpha1.ConditionStalled,
}

// SetProgress sets Reconciling or Stalled, or removes both, as Ready requires. stuck reports
// that a person must act although Ready's reason alone does not require that. Call it after the
// last change of Ready.
func SetProgress(s *v1alpha1.Status, generation int64, stuck bool) {
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	progress := ""
	if ready != nil && ready.Status != metav1.ConditionTrue {
		progress = Progress[ready.Reason]
		if stuck {
			progress = v1alpha1.ConditionStalled
		}
	}
	for _, name := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		if name == progress {
			Set(s, generation, name, metav1.ConditionTrue, ready.Reason, ready.Message)
		} else {
			meta.RemoveStatusCondition(&s.Conditions, name)
		}
	}
}
