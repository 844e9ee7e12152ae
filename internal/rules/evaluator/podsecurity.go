package evaluator

import (
	"context"
	"errors"
	"fmt"

	admissionapiv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	podsecurityadmission "k8s.io/pod-security-admission/admission"
	podsecurityconfig "k8s.io/pod-security-admission/admission/api"
	podsecurityapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
	"k8s.io/pod-security-admission/policy"
)

// podSecurity is Kubernetes' Pod Security admission, with the defaults of an unconfigured
// cluster: namespaces set their level by labels.
type podSecurity struct {
	*podsecurityadmission.Admission
}

func newPodSecurity(in namespaces) (podSecurity, error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return podSecurity{}, err
	}
	a := &podsecurityadmission.Admission{
		Configuration: &podsecurityconfig.PodSecurityConfiguration{Defaults: podsecurityconfig.PodSecurityDefaults{
			Enforce: "privileged", EnforceVersion: "latest", Warn: "privileged", WarnVersion: "latest", Audit: "privileged", AuditVersion: "latest",
		}},
		Evaluator: evaluator, Metrics: noMetrics{}, NamespaceGetter: in, PodLister: noPods{},
		PodSpecExtractor: podsecurityadmission.DefaultPodSpecExtractor{},
	}
	return podSecurity{a}, errors.Join(a.CompleteConfiguration(), a.ValidateConfiguration())
}

// evaluate returns the refusals of a request by Pod Security.
func (p podSecurity) evaluate(ctx context.Context, a admission.Attributes) []Denial {
	resource := a.GetResource().GroupResource()
	if a.GetObject() == nil || resource != (schema.GroupResource{Resource: "namespaces"}) && !p.PodSpecExtractor.HasPodSpec(resource) {
		return nil
	}
	response := p.Validate(ctx, &typedAttributes{a})
	for _, w := range response.Warnings {
		warning.AddWarning(ctx, "", w)
	}
	if response.Allowed {
		return nil
	}
	message := "violates PodSecurity"
	if response.Result != nil {
		message = response.Result.Message
	}
	return []Denial{{DeniedBy: "PodSecurity", Message: message, Err: admission.NewForbidden(a, errors.New(message))}}
}

// typedAttributes converts the objects to the types that Pod Security expects.
type typedAttributes struct{ admission.Attributes }

var _ podsecurityapi.Attributes = &typedAttributes{}

func (t *typedAttributes) GetObject() (runtime.Object, error) {
	return convertToTyped(t.Attributes.GetObject())
}
func (t *typedAttributes) GetOldObject() (runtime.Object, error) {
	return convertToTyped(t.Attributes.GetOldObject())
}
func (t *typedAttributes) GetName() string     { return t.Attributes.GetName() }
func (t *typedAttributes) GetUserName() string { return t.GetUserInfo().GetName() }
func (t *typedAttributes) GetOperation() admissionapiv1.Operation {
	return admissionapiv1.Operation(t.Attributes.GetOperation())
}

func convertToTyped(o runtime.Object) (runtime.Object, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o, nil
	}
	to, err := scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, to); err != nil {
		return nil, fmt.Errorf("read a %s: %w", u.GetKind(), err)
	}
	return to, nil
}

// noPods lists no pods: the running pods of a namespace are not known here.
type noPods struct{}

func (noPods) ListPods(context.Context, string) ([]*corev1.Pod, error) { return nil, nil }

// noMetrics records no metrics.
type noMetrics struct{}

func (noMetrics) RecordEvaluation(metrics.Decision, podsecurityapi.LevelVersion, metrics.Mode, podsecurityapi.Attributes) {
}
func (noMetrics) RecordExemption(podsecurityapi.Attributes)   {}
func (noMetrics) RecordError(bool, podsecurityapi.Attributes) {}
