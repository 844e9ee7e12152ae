package migrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/api/v1alpha1"
)

// target is where the fields of a node class go: into croft.yaml, or into an
// EC2NodeClass of one's own.
type target struct {
	// name is what people know it by.
	name string
	// ours says that it is croft.yaml, and that croft writes the class.
	ours bool
	// at is where a field of an EC2NodeClass goes, and the whole for "".
	at func(field string) string
}

// inCroft is the class of a pool in croft.yaml.
func inCroft(pool string, class *v1alpha1.AWSNodeClass) target {
	whole := poolField(pool, "nodeClass.aws")
	return target{name: whole, ours: true, at: func(field string) string {
		switch field {
		case "":
			return whole
		case "amiSelectorTerms":
			if class.AMIAlias != "" {
				field = "amiAlias"
			}
		case "subnetSelectorTerms", "securityGroupSelectorTerms":
			if class.Discovery != nil {
				field = "discovery"
			}
		}
		return whole + "." + field
	}}
}

// ofOnesOwn is an EC2NodeClass among the manifests.
func ofOnesOwn(class string) target {
	return target{name: "EC2NodeClass/" + class, at: func(field string) string {
		return fmt.Sprintf("nodeclasses.yaml: EC2NodeClass/%s spec.%s", class, field)
	}}
}

// giveClass gives a pool what its nodes are made from: in croft.yaml's own words
// where it has them for all of it, otherwise by the name of an EC2NodeClass that
// says it.
func (d *draft) giveClass(name string, t template, p *pool) {
	class, ok := d.sayable(name, t)
	if !ok {
		d.ownClass(name, t, p)
		return
	}
	to := inCroft(name, class)
	if t.standing {
		frame(t.spec.object, to.at(""))
	}
	d.classSpec(name, t, to)
	d.tags(name, t.spec.At("tags"), p, nil)
	p.spec.NodeClass = &v1alpha1.NodeClass{AWS: class}
}

// sayable is the template in croft.yaml's own words, if it has words for all of it
// and croft check would take them. Nothing is said of any field by it.
func (d *draft) sayable(name string, t template) (*v1alpha1.AWSNodeClass, bool) {
	trial := *d
	apart := t
	apart.spec, apart.kubelet = t.spec.apart(), t.kubelet.apart()
	spec := trial.classSpec(name, apart, inCroft(name, &v1alpha1.AWSNodeClass{}))
	if len(trial.problems) > len(d.problems) || len(t.spec.At("tags").Fields()) > 40 {
		return nil, false
	}
	class, ok := croftClass(spec)
	if !ok {
		return nil, false
	}
	const pool = "pool"
	alone := File{
		Platform: v1alpha1.PlatformSpec{ClusterName: "demo", NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}}},
		Pools:    map[string]v1alpha1.PoolSpec{pool: {NodeClass: &v1alpha1.NodeClass{AWS: class}}},
	}
	return class, len(alone.problems()) == 0
}

// classSpec is the template as the spec of an EC2NodeClass; without tags where it
// goes into croft.yaml, since a Pool has its own.
func (d *draft) classSpec(pool string, t template, to target) map[string]any {
	if t.standing {
		return d.standingSpec(pool, t, to)
	}
	return d.convert(pool, t, to)
}

// croftClass reads the spec of an EC2NodeClass as a class of croft's, in its short
// forms, and says whether all of it has a place there.
func croftClass(spec map[string]any) (*v1alpha1.AWSNodeClass, bool) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, false
	}
	var class v1alpha1.AWSNodeClass
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&class) != nil {
		return nil, false
	}
	shorten(&class)
	return &class, true
}

// shorten writes terms in the short forms that stand for them.
func shorten(class *v1alpha1.AWSNodeClass) {
	if terms := class.AMISelectorTerms; len(terms) == 1 && terms[0].Alias != "" {
		class.AMIAlias, class.AMISelectorTerms = terms[0].Alias, nil
	}
	subnets, groups := class.SubnetSelectorTerms, class.SecurityGroupSelectorTerms
	if len(subnets) == 1 && len(groups) == 1 && len(subnets[0].Tags) > 0 && len(subnets[0].Tags) <= 16 && maps.Equal(subnets[0].Tags, groups[0].Tags) {
		class.Discovery, class.SubnetSelectorTerms, class.SecurityGroupSelectorTerms = subnets[0].Tags, nil, nil
	}
}

// ownClass writes an EC2NodeClass that says all that the template said, and has
// the pool name it.
func (d *draft) ownClass(name string, t template, p *pool) {
	// Two pools may share a template, and have kubelets that differ.
	source := t.spec.object.ID() + abridged(t.kubelet.value)
	class, known := d.classes[source]
	if !known {
		class = t.name
		if slices.ContainsFunc(d.manifests, func(m *unstructured.Unstructured) bool { return m.GetName() == class }) {
			class += "-" + p.from.Name
		}
		d.classes[source] = class
	}
	to := ofOnesOwn(class)
	if t.standing {
		frame(t.spec.object, to.at(""))
	}
	spec := d.classSpec(name, t, to)
	if !known {
		d.manifests = append(d.manifests, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": awsGroup + "/v1", "kind": "EC2NodeClass",
			"metadata": map[string]any{"name": class}, "spec": plainly(spec),
		}})
	}
	p.spec.NodeClass = &v1alpha1.NodeClass{Ref: &v1alpha1.NodeClassRef{Group: awsGroup, Kind: "EC2NodeClass", Name: class}}
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
