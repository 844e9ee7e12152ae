package nodeclass

import (
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// template is the source of a pool's instances: an AWSNodeTemplate, a Provisioner's own
// settings, or an EC2NodeClass.
type template struct {
	// name is the name of the EC2NodeClass that is made from it.
	name string
	spec source.Field
	// kubelet are the kubelet settings of the Provisioner or NodePool, which moved to the
	// class.
	kubelet source.Field
	// isNodeClass reports whether it is an EC2NodeClass already.
	isNodeClass bool
}

// SetFromProvisioner sets a pool's node class to the one that its Provisioner names.
func SetFromProvisioner(d *draft.Draft, name string, spec source.Field, p *draft.Pool) {
	t := template{name: p.From.Name, spec: spec.At("provider"), kubelet: spec.At("kubeletConfiguration")}
	ref := spec.At("providerRef")
	switch {
	case !IsAWS(spec):
		ref.MarkNotKept("belongs to another provider than AWS")
		t.kubelet.MarkNotKept("belongs in the node class, which the input lacks")
		d.ReportProblem(ref.At("kind"), "%s is not a node class of AWS, and croft migrate converts no others: write %s yourself", ref.At("kind").Text(), draft.PoolField(name, "nodeClass.ref"))
		return
	case ref.Found():
		o := d.Find(draft.AWSGroup, "AWSNodeTemplate", ref.At("name").Text())
		if o == nil {
			ref.MarkNotKept("the input lacks the AWSNodeTemplate: add its file")
			t.kubelet.MarkNotKept("belongs in the node class, which the input lacks")
			d.ReportProblem(ref.At("name"), "the input has no AWSNodeTemplate %s: add its file, or write %s yourself",
				ref.At("name").Text(), draft.PoolField(name, "nodeClass"))
			return
		}
		ref.MarkKept(draft.PoolField(name, "nodeClass"))
		source.AccountMetadata(o, draft.PoolField(name, "nodeClass"))
		t.name, t.spec = o.Name, o.At("spec")
	case !t.spec.Found():
		t.kubelet.MarkNotKept("belongs in the node class, and this pool has none")
		spec.At("providerRef").MarkUnsetChanged(draft.PoolField(name, "nodeClass"), "neither provider nor providerRef: the node class is unknown")
		return
	}
	if launch := t.launchTemplate(); launch.Found() {
		launch.MarkNotKept("Karpenter v1 does not support launch templates: write an equivalent EC2NodeClass, and name it by %s", draft.PoolField(name, "nodeClass.ref"))
		d.ReportProblem(launch, "launch templates cannot be converted, since Karpenter v1 does not support them: write an EC2NodeClass that is equivalent to %s, and name it by %s",
			launch.Text(), draft.PoolField(name, "nodeClass.ref"))
		t.spec.MarkKept(draft.PoolField(name, "nodeClass"))
		t.kubelet.MarkNotKept("belongs in the node class, which you have to write")
		return
	}
	giveClass(d, name, t, p)
}

// IsAWS reports whether a Provisioner's nodes are on AWS: the default kind of providerRef is
// AWS's.
func IsAWS(spec source.Field) bool {
	kind := spec.At("providerRef", "kind").Text()
	return kind == "" || kind == "AWSNodeTemplate"
}

func (t template) launchTemplate() source.Field {
	if f := t.spec.At("launchTemplate"); f.Found() {
		return f
	}
	return t.spec.At("launchTemplateName")
}

func (t template) getProfile(d *draft.Draft) string {
	if profile := t.spec.At("instanceProfile").Text(); profile != "" {
		return profile
	}
	return d.DefaultProfile
}

// isSharedDNS reports whether all pools use the same name servers, so that the platform can
// set them.
func isSharedDNS(d *draft.Draft, dns []string) bool {
	for _, o := range d.KarpenterPools() {
		addresses := o.At("spec", "kubeletConfiguration", "clusterDNS")
		if o.Kind == "NodePool" {
			addresses = o.At("spec", "template", "spec", "kubelet", "clusterDNS")
		}
		if !slices.Equal(addresses.Texts(), dns) {
			return false
		}
	}
	for _, o := range d.ValuesFiles() {
		if v := o.At("global", "clusterDNS"); v.Found() && !slices.Equal(v.Texts(), dns) {
			return false
		}
	}
	return true
}

// aliases maps families to aliases of current images. Amazon Linux 2, the former default, has
// no images for the Kubernetes versions that croft supports.
var aliases = map[string]string{
	"": "al2023@latest", "AL2": "al2023@latest", "AL2023": "al2023@latest", "Bottlerocket": "bottlerocket@latest",
}

const (
	al2Removed = "was Amazon Linux 2, which has no images for Kubernetes 1.33 and later: replaced by Amazon Linux 2023; " +
		"check scripts that install or configure software on nodes"
	hopsOne = "pods could reach the instance metadata service with 2 hops; croft allows 1 hop, which only reaches the node itself: " +
		"give pods that used the node's rights a role of their own (EKS Pod Identity or IRSA)"
)

// keepFamily accounts for the images of a template, which croft selects by an alias.
func keepFamily(t template, to string) {
	switch f := t.spec.At("amiFamily"); f.Text() {
	case "":
		f.MarkUnsetChanged(to, "no amiFamily: %s", al2Removed)
	case "AL2":
		f.MarkChanged(to, "%s", al2Removed)
	default:
		f.MarkKept(to)
	}
}

// readTags copies tags to the pool, except for tags that croft or Karpenter sets anyway. keys are
// croft's tag keys, if they differ from the defaults.
func readTags(name string, f source.Field, p *draft.Pool, keys *v1alpha1.AWSTagKeys) {
	for _, tag := range f.Fields() {
		key, value := tag.Key(), tag.Text()
		switch {
		case keys != nil && slices.Contains([]string{keys.CostCode, keys.Project, keys.NodePool}, key):
			tag.MarkKeptAs(draft.PoolField(name, "nodeClass.aws.tagKeys"), "croft sets this tag")
		case draft.IsCostCode(key) && (p.Spec.CostCode == "" || p.Spec.CostCode == value):
			p.Spec.CostCode = value
			tag.MarkKept(draft.PoolField(name, "costCode"))
		case (key == "NodePool" || key == "Project") && value == name:
			tag.MarkKeptAs(draft.PoolField(name, "tags"), "croft sets this tag")
		case strings.HasPrefix(key, "karpenter.sh/"):
			tag.MarkNotKept("a Pool cannot set tags below karpenter.sh/: subnets and security groups are discovered by them, and instances do not need them")
		case isCloudTag(key):
			tag.MarkNotKept("only Karpenter and the cluster may set this tag")
		default:
			if p.Spec.Tags == nil {
				p.Spec.Tags = map[string]string{}
			}
			p.Spec.Tags[key] = value
			tag.MarkKept(draft.PoolField(name, "tags"))
		}
	}
	f.MarkKept(draft.PoolField(name, "tags"))
}

func isCloudTag(key string) bool {
	return strings.HasPrefix(key, "kubernetes.io/cluster") || strings.HasPrefix(key, "eks:") ||
		strings.HasPrefix(key, "karpenter.k8s.aws/") || strings.HasPrefix(key, "karpenter.sh/")
}
