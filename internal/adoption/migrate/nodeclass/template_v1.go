package nodeclass

import (
	"cmp"
	"slices"
	"strings"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// convertSelector converts a selector of tags into terms. Within a term all conditions must match, and
// one term is enough. A list of ids becomes a term for each, and so does a list of values of a
// tag.
func convertSelector(f source.Field, to string) []any {
	var ids, names, owners []string
	tags := []map[string]any{{}}
	for _, entry := range f.Fields() {
		values := strings.Split(entry.Text(), ",")
		for i := range values {
			values[i] = strings.TrimSpace(values[i])
		}
		entry.MarkKept(to)
		switch entry.Key() {
		case "aws-ids", "aws::ids":
			ids = values
		case "aws::name":
			names = values
		case "aws::owners":
			owners = values
		default:
			tags = multiplyTerms(tags, entry.Key(), values)
		}
	}
	f.MarkKept(to)
	switch {
	case len(ids) > 0:
		terms := make([]any, len(ids))
		for i, id := range ids {
			terms[i] = map[string]any{"id": id}
		}
		for _, entry := range f.Fields() {
			if entry.Key() != "aws-ids" && entry.Key() != "aws::ids" {
				entry.MarkNotKept("a term has either an id or tags: now only the ids select, so check that each of them matches this")
			}
		}
		return terms
	case len(tags[0]) == 0 && len(names) == 0 && len(owners) == 0:
		return nil
	}
	var terms []any
	for _, t := range tags {
		for _, name := range orEmpty(names) {
			for _, owner := range orEmpty(owners) {
				term := map[string]any{}
				if len(t) > 0 {
					term["tags"] = t
				}
				if name != "" {
					term["name"] = name
				}
				if owner != "" {
					term["owner"] = owner
				}
				terms = append(terms, term)
			}
		}
	}
	return terms
}

func orEmpty(list []string) []string {
	if len(list) == 0 {
		return []string{""}
	}
	return list
}

// multiplyTerms adds a tag to every term, once for each of its values.
func multiplyTerms(terms []map[string]any, key string, values []string) []map[string]any {
	var all []map[string]any
	for _, term := range terms {
		for _, value := range values {
			more := map[string]any{key: value}
			for k, v := range term {
				more[k] = v
			}
			all = append(all, more)
		}
	}
	return all
}

// convertTemplate converts an AWSNodeTemplate into the spec of an EC2NodeClass of Karpenter v1.
func convertTemplate(d *draft.Draft, pool string, t template, to target) map[string]any {
	spec := map[string]any{}
	for _, key := range []string{"apiVersion", "kind"} {
		t.spec.At(key).MarkKept(to.at(""))
	}
	for _, same := range []string{
		"blockDeviceMappings", "detailedMonitoring", "context", "associatePublicIPAddress", "metadataOptions", "userData",
	} {
		if f := t.spec.At(same); f.Found() {
			spec[same] = normalizeJSON(f.Value())
			f.MarkKept(to.at(same))
		}
	}
	if to.inDeclaration {
		reportDefaults(t.spec, to)
	} else {
		copyTags(t.spec.At("tags"), spec, to)
		if _, ok := spec["metadataOptions"]; !ok {
			spec["metadataOptions"] = map[string]any{
				"httpEndpoint": "enabled", "httpProtocolIPv6": "disabled", "httpPutResponseHopLimit": float64(2), "httpTokens": "required",
			}
			t.spec.At("metadataOptions").MarkUnset(to.at("metadataOptions"), "no metadataOptions: the old default, 2 hops, is written, since the default is now 1; "+
				"set httpPutResponseHopLimit to 1 to keep the node's rights from pods")
		}
	}
	writeProfile(d, t, spec, to)
	writeSubnets(d, t, spec, to)
	writeImages(d, t, spec, to)
	writeKubelet(d, pool, t, spec, to)
	return spec
}

// copyTags copies the tags unchanged.
func copyTags(f source.Field, spec map[string]any, to target) {
	if !f.Found() {
		return
	}
	tags := map[string]any{}
	f.MarkKept(to.at("tags"))
	for _, tag := range f.Fields() {
		if isCloudTag(tag.Key()) && tag.Key() != draft.DiscoveryTag {
			tag.MarkNotKept("only Karpenter and the cluster may set this tag")
			continue
		}
		tags[tag.Key()] = tag.Text()
	}
	spec["tags"] = tags
}

func writeProfile(d *draft.Draft, t template, spec map[string]any, to target) {
	f := t.spec.At("instanceProfile")
	f.MarkKept(to.at("instanceProfile"))
	if profile := t.getProfile(d); profile != "" {
		spec["instanceProfile"] = profile
		if !f.Found() {
			f.MarkUnset(to.at("instanceProfile"), "not set: the default of karpenter-global-settings is written")
		}
		return
	}
	f.MarkUnsetChanged(to.at("role"), "neither set here nor in Karpenter's settings: write role or instanceProfile")
	d.Problems = append(d.Problems, f.Problem(
		"not set, and Karpenter v1 needs role or instanceProfile: write one into %s", to.name))
}

func writeSubnets(d *draft.Draft, t template, spec map[string]any, to target) {
	for _, from := range []string{"subnetSelector", "securityGroupSelector"} {
		f, terms := t.spec.At(from), from+"Terms"
		if found := convertSelector(f, to.at(terms)); len(found) > 0 {
			spec[terms] = found
			continue
		}
		name := cmp.Or(t.findCluster(), d.ClusterName())
		if name == "" {
			name = "$CLUSTER_NAME"
			d.Problems = append(d.Problems, f.Problem(
				"not set, and Karpenter v1 requires it: set --cluster-name for the tag kubernetes.io/cluster/NAME, the old default, or write %s into %s", terms, to.name))
		}
		spec[terms] = []any{map[string]any{"tags": map[string]any{"kubernetes.io/cluster/" + name: "*"}}}
		f.MarkUnset(to.at(terms), "not set: the old default, the tag kubernetes.io/cluster/%s, is written, since there is no default now", name)
	}
}

// findCluster returns the cluster that the template's other selectors name.
func (t template) findCluster() string {
	for _, selector := range []string{"subnetSelector", "securityGroupSelector"} {
		for _, f := range t.spec.At(selector).Fields() {
			if name, ok := strings.CutPrefix(f.Key(), "kubernetes.io/cluster/"); ok && name != "" {
				return name
			}
		}
	}
	return ""
}

func writeImages(d *draft.Draft, t template, spec map[string]any, to target) {
	family := t.spec.At("amiFamily").Text()
	images := t.spec.At("amiSelector")
	if terms := convertSelector(images, to.at("amiSelectorTerms")); len(terms) > 0 {
		spec["amiSelectorTerms"] = terms
		spec["amiFamily"] = family
		t.spec.At("amiFamily").MarkKept(to.at("amiFamily"))
		if family == "" {
			spec["amiFamily"] = "AL2"
			t.spec.At("amiFamily").MarkUnset(to.at("amiFamily"), "no amiFamily: the old default, AL2, is written, since custom images require a family")
		}
		return
	}
	alias, ok := aliases[family]
	if !ok {
		t.spec.At("amiFamily").MarkNotKept("Karpenter v1 has no alias for the images of %s that croft can use: write amiSelectorTerms into %s", family, to.name)
		d.ReportProblem(t.spec.At("amiFamily"), "Karpenter v1 does not discover images of %s: write amiSelectorTerms into %s", family, to.name)
		spec["amiFamily"] = "Custom"
		return
	}
	spec["amiSelectorTerms"] = []any{map[string]any{"alias": alias}}
	keepFamily(t, to.at("amiSelectorTerms"))
	if script := t.spec.At("userData"); script.Found() && alias == "al2023@latest" && family != "AL2023" {
		script.MarkChanged(to.at("userData"), "was written for Amazon Linux 2: Amazon Linux 2023 uses nodeadm, and has no bootstrap.sh; review the script before you apply")
	}
}

// kubeletFields are a Provisioner's fields that an EC2NodeClass also has.
var kubeletFields = []string{
	"clusterDNS", "maxPods", "podsPerCore", "systemReserved", "kubeReserved", "evictionHard", "evictionSoft", "evictionSoftGracePeriod",
	"evictionMaxPodGracePeriod", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "cpuCFSQuota",
}

func writeKubelet(d *draft.Draft, pool string, t template, spec map[string]any, to target) {
	kubelet := map[string]any{}
	t.kubelet.MarkKept(to.at("kubelet"))
	for _, f := range t.kubelet.Fields() {
		switch {
		case f.Key() == "clusterDNS" && to.inDeclaration && isSharedDNS(d, f.Texts()):
			d.Platform.ClusterDNS = f.Texts()
			f.MarkKept("platform.clusterDNS")
		case slices.Contains(kubeletFields, f.Key()):
			kubelet[f.Key()] = normalizeJSON(f.Value())
			f.MarkKept(to.at("kubelet." + f.Key()))
		case f.Key() == "containerRuntime":
			f.MarkNotKept("only containerd is supported: omit it")
		default:
			f.MarkNotKept("Karpenter v1 does not support this kubelet setting: set it in userData of %s if you need it", to.name)
		}
	}
	if len(kubelet) > 0 {
		spec["kubelet"] = kubelet
	}
	addNameServers(d, pool, t.kubelet.At("clusterDNS"))
}

// addNameServers adds the pods' DNS addresses to the platform: the network wall must allow them.
func addNameServers(d *draft.Draft, pool string, dns source.Field) {
	servers := dns.Texts()
	switch {
	case len(servers) == 0:
	case len(d.Platform.ClusterDNS) == 0:
		d.Platform.ClusterDNS = servers
		dns.MarkKept("platform.clusterDNS")
	case !slices.Equal(d.Platform.ClusterDNS, servers):
		dns.MarkChanged("platform.clusterDNS", "pool %s uses the name servers %s, and the platform's clusterDNS is %s: with restricted egress its pods could not resolve names if the pool's name servers are not pods of kube-dns",
			pool, strings.Join(servers, ", "), strings.Join(d.Platform.ClusterDNS, ", "))
	}
}
