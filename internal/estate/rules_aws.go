package estate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
)

// awsClassIsWhole checks the result of merging a pool's class with the platform's: either alone
// may lack a required field that the other has.
func awsClassIsWhole(w *whole, p *v1alpha1.Pool) []finding {
	class := classOf(&w.platform, p).AWS
	if class == nil {
		return nil
	}
	at := field.NewPath("spec", "nodeClass", "aws")
	var all []finding
	if class.Role == "" && class.InstanceProfile == "" {
		all = append(all, found(at, "neither this pool nor the platform says role or instanceProfile; write one of them, such as role: KarpenterNodeRole-%s", w.platform.ClusterName)...)
	}
	if p.Spec.NodeClass != nil {
		all = append(all, classTagsFit(&w.platform, p.Spec.NodeClass.AWS)...)
	}
	return slices.Concat(all, imagesFit(at, class), kubeletIsOrdered(at.Child("kubelet"), class.Kubelet), tagsAreFew(w, p, class.TagKeys))
}

// imagesFit refuses images of another family than the declared one, and a class that selects no
// images.
func imagesFit(at *field.Path, c *v1alpha1.AWSNodeClass) []finding {
	family := familyOfTerms(c.AMISelectorTerms)
	switch {
	case c.AMISelectorTerms == nil:
		return found(at.Child("amiFamily"), "Custom has no images of its own; say amiSelectorTerms")
	case c.AMIFamily == "":
		return found(at.Child("amiFamily"), "images that no alias names need the family that they are of; write one, such as AL2023")
	case family != "" && c.AMIFamily != family && c.AMIFamily != v1alpha1.FamilyCustom:
		return found(at.Child("amiFamily"), "the images of %s are not of the family %s; leave amiFamily out, or write amiAlias: %s@latest",
			c.AMISelectorTerms[0].Alias, c.AMIFamily, strings.ToLower(string(c.AMIFamily)))
	}
	return nil
}

func kubeletIsOrdered(at *field.Path, k *v1alpha1.AWSKubelet) []finding {
	if k == nil {
		return nil
	}
	all := slices.Concat(amounts(at.Child("systemReserved"), k.SystemReserved), amounts(at.Child("kubeReserved"), k.KubeReserved))
	if high, low := k.ImageGCHighThresholdPercent, k.ImageGCLowThresholdPercent; high != nil && low != nil && *high <= *low {
		all = append(all, found(at.Child("imageGCHighThresholdPercent"), "must be more than imageGCLowThresholdPercent, and %d is not more than %d", *high, *low)...)
	}
	for _, signal := range slices.Sorted(maps.Keys(k.EvictionSoft)) {
		if _, ok := k.EvictionSoftGracePeriod[signal]; !ok {
			all = append(all, found(at.Child("evictionSoft").Key(signal), "needs to know how long it may last; write evictionSoftGracePeriod: {%s: 90s}", signal)...)
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(k.EvictionSoftGracePeriod)) {
		if _, ok := k.EvictionSoft[signal]; !ok {
			all = append(all, found(at.Child("evictionSoftGracePeriod").Key(signal), "there is no %s in evictionSoft; leave it out, or add it there", signal)...)
		}
	}
	return all
}

// platformTagsFit checks the tags that the platform sets on every pool.
func platformTagsFit(p *v1alpha1.PlatformSpec) []finding { return classTagsFit(p, p.NodeClass.AWS) }

func classTagsFit(p *v1alpha1.PlatformSpec, class *v1alpha1.AWSNodeClass) []finding {
	if class == nil {
		return nil
	}
	at := field.NewPath("spec", "nodeClass", "aws")
	var all []finding
	for _, key := range slices.Sorted(maps.Keys(class.Tags)) {
		if why := whyNoTag(p, key, class.Tags[key]); why != "" {
			all = append(all, found(at.Child("tags").Key(key), "%s", why)...)
		}
	}
	if class.TagKeys == nil {
		return all
	}
	for _, k := range []struct{ name, key string }{
		{"costCode", class.TagKeys.CostCode}, {"project", class.TagKeys.Project}, {"nodePool", class.TagKeys.NodePool},
	} {
		if k.key == "" {
			continue
		}
		if why := whyNoTag(p, k.key, ""); why != "" {
			all = append(all, found(at.Child("tagKeys", k.name), "%s", why)...)
		}
	}
	return all
}

// mostTags is the maximum number of tags in EC2, 50, less the six that Karpenter sets.
const mostTags = 44

func tagsAreFew(w *whole, p *v1alpha1.Pool, keys *v1alpha1.AWSTagKeys) []finding {
	if n := len(awsTags(&w.platform, p, keys)); n > mostTags {
		return found(field.NewPath("spec", "tags"), "with the platform's and croft's own there are %d tags, and EC2 takes %d; leave some out", n, mostTags)
	}
	return nil
}

// whyNoTag returns why an instance cannot have a tag, or "" if it can.
func whyNoTag(p *v1alpha1.PlatformSpec, key, value string) string {
	switch owner := tagOwner(p, key); {
	case owner != "":
		return fmt.Sprintf("the tag %s is %s's to set; choose another", key, owner)
	case strings.HasPrefix(strings.ToLower(key), "aws:"):
		return fmt.Sprintf("the tag %s is AWS's to set; choose another", key)
	case key == "" || utf8.RuneCountInString(key) > 128:
		return fmt.Sprintf("the key of a tag has 1 to 128 characters, and this one %d", utf8.RuneCountInString(key))
	case utf8.RuneCountInString(value) > 256:
		return fmt.Sprintf("the value of a tag has at most 256 characters, and this one %d", utf8.RuneCountInString(value))
	}
	return ""
}
