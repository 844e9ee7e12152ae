package evaluator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"

	"croft.dev/croft/internal/declare/estate"
)

// The names of the admission plugins that check the resources of a pod's containers.
const (
	LimitRanger   = "LimitRanger"
	ResourceQuota = "ResourceQuota"
)

// listResourceDenials returns the refusals of a new pod by the LimitRanges and ResourceQuotas of
// its namespace, as far as they follow from the pod alone. The usage of a quota is not known.
func (e *Evaluator) listResourceDenials(a admission.Attributes, object *unstructured.Unstructured) []Denial {
	if object == nil || a.GetOperation() != admission.Create || a.GetSubresource() != "" ||
		a.GetResource().GroupResource() != (schema.GroupResource{Resource: "pods"}) {
		return nil
	}
	var pod corev1.Pod
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod) != nil {
		return nil // the API server's own validation refuses it
	}
	containers := slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers)
	var all []Denial
	var broken []error
	for _, l := range e.limits[a.GetNamespace()] {
		for _, item := range l.Spec.Limits {
			if item.Type == corev1.LimitTypeContainer {
				for _, c := range containers {
					broken = append(broken, checkLimits(item, c.Resources)...)
				}
			}
		}
	}
	if err := utilerrors.NewAggregate(broken); err != nil {
		all = append(all, Denial{DeniedBy: LimitRanger, Message: err.Error(), Err: admission.NewForbidden(a, err)})
	}
	for _, q := range e.quotas[a.GetNamespace()] {
		if missing := findUnspecified(q, containers); missing != "" {
			err := errors.New("failed quota: " + q.Name + ": must specify " + missing)
			all = append(all, Denial{DeniedBy: ResourceQuota, Message: err.Error(), Err: admission.NewForbidden(a, err)})
		}
	}
	return all
}

// checkLimits compares a container with the minimum and maximum of a LimitRange, as the
// plugin LimitRanger does. The defaults must already be set.
func checkLimits(item corev1.LimitRangeItem, of corev1.ResourceRequirements) []error {
	var all []error
	for _, name := range slices.Sorted(maps.Keys(item.Min)) {
		all = append(all, checkBound("minimum", name, item.Min[name], "request", of.Requests, of.Limits, -1))
	}
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		all = append(all, checkBound("maximum", name, item.Max[name], "limit", of.Limits, of.Requests, 1))
	}
	return all
}

// checkBound returns an error if the first list lacks the resource, or if either list has a
// quantity beyond the bound in the direction of sign.
func checkBound(bound string, name corev1.ResourceName, enforced resource.Quantity, kind string, first, second corev1.ResourceList, sign int) error {
	other := map[string]string{"request": "limit", "limit": "request"}[kind]
	prefix := fmt.Sprintf("%s %s usage per Container is %s", bound, name, enforced.String())
	value, ok := first[name]
	if !ok {
		return fmt.Errorf("%s.  No %s is specified", prefix, kind)
	}
	if value.Cmp(enforced) == sign {
		return fmt.Errorf("%s, but %s is %s", prefix, kind, value.String())
	}
	if value, ok := second[name]; ok && value.Cmp(enforced) == sign {
		return fmt.Errorf("%s, but %s is %s", prefix, other, value.String())
	}
	return nil
}

// findUnspecified returns the resources that a quota counts and containers do not set.
func findUnspecified(quota *corev1.ResourceQuota, containers []corev1.Container) string {
	var all []string
	for _, name := range estate.Specified {
		if _, counted := quota.Spec.Hard[name]; !counted {
			continue
		}
		of, isLimit := estate.ParseQuotaName(name)
		var lacking []string
		for _, c := range containers {
			list := c.Resources.Requests
			if isLimit {
				list = c.Resources.Limits
			}
			if _, set := list[of]; !set {
				lacking = append(lacking, c.Name)
			}
		}
		if len(lacking) > 0 {
			all = append(all, fmt.Sprintf("%s for: %s", name, strings.Join(lacking, ",")))
		}
	}
	return strings.Join(all, "; ")
}
