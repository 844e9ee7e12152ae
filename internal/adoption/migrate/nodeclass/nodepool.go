package nodeclass

import (
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// SetFromNodePool sets a pool's node class to the one that its NodePool names: in croft.yaml if
// croft wrote it, or if it is an AWS class in a version that Karpenter no longer reads;
// otherwise as a reference.
func SetFromNodePool(d *draft.Draft, name string, o *source.Object, p *draft.Pool) {
	ref := o.At("spec", "template", "spec", "nodeClassRef")
	group, kind, class := findClass(d, o)
	kubelet := o.At("spec", "template", "spec", "kubelet")
	if kind == "" || group == "" {
		ref.MarkNotKept("has no kind of node class")
		kubelet.MarkNotKept("belongs in the node class, which is unknown")
		d.ReportProblem(ref, "has no group and kind of node class, and the input has no node class of this name: write them, or add its file")
		return
	}
	ref.MarkKept(draft.PoolField(name, "nodeClass"))
	from := d.Find(group, kind, class)
	switch {
	case group == draft.KwokGroup:
		p.Spec.NodeClass = &v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}}
		if from != nil {
			source.AccountMetadata(from, draft.PoolField(name, "nodeClass.kwok"))
			if delay := from.At("spec", "nodeRegistrationDelay"); delay.Text() == "0s" {
				delay.MarkKept(draft.PoolField(name, "nodeClass.kwok"))
			} else {
				delay.MarkNotKept("croft's simulated nodes register at once: keep the KWOKNodeClass, and name it by nodeClass.ref")
			}
		}
	case from != nil && from.At("metadata", "labels", v1alpha1.PoolLabel).Text() == name:
		readCroftClass(d, name, from, p)
	case from != nil && group == draft.AWSGroup && (from.Version() == "v1beta1" || kubelet.Found()):
		giveClass(d, name, template{name: from.Name, spec: from.At("spec"), kubelet: kubelet, isNodeClass: true}, p)
	default:
		p.Spec.NodeClass = &v1alpha1.NodeClass{Ref: &v1alpha1.NodeClassRef{Group: group, Kind: kind, Name: class}}
		if kubelet.Found() {
			kubelet.MarkNotKept("Karpenter v1 has these settings in the node class")
			d.ReportProblem(kubelet, "Karpenter v1 has no kubelet settings in a NodePool: move them to %s/%s", kind, class)
		}
		if from != nil {
			from.Root().MarkKeptAs(draft.PoolField(name, "nodeClass.ref"), "stays as it is, and croft refers to it")
		}
	}
}

// findClass returns the node class that a NodePool names. In v1beta1 the name was sufficient.
// Then the class with this name in the input shows the provider, and so do AWS's own labels.
func findClass(d *draft.Draft, o *source.Object) (group, kind, name string) {
	ref := o.At("spec", "template", "spec", "nodeClassRef")
	group, kind, name = ref.At("group").Text(), ref.At("kind").Text(), ref.At("name").Text()
	if version := ref.At("apiVersion"); version.Found() {
		group = (&source.Object{APIVersion: version.Text()}).Group()
	}
	if group != "" && kind != "" {
		return group, kind, name
	}
	for _, class := range d.Objects {
		if strings.HasSuffix(class.Kind, "NodeClass") && class.Name == name && !class.Skip &&
			(kind == "" || class.Kind == kind) && (group == "" || class.Group() == group) {
			return class.Group(), class.Kind, name
		}
	}
	if (kind == "" || kind == ec2) && (group == "" || group == draft.AWSGroup) && (kind == ec2 || group == draft.AWSGroup || hasAWSLabels(o)) {
		return draft.AWSGroup, ec2, name
	}
	return group, kind, name
}

// ec2 is the kind of AWS's node classes.
const ec2 = "EC2NodeClass"

// hasAWSLabels reports whether a NodePool has requirements for labels of AWS instances.
func hasAWSLabels(o *source.Object) bool {
	return slices.ContainsFunc(o.At("spec", "template", "spec", "requirements").Items(), func(r source.Field) bool {
		return strings.HasPrefix(r.At("key").Text(), draft.AWSGroup+"/")
	})
}

// copySpec returns the spec of an EC2NodeClass in v1, with the kubelet settings that were
// in the NodePool in v1beta1.
func copySpec(d *draft.Draft, pool string, t template, to target) map[string]any {
	spec := map[string]any{}
	for _, f := range t.spec.Fields() {
		if f.Key() == "tags" && to.inDeclaration {
			continue
		}
		spec[f.Key()] = normalizeJSON(f.Value())
		f.MarkKept(to.at(f.Key()))
	}
	writeKubelet(d, pool, t, spec, to)
	if t.spec.Object().Version() == "v1beta1" {
		writeBetaImages(t, spec, to)
		if to.inDeclaration {
			reportDefaults(t.spec, to)
		} else {
			writeBetaHops(t.spec.At("metadataOptions"), spec, to)
		}
	}
	return spec
}

// writeBetaHops sets the default hop limit of v1beta1 explicitly.
func writeBetaHops(metadata source.Field, spec map[string]any, to target) {
	if metadata.At("httpPutResponseHopLimit").Found() {
		return
	}
	options, _ := spec["metadataOptions"].(map[string]any)
	if options == nil {
		options = map[string]any{}
	}
	options["httpPutResponseHopLimit"] = float64(2)
	spec["metadataOptions"] = options
	metadata.At("httpPutResponseHopLimit").MarkUnset(to.at("metadataOptions"), "not set: the old default, 2 hops, is written, since the default is now 1; "+
		"set it to 1 to keep the node's rights from pods")
}

// writeBetaImages selects the family's images, if a class of v1beta1 has no selector.
func writeBetaImages(t template, spec map[string]any, to target) {
	if t.spec.At("amiSelectorTerms").Found() {
		return
	}
	family := t.spec.At("amiFamily")
	alias, ok := aliases[family.Text()]
	if !ok {
		family.MarkNotKept("Karpenter v1 has no alias for these images that croft can use: write amiSelectorTerms into %s", to.name)
		return
	}
	delete(spec, "amiFamily")
	spec["amiSelectorTerms"] = []any{map[string]any{"alias": alias}}
	if slices.Contains([]string{"", "AL2"}, family.Text()) {
		family.MarkChanged(to.at("amiSelectorTerms"), "%s", al2Removed)
	} else {
		family.MarkKeptAs(to.at("amiSelectorTerms"), "as the alias %s", alias)
	}
}
