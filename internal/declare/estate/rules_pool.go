package estate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

func checkPoolNetworks(w *checker, p *v1alpha1.Pool) []finding {
	var all []finding
	for i, name := range p.Spec.SecondaryNetworks {
		if why := w.explainMissing(manifest.KindNetwork, name); why != "" {
			all = append(all, makeFinding(field.NewPath("spec", "secondaryNetworks").Index(i), "%s", why)...)
		}
	}
	return all
}

// checkDurations refuses durations that are well-formed, but longer than the 292 years that a
// time.Duration can represent.
func checkDurations(_ *checker, p *v1alpha1.Pool) []finding {
	spec := field.NewPath("spec")
	all := slices.Concat(
		checkDuration(spec.Child("emptyTTL"), p.Spec.EmptyTTL),
		checkDuration(spec.Child("ttl"), p.Spec.TTL),
		checkDuration(spec.Child("terminationGracePeriod"), p.Spec.TerminationGracePeriod),
	)
	for i, b := range p.Spec.Budgets {
		all = append(all, checkDuration(spec.Child("budgets").Index(i).Child("duration"), v1alpha1.Duration(b.Duration))...)
	}
	return all
}

func checkDuration(at *field.Path, span v1alpha1.Duration) []finding {
	if span == "" || span == v1alpha1.Never {
		return nil
	}
	if _, err := time.ParseDuration(string(span)); err != nil {
		return makeFinding(at, "%s is too long; write a shorter time", span)
	}
	return nil
}

// checkRequirementKeys refuses requirements on labels that croft or Karpenter sets itself, and
// requirements that no label can meet.
func checkRequirementKeys(w *checker, p *v1alpha1.Pool) []finding {
	var all []finding
	for i, r := range p.Spec.Instances.Requirements {
		at := field.NewPath("spec", "instances", "requirements").Index(i)
		switch owner := w.findKeyOwner(r.Key); {
		case owner != "":
			all = append(all, makeFinding(at.Child("key"), "the label %s is reserved for %s; leave this requirement out", r.Key, owner)...)
		case !isLabel(r.Key):
			all = append(all, makeFinding(at.Child("key"), "%q is not a label; write one such as karpenter.k8s.aws/instance-family", r.Key)...)
		}
		if exceedsInteger(&r) {
			all = append(all, makeFinding(at.Child("values").Index(0), "%s is too large; write a smaller number", r.Values[0])...)
		}
		for j, v := range r.Values {
			if len(validation.IsValidLabelValue(v)) > 0 {
				all = append(all, makeFinding(at.Child("values").Index(j),
					"%q cannot be the value of a label; write letters, digits, '-', '_' and '.', beginning and ending with a letter or digit", v)...)
			}
		}
		if r.Operator == corev1.NodeSelectorOpIn && r.MinValues != nil && len(r.Values) < *r.MinValues {
			all = append(all, makeFinding(at.Child("minValues"), "requires %d values, but only %d are given; lower it, or add values", *r.MinValues, len(r.Values))...)
		}
	}
	return all
}

// checkPoolTags refuses tags whose key has another meaning. In clouds without tags they become
// annotations, and must be valid as such.
func checkPoolTags(w *checker, p *v1alpha1.Pool) []finding {
	var all []finding
	annotations := resolveClass(&w.platform, p).AWS == nil
	for _, key := range slices.Sorted(maps.Keys(p.Spec.Tags)) {
		at := field.NewPath("spec", "tags").Key(key)
		why := explainInvalidTag(&w.platform, key, p.Spec.Tags[key])
		switch {
		case why != "" && (!annotations || findTagOwner(&w.platform, key) != ""):
			all = append(all, makeFinding(at, "%s", why)...)
		case annotations && len(validation.IsQualifiedName(v1alpha1.TagAnnotationPrefix+key)) > 0:
			all = append(all, makeFinding(at, "%q cannot be kept on nodes without a cloud; write at most 63 letters, digits, '-', '_' and '.'", key)...)
		}
	}
	return all
}

func checkPoolLimits(_ *checker, p *v1alpha1.Pool) []finding {
	return checkAmounts(field.NewPath("spec", "limits"), p.Spec.Limits)
}

// findKeyOwner returns the owner of a label that users cannot set, or "". No requirement can
// select among values that are set later.
func findKeyOwner(key string) string {
	domain := "." + karpenterv1.GetLabelDomain(key)
	switch {
	case strings.HasSuffix(domain, "."+v1alpha1.GroupVersion.Group):
		return "croft"
	case key == corev1.LabelHostname:
		return "Kubernetes"
	case key == karpenterv1.NodePoolLabelKey || karpenterv1.IsRestrictedLabel(normalizeLabel(key)) != nil:
		return "Karpenter"
	}
	return ""
}

func (w *checker) findKeyOwner(key string) string {
	switch {
	case key == w.platform.NodePoolKey:
		return "croft"
	case hasKarpenterDomain(key):
		return "Karpenter"
	}
	return findKeyOwner(key)
}

// cloudTags are prefixes of tags that Karpenter's AWS provider refuses, because they associate
// an instance with its cluster.
var cloudTags = []string{"kubernetes.io/cluster", "karpenter.k8s.aws/", "eks:"}

// findTagOwner returns the owner of a tag that users cannot set, or "".
func findTagOwner(p *v1alpha1.PlatformSpec, key string) string {
	if key == p.NodePoolKey {
		return "croft"
	}
	return cmp.Or(findCloudTagOwner(key), findKeyOwner(key))
}

func findCloudTagOwner(key string) string {
	for _, prefix := range cloudTags {
		if strings.HasPrefix(key, prefix) {
			return "the cluster"
		}
	}
	return ""
}

// normalizeLabel returns the current name of a label for which Karpenter accepts an older name.
func normalizeLabel(key string) string {
	if now, ok := karpenterv1.NormalizedLabels[key]; ok {
		return now
	}
	return key
}
