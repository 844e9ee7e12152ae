package estate

import (
	"cmp"
	"maps"

	"croft.dev/croft/api/v1alpha1"
)

// These are the keys of croft's own tags, unless tagKeys sets others.
const (
	costCodeTag = "CostCode"
	projectTag  = "Project"
	nodePoolTag = "NodePool"
)

// buildAWSTags returns the effective tags of a pool. They are merged from the general to the
// specific, and the most specific value of a key is used.
func buildAWSTags(p *v1alpha1.PlatformSpec, pool *v1alpha1.Pool, keys *v1alpha1.AWSTagKeys) map[string]string {
	if keys == nil {
		keys = &v1alpha1.AWSTagKeys{}
	}
	tags := map[string]string{
		cmp.Or(keys.NodePool, nodePoolTag): pool.Name,
		cmp.Or(keys.Project, projectTag):   pool.Name,
	}
	if base := p.NodeClass.AWS; base != nil {
		maps.Copy(tags, base.Tags)
	}
	if code := pool.Spec.CostCode; code != "" {
		tags[cmp.Or(keys.CostCode, costCodeTag)] = code
	}
	if own := pool.Spec.NodeClass; own != nil && own.AWS != nil {
		maps.Copy(tags, own.AWS.Tags)
	}
	maps.Copy(tags, pool.Spec.Tags)
	return tags
}
