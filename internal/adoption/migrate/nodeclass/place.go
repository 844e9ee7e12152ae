package nodeclass

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// target is the destination of a node class's fields: croft.yaml, or a separate EC2NodeClass.
type target struct {
	// name is the target's name in messages.
	name string
	// inDeclaration reports whether the target is croft.yaml, so that croft writes the class.
	inDeclaration bool
	// at returns the new path of a field of an EC2NodeClass, or of the whole class for "".
	at func(field string) string
}

// newCroftTarget returns the class of a pool in croft.yaml as the target.
func newCroftTarget(pool string, class *v1alpha1.AWSNodeClass) target {
	path := draft.PoolField(pool, "nodeClass.aws")
	return target{name: path, inDeclaration: true, at: func(field string) string {
		switch field {
		case "":
			return path
		case "amiSelectorTerms":
			if class.AMIAlias != "" {
				field = "amiAlias"
			}
		case "subnetSelectorTerms", "securityGroupSelectorTerms":
			if class.Discovery != nil {
				field = "discovery"
			}
		}
		return path + "." + field
	}}
}

// newClassTarget returns an EC2NodeClass among the manifests as the target.
func newClassTarget(class string) target {
	return target{name: "EC2NodeClass/" + class, at: func(field string) string {
		return fmt.Sprintf("nodeclasses.yaml: EC2NodeClass/%s spec.%s", class, field)
	}}
}

// giveClass sets a pool's node class: in croft.yaml if it has fields for all settings,
// otherwise as a reference to an EC2NodeClass.
func giveClass(d *draft.Draft, name string, t template, p *draft.Pool) {
	class, ok := tryConvert(d, name, t)
	if !ok {
		writeOwnClass(d, name, t, p)
		return
	}
	to := newCroftTarget(name, class)
	if t.isNodeClass {
		source.AccountMetadata(t.spec.Object(), to.at(""))
	}
	buildClassSpec(d, name, t, to)
	readTags(name, t.spec.At("tags"), p, nil)
	p.Spec.NodeClass = &v1alpha1.NodeClass{AWS: class}
}

// tryConvert returns the template in croft.yaml's fields, if it has fields for all settings
// and croft check would accept them. It sets no outcomes.
func tryConvert(d *draft.Draft, name string, t template) (*v1alpha1.AWSNodeClass, bool) {
	trial := *d
	apart := t
	apart.spec, apart.kubelet = t.spec.Detach(), t.kubelet.Detach()
	spec := buildClassSpec(&trial, name, apart, newCroftTarget(name, &v1alpha1.AWSNodeClass{}))
	if len(trial.Problems) > len(d.Problems) || len(t.spec.At("tags").Fields()) > 40 {
		return nil, false
	}
	class, ok := parseCroftClass(spec)
	if !ok {
		return nil, false
	}
	const pool = "pool"
	alone := draft.File{
		Platform: v1alpha1.PlatformSpec{ClusterName: "demo", NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}}},
		Pools:    map[string]v1alpha1.PoolSpec{pool: {NodeClass: &v1alpha1.NodeClass{AWS: class}}},
	}
	return class, len(alone.Problems()) == 0
}

// buildClassSpec returns the template as the spec of an EC2NodeClass. If it goes into croft.yaml, it
// has no tags, since a Pool has its own.
func buildClassSpec(d *draft.Draft, pool string, t template, to target) map[string]any {
	if t.isNodeClass {
		return copySpec(d, pool, t, to)
	}
	return convertTemplate(d, pool, t, to)
}

// parseCroftClass converts the spec of an EC2NodeClass into croft's class, in its short forms, and
// reports whether croft has fields for all of it.
func parseCroftClass(spec map[string]any) (*v1alpha1.AWSNodeClass, bool) {
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
	shortenTerms(&class)
	return &class, true
}

// shortenTerms replaces terms by their short forms.
func shortenTerms(class *v1alpha1.AWSNodeClass) {
	if terms := class.AMISelectorTerms; len(terms) == 1 && terms[0].Alias != "" {
		class.AMIAlias, class.AMISelectorTerms = terms[0].Alias, nil
	}
	subnets, groups := class.SubnetSelectorTerms, class.SecurityGroupSelectorTerms
	if len(subnets) == 1 && len(groups) == 1 && len(subnets[0].Tags) > 0 && len(subnets[0].Tags) <= 16 && maps.Equal(subnets[0].Tags, groups[0].Tags) {
		class.Discovery, class.SubnetSelectorTerms, class.SecurityGroupSelectorTerms = subnets[0].Tags, nil, nil
	}
}

// writeOwnClass writes an EC2NodeClass with all settings of the template, and makes the pool refer
// to it.
func writeOwnClass(d *draft.Draft, name string, t template, p *draft.Pool) {
	// Two pools may share a template, but have different kubelet settings.
	key := t.spec.Object().ID() + source.Abridge(t.kubelet.Value())
	class, ok := d.Classes[key]
	if !ok {
		class = t.name
		if slices.ContainsFunc(d.Manifests, func(m *unstructured.Unstructured) bool { return m.GetName() == class }) {
			class += "-" + p.From.Name
		}
		d.Classes[key] = class
	}
	to := newClassTarget(class)
	if t.isNodeClass {
		source.AccountMetadata(t.spec.Object(), to.at(""))
	}
	spec := buildClassSpec(d, name, t, to)
	if !ok {
		d.Manifests = append(d.Manifests, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": draft.AWSGroup + "/v1", "kind": "EC2NodeClass",
			"metadata": map[string]any{"name": class}, "spec": normalizeJSON(spec),
		}})
	}
	p.Spec.NodeClass = &v1alpha1.NodeClass{Ref: &v1alpha1.NodeClassRef{Group: draft.AWSGroup, Kind: "EC2NodeClass", Name: class}}
}

// normalizeJSON returns a value after a round trip through JSON, so that equal values compare equal.
func normalizeJSON(v any) any {
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
