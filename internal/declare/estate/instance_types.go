package estate

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
)

// kwokType is the format of the instance type names of Karpenter's provider for simulated
// nodes.
var kwokType = regexp.MustCompile(`^[a-z]-\d+x-(amd64|arm64)-(linux|windows)$`)

// awsGroup is the API group of the node classes of Karpenter's provider for AWS.
const awsGroup = "karpenter.k8s.aws"

// checkInstanceTypes warns of instance types that are not in the tables. It refuses none:
// clouds add types, and the tables become outdated.
func checkInstanceTypes(w *checker, p *v1alpha1.Pool) []finding {
	class := resolveClass(&w.platform, p)
	if class.Ref != nil && class.Ref.Group != awsGroup {
		return nil
	}
	at := field.NewPath("spec", "instances")
	all := findUnknownTypes(at.Child("instanceTypes"), p.Spec.Instances.InstanceTypes)
	for i, r := range p.Spec.Instances.Requirements {
		if normalizeLabel(r.Key) == corev1.LabelInstanceTypeStable && r.Operator == corev1.NodeSelectorOpIn {
			all = append(all, findUnknownTypes(at.Child("requirements").Index(i).Child("values"), r.Values)...)
		}
	}
	return all
}

func findUnknownTypes(at *field.Path, types []string) []finding {
	var all []finding
	for i, name := range types {
		family, size, _ := strings.Cut(name, ".")
		if kwokType.MatchString(name) || slices.Contains(strings.Fields(awsSizes[family]), size) {
			continue
		}
		hint := suggestName(name, awsTypes())
		if hint == "" {
			hint = "; look it up in the cloud's list, and ignore this warning if the type is new"
		}
		all = append(all, makeWarning(at.Index(i), "%s: croft does not know this instance type%s", name, hint)...)
	}
	return all
}

// awsTypes returns the names of all known instance types of AWS.
var awsTypes = sync.OnceValue(func() []string {
	var all []string
	for _, family := range slices.Sorted(maps.Keys(awsSizes)) {
		for _, size := range strings.Fields(awsSizes[family]) {
			all = append(all, family+"."+size)
		}
	}
	return all
})
