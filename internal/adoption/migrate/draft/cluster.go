package draft

import (
	"maps"
	"slices"
	"strings"

	"croft.dev/croft/internal/adoption/migrate/source"
)

// ClusterName returns the cluster's name from the user's options, a values file, settings or
// tags.
func (d *Draft) ClusterName() string {
	if d.Options.ClusterName != "" {
		return d.Options.ClusterName
	}
	if d.Platform.ClusterName != "" {
		return d.Platform.ClusterName
	}
	for _, o := range d.ValuesFiles() {
		if name := o.At("global", "clusterName").Text(); name != "" {
			return name
		}
	}
	votes := map[string]int{}
	for _, o := range d.Objects {
		if o.Skip || !IsRead(o) || o.Group() != KarpenterGroup && o.Group() != AWSGroup {
			continue
		}
		o.VisitLeaves(func(f source.Field) {
			value, _ := f.Value().(string)
			key := f.Key()
			switch name, owned := strings.CutPrefix(key, "kubernetes.io/cluster/"); {
			case key == DiscoveryTag && value != "" && !strings.Contains(value, "*"):
				votes[value] += 2
			case owned && name != "":
				votes[name]++
			}
		})
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(votes)) {
		if votes[name] > votes[best] {
			best = name
		}
	}
	if len(votes) > 1 {
		d.AddNote("the tags in the input name several clusters, %s: croft.yaml is for %s; set --cluster-name if that is wrong",
			strings.Join(slices.Sorted(maps.Keys(votes)), ", "), best)
	}
	return best
}
