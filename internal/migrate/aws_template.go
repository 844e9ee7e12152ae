package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/api/v1alpha1"
)

// template is what a pool's instances are made from: an AWSNodeTemplate, or what
// a Provisioner says itself.
type template struct {
	// name is what an EC2NodeClass made of it is called.
	name string
	spec Field
	// kubelet is the Provisioner's kubeletConfiguration, which went to the class.
	kubelet Field
}

// templateOf gives a pool the node class that its Provisioner asks for.
func (d *draft) templateOf(name string, spec Field, p *pool) {
	t := template{name: p.from.Name, spec: spec.At("provider"), kubelet: spec.At("kubeletConfiguration")}
	ref := spec.At("providerRef")
	if ref.Found() {
		o := d.named(awsGroup, "AWSNodeTemplate", ref.At("name").Text())
		if o == nil {
			ref.NotKept("the AWSNodeTemplate was not read: give its file too")
			t.kubelet.NotKept("goes to the node class, which was not read")
			d.problem(ref.At("name"), "there is no AWSNodeTemplate %s among what was read: give its file too, or write %s yourself",
				ref.At("name").Text(), poolField(name, "nodeClass"))
			return
		}
		ref.Kept(poolField(name, "nodeClass"))
		frame(o, poolField(name, "nodeClass"))
		t.name, t.spec = o.Name, o.At("spec")
	} else if !t.spec.Found() {
		t.kubelet.NotKept("goes to the node class, and this pool has none")
		spec.At("providerRef").UnsetChanged(poolField(name, "nodeClass"), "neither provider nor providerRef: nothing says what the nodes are made from")
		return
	}
	if launch := t.launchTemplate(); launch.Found() {
		launch.NotKept("Karpenter v1 takes no launch templates: write an EC2NodeClass that does what this one does, and name it by %s", poolField(name, "nodeClass.ref"))
		d.problem(launch, "a launch template cannot be converted, since Karpenter v1 takes none: write an EC2NodeClass that does what %s does, and name it by %s",
			launch.Text(), poolField(name, "nodeClass.ref"))
		t.spec.Kept(poolField(name, "nodeClass"))
		t.kubelet.NotKept("goes to the node class, which is yours to write")
		return
	}
	if class := d.plain(t); class != nil {
		d.awsPool(name, t, class, p)
	} else {
		d.ownClass(name, t, p)
	}
}

func (t template) launchTemplate() Field {
	if f := t.spec.At("launchTemplate"); f.Found() {
		return f
	}
	return t.spec.At("launchTemplateName")
}

// plain is the template as croft.yaml can say it, or nil if it says more.
func (d *draft) plain(t template) *v1alpha1.AWSNodeClass {
	for _, f := range t.spec.Fields() {
		if !slices.Contains([]string{"apiVersion", "kind", "subnetSelector", "securityGroupSelector", "instanceProfile", "amiFamily", "tags"}, f.Key()) {
			return nil
		}
	}
	for _, f := range t.kubelet.Fields() {
		if f.Key() != "clusterDNS" || !d.dnsIsEverybodys(f.Texts()) {
			return nil
		}
	}
	subnets, groups := t.spec.At("subnetSelector").TextMap(), t.spec.At("securityGroupSelector").TextMap()
	if len(subnets) == 0 || len(subnets) > 16 || !maps.Equal(subnets, groups) {
		return nil
	}
	for key, value := range subnets {
		if isSpecial(key) || strings.Contains(value, ",") {
			return nil
		}
	}
	alias, ok := aliases[t.spec.At("amiFamily").Text()]
	profile := t.profile(d)
	if !ok || profile == "" || len(t.spec.At("tags").Fields()) > 40 {
		return nil
	}
	return &v1alpha1.AWSNodeClass{InstanceProfile: profile, AMIAlias: alias, Discovery: subnets}
}

func (t template) profile(d *draft) string {
	if profile := t.spec.At("instanceProfile").Text(); profile != "" {
		return profile
	}
	return d.defaultProfile
}

// dnsIsEverybodys says whether all pools ask the same name servers, so that the
// platform can say it for all.
func (d *draft) dnsIsEverybodys(dns []string) bool {
	for _, o := range d.of(karpenterGroup, "Provisioner") {
		if !slices.Equal(o.At("spec", "kubeletConfiguration", "clusterDNS").Texts(), dns) {
			return false
		}
	}
	for _, o := range d.valuesFiles() {
		if v := o.At("global", "clusterDNS"); v.Found() && !slices.Equal(v.Texts(), dns) {
			return false
		}
	}
	return true
}

// aliases are the images that a family of the time stands for today. Amazon Linux
// 2, which was the default, has no images for a Kubernetes that croft runs on.
var aliases = map[string]string{
	"": "al2023@latest", "AL2": "al2023@latest", "AL2023": "al2023@latest", "Bottlerocket": "bottlerocket@latest",
}

const (
	al2Gone = "was Amazon Linux 2, which has no images for Kubernetes 1.33 and later: Amazon Linux 2023 in its place; " +
		"what you install or set on nodes by scripts may differ"
	hopsOne = "pods could reach the instance metadata service over 2 hops; croft allows 1, which ends at the node: " +
		"give pods that used the node's rights a role of their own (EKS Pod Identity or IRSA)"
)

func (d *draft) family(t template, to string) {
	switch f := t.spec.At("amiFamily"); f.Text() {
	case "":
		f.UnsetChanged(to, "no amiFamily: %s", al2Gone)
	case "AL2":
		f.Changed(to, "%s", al2Gone)
	default:
		f.Kept(to)
	}
}

// awsPool says the template in croft.yaml's own words.
func (d *draft) awsPool(name string, t template, class *v1alpha1.AWSNodeClass, p *pool) {
	to := poolField(name, "nodeClass.aws")
	p.spec.NodeClass = &v1alpha1.NodeClass{AWS: class}
	for _, key := range []string{"apiVersion", "kind"} {
		t.spec.At(key).Kept(to)
	}
	for _, key := range []string{"subnetSelector", "securityGroupSelector"} {
		t.spec.At(key).Kept(to + ".discovery")
	}
	t.spec.At("instanceProfile").Kept(to + ".instanceProfile")
	if !t.spec.At("instanceProfile").Found() {
		t.spec.At("instanceProfile").Unset(to+".instanceProfile", "none: the one of karpenter-global-settings is written out")
	}
	d.family(t, to+".amiAlias")
	t.spec.At("metadataOptions").UnsetChanged(to, "no metadataOptions: %s", hopsOne)
	d.tags(name, t.spec.At("tags"), p)
	if dns := t.kubelet.At("clusterDNS"); dns.Found() {
		d.platform.ClusterDNS = dns.Texts()
	}
	t.kubelet.Kept("platform.clusterDNS")
}

// tags go to the pool, but for those that somebody sets anyway.
func (d *draft) tags(name string, f Field, p *pool) {
	for _, tag := range f.Fields() {
		key, value := tag.Key(), tag.Text()
		switch {
		case isCostCode(key) && (p.spec.CostCode == "" || p.spec.CostCode == value):
			p.spec.CostCode = value
			tag.Kept(poolField(name, "costCode"))
		case (key == "NodePool" || key == "Project") && value == name:
			tag.KeptAs(poolField(name, "tags"), "croft sets this tag itself")
		case strings.HasPrefix(key, "karpenter.sh/"):
			tag.NotKept("a Pool leaves tags below karpenter.sh/ to Karpenter: subnets and security groups are discovered by them, and instances need none")
		case isCloudTag(key):
			tag.NotKept("Karpenter and the cluster set this tag themselves, and let nobody else")
		default:
			if p.spec.Tags == nil {
				p.spec.Tags = map[string]string{}
			}
			p.spec.Tags[key] = value
			tag.Kept(poolField(name, "tags"))
		}
	}
	f.Kept(poolField(name, "tags"))
}

func isCloudTag(key string) bool {
	return strings.HasPrefix(key, "kubernetes.io/cluster") || strings.HasPrefix(key, "eks:") ||
		strings.HasPrefix(key, "karpenter.k8s.aws/") || strings.HasPrefix(key, "karpenter.sh/")
}

// ownClass writes an EC2NodeClass that says all that the template said, and has
// the pool name it.
func (d *draft) ownClass(name string, t template, p *pool) {
	// Two Provisioners may share a template, and have kubelets that differ.
	source := t.spec.object.ID() + abridged(t.kubelet.value)
	class, known := d.classes[source]
	if !known {
		class = t.name
		if slices.ContainsFunc(d.manifests, func(m *unstructured.Unstructured) bool { return m.GetName() == class }) {
			class += "-" + p.from.Name
		}
		d.classes[source] = class
	}
	t.name = class
	spec := d.convert(name, t)
	if !known {
		d.addClass(class, spec)
	}
	p.spec.NodeClass = &v1alpha1.NodeClass{Ref: &v1alpha1.NodeClassRef{Group: awsGroup, Kind: "EC2NodeClass", Name: class}}
}

// addClass adds a node class to the manifests.
func (d *draft) addClass(name string, spec map[string]any) {
	d.manifests = append(d.manifests, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": awsGroup + "/v1", "kind": "EC2NodeClass",
		"metadata": map[string]any{"name": name}, "spec": plainly(spec),
	}})
}

// isSpecial says whether a key of a selector is no tag.
func isSpecial(key string) bool {
	return key == "aws-ids" || strings.HasPrefix(key, "aws::")
}

// classField is a field of an EC2NodeClass among the manifests.
func classField(class, field string) string {
	return fmt.Sprintf("nodeclasses.yaml: EC2NodeClass/%s spec.%s", class, field)
}

// plainly is a value as JSON has it, so that equal ones are the same.
func plainly(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var out any
	if json.Unmarshal(data, &out) != nil {
		return v
	}
	return out
}
