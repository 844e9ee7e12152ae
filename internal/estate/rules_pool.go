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
	"croft.dev/croft/internal/manifest"
)

func networksExist(w *whole, p *v1alpha1.Pool) []finding {
	var all []finding
	for i, name := range p.Spec.SecondaryNetworks {
		if why := w.missing(manifest.KindNetwork, name); why != "" {
			all = append(all, found(field.NewPath("spec", "secondaryNetworks").Index(i), "%s", why)...)
		}
	}
	return all
}

// durationsEnd refuses durations that are well-formed, but longer than the 292 years that a
// time.Duration can represent.
func durationsEnd(_ *whole, p *v1alpha1.Pool) []finding {
	spec := field.NewPath("spec")
	all := slices.Concat(
		ends(spec.Child("emptyTTL"), p.Spec.EmptyTTL),
		ends(spec.Child("ttl"), p.Spec.TTL),
		ends(spec.Child("terminationGracePeriod"), p.Spec.TerminationGracePeriod),
	)
	for i, b := range p.Spec.Budgets {
		all = append(all, ends(spec.Child("budgets").Index(i).Child("duration"), v1alpha1.Duration(b.Duration))...)
	}
	return all
}

func ends(at *field.Path, span v1alpha1.Duration) []finding {
	if span == "" || span == v1alpha1.Never {
		return nil
	}
	if _, err := time.ParseDuration(string(span)); err != nil {
		return found(at, "%s is longer than can be counted; write a shorter time", span)
	}
	return nil
}

// keysAreFree refuses requirements on labels that croft or Karpenter sets itself, and
// requirements that no label can meet.
func keysAreFree(w *whole, p *v1alpha1.Pool) []finding {
	var all []finding
	for i, r := range p.Spec.Instances.Requirements {
		at := field.NewPath("spec", "instances", "requirements").Index(i)
		switch owner := w.ownerOfKey(r.Key); {
		case owner != "":
			all = append(all, found(at.Child("key"), "the label %s is %s's to set; leave this requirement out", r.Key, owner)...)
		case !isLabel(r.Key):
			all = append(all, found(at.Child("key"), "%q is no label; write one such as karpenter.k8s.aws/instance-family", r.Key)...)
		}
		if isBeyondCounting(&r) {
			all = append(all, found(at.Child("values").Index(0), "%s is more than can be counted; write a smaller number", r.Values[0])...)
		}
		for j, v := range r.Values {
			if len(validation.IsValidLabelValue(v)) > 0 {
				all = append(all, found(at.Child("values").Index(j),
					"%q cannot be the value of a label; write letters, digits, '-', '_' and '.', beginning and ending with a letter or digit", v)...)
			}
		}
		if r.Operator == corev1.NodeSelectorOpIn && r.MinValues != nil && len(r.Values) < *r.MinValues {
			all = append(all, found(at.Child("minValues"), "asks for %d values, but only %d are given; lower it, or add values", *r.MinValues, len(r.Values))...)
		}
	}
	return all
}

// tagsFitNodes refuses tags whose key has another meaning. In clouds without tags they become
// annotations, and must be valid as such.
func tagsFitNodes(w *whole, p *v1alpha1.Pool) []finding {
	var all []finding
	annotations := classOf(&w.platform, p).AWS == nil
	for _, key := range slices.Sorted(maps.Keys(p.Spec.Tags)) {
		at := field.NewPath("spec", "tags").Key(key)
		why := whyNoTag(&w.platform, key, p.Spec.Tags[key])
		switch {
		case why != "" && (!annotations || tagOwner(&w.platform, key) != ""):
			all = append(all, found(at, "%s", why)...)
		case annotations && len(validation.IsQualifiedName(v1alpha1.TagAnnotationPrefix+key)) > 0:
			all = append(all, found(at, "%q cannot be kept on nodes without a cloud; write at most 63 letters, digits, '-', '_' and '.'", key)...)
		}
	}
	return all
}

func limitsAreAmounts(_ *whole, p *v1alpha1.Pool) []finding {
	return amounts(field.NewPath("spec", "limits"), p.Spec.Limits)
}

// ownerOfKey returns the owner of a label that users cannot set, or "". No requirement can
// select among values that are set later.
func ownerOfKey(key string) string {
	domain := "." + karpenterv1.GetLabelDomain(key)
	switch {
	case strings.HasSuffix(domain, "."+v1alpha1.GroupVersion.Group):
		return "croft"
	case key == corev1.LabelHostname:
		return "Kubernetes"
	case key == karpenterv1.NodePoolLabelKey || karpenterv1.IsRestrictedLabel(normal(key)) != nil:
		return "Karpenter"
	}
	return ""
}

func (w *whole) ownerOfKey(key string) string {
	switch {
	case key == w.platform.NodePoolKey:
		return "croft"
	case endsAsKarpenters(key):
		return "Karpenter"
	}
	return ownerOfKey(key)
}

// cloudTags are prefixes of tags that Karpenter's AWS provider refuses, because they associate
// an instance with its cluster.
var cloudTags = []string{"kubernetes.io/cluster", "karpenter.k8s.aws/", "eks:"}

// tagOwner returns the owner of a tag that users cannot set, or "".
func tagOwner(p *v1alpha1.PlatformSpec, key string) string {
	if key == p.NodePoolKey {
		return "croft"
	}
	return cmp.Or(ownerOfTag(key), ownerOfKey(key))
}

func ownerOfTag(key string) string {
	for _, prefix := range cloudTags {
		if strings.HasPrefix(key, prefix) {
			return "the cluster"
		}
	}
	return ""
}

// normal returns the current name of a label for which Karpenter accepts an older name.
func normal(key string) string {
	if now, ok := karpenterv1.NormalizedLabels[key]; ok {
		return now
	}
	return key
}
