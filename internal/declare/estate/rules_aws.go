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

// checkAWSClass checks the result of merging a pool's class with the platform's: either alone
// may lack a required field that the other has.
func checkAWSClass(w *checker, p *v1alpha1.Pool) []finding {
	class := resolveClass(&w.platform, p).AWS
	if class == nil {
		return nil
	}
	at := field.NewPath("spec", "nodeClass", "aws")
	var all []finding
	if class.Role == "" && class.InstanceProfile == "" {
		all = append(all, makeFinding(at, "neither this pool nor the platform sets role or instanceProfile; set one of them, such as role: KarpenterNodeRole-%s", w.platform.ClusterName)...)
	}
	if p.Spec.NodeClass != nil {
		all = append(all, checkClassTags(&w.platform, p.Spec.NodeClass.AWS)...)
	}
	return slices.Concat(all, checkImages(at, class), checkKubelet(at.Child("kubelet"), class.Kubelet), checkTagCount(w, p, class.TagKeys))
}

// checkImages refuses images of another family than the declared one, and a class that selects no
// images.
func checkImages(at *field.Path, c *v1alpha1.AWSNodeClass) []finding {
	family := findFamily(c.AMISelectorTerms)
	switch {
	case c.AMISelectorTerms == nil:
		return makeFinding(at.Child("amiFamily"), "Custom has no images of its own; set amiSelectorTerms")
	case c.AMIFamily == "":
		return makeFinding(at.Child("amiFamily"), "images without an alias need the family to which they belong; set one, such as AL2023")
	case family != "" && c.AMIFamily != family && c.AMIFamily != v1alpha1.FamilyCustom:
		return makeFinding(at.Child("amiFamily"), "the images of %s are not of the family %s; leave amiFamily out, or write amiAlias: %s@latest",
			c.AMISelectorTerms[0].Alias, c.AMIFamily, strings.ToLower(string(c.AMIFamily)))
	}
	return nil
}

func checkKubelet(at *field.Path, k *v1alpha1.AWSKubelet) []finding {
	if k == nil {
		return nil
	}
	all := slices.Concat(checkAmounts(at.Child("systemReserved"), k.SystemReserved), checkAmounts(at.Child("kubeReserved"), k.KubeReserved))
	if high, low := k.ImageGCHighThresholdPercent, k.ImageGCLowThresholdPercent; high != nil && low != nil && *high <= *low {
		all = append(all, makeFinding(at.Child("imageGCHighThresholdPercent"), "must be more than imageGCLowThresholdPercent, and %d is not more than %d", *high, *low)...)
	}
	for _, signal := range slices.Sorted(maps.Keys(k.EvictionSoft)) {
		if _, ok := k.EvictionSoftGracePeriod[signal]; !ok {
			all = append(all, makeFinding(at.Child("evictionSoft").Key(signal), "needs a grace period; write evictionSoftGracePeriod: {%s: 90s}", signal)...)
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(k.EvictionSoftGracePeriod)) {
		if _, ok := k.EvictionSoft[signal]; !ok {
			all = append(all, makeFinding(at.Child("evictionSoftGracePeriod").Key(signal), "there is no %s in evictionSoft; leave it out, or add it there", signal)...)
		}
	}
	return all
}

// checkPlatformTags checks the tags that the platform sets on every pool.
func checkPlatformTags(p *v1alpha1.PlatformSpec) []finding { return checkClassTags(p, p.NodeClass.AWS) }

func checkClassTags(p *v1alpha1.PlatformSpec, class *v1alpha1.AWSNodeClass) []finding {
	if class == nil {
		return nil
	}
	at := field.NewPath("spec", "nodeClass", "aws")
	var all []finding
	for _, key := range slices.Sorted(maps.Keys(class.Tags)) {
		if why := explainInvalidTag(p, key, class.Tags[key]); why != "" {
			all = append(all, makeFinding(at.Child("tags").Key(key), "%s", why)...)
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
		if why := explainInvalidTag(p, k.key, ""); why != "" {
			all = append(all, makeFinding(at.Child("tagKeys", k.name), "%s", why)...)
		}
	}
	return all
}

// mostTags is the maximum number of tags in EC2, 50, less the six that Karpenter sets.
const mostTags = 44

func checkTagCount(w *checker, p *v1alpha1.Pool, keys *v1alpha1.AWSTagKeys) []finding {
	if n := len(buildAWSTags(&w.platform, p, keys)); n > mostTags {
		return makeFinding(field.NewPath("spec", "tags"), "together with the platform's and croft's own there are %d tags, and EC2 allows %d; leave some out", n, mostTags)
	}
	return nil
}

// explainInvalidTag returns why an instance cannot have a tag, or "" if it can.
func explainInvalidTag(p *v1alpha1.PlatformSpec, key, value string) string {
	switch owner := findTagOwner(p, key); {
	case owner != "":
		return fmt.Sprintf("the tag %s is reserved for %s; choose another", key, owner)
	case strings.HasPrefix(strings.ToLower(key), "aws:"):
		return fmt.Sprintf("the tag %s is reserved for AWS; choose another", key)
	case key == "" || utf8.RuneCountInString(key) > 128:
		return fmt.Sprintf("the key of a tag has 1 to 128 characters, and this one has %d", utf8.RuneCountInString(key))
	case utf8.RuneCountInString(value) > 256:
		return fmt.Sprintf("the value of a tag has at most 256 characters, and this one has %d", utf8.RuneCountInString(value))
	}
	return ""
}
