package karpenter

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/nodeclass"
	"croft.dev/croft/internal/adoption/migrate/source"
)

const (
	capacityKey = "karpenter.sh/capacity-type"
	awsInstance = "karpenter.k8s.aws/instance-"
)

// formerKeys maps former names of labels to Karpenter's current names.
var formerKeys = map[string]string{
	"beta.kubernetes.io/arch":                  corev1.LabelArchStable,
	"beta.kubernetes.io/os":                    corev1.LabelOSStable,
	"beta.kubernetes.io/instance-type":         corev1.LabelInstanceTypeStable,
	"failure-domain.beta.kubernetes.io/zone":   corev1.LabelTopologyZone,
	"failure-domain.beta.kubernetes.io/region": corev1.LabelTopologyRegion,
	"node.k8s.aws/capacity-type":               capacityKey,
}

// readRequirements converts each requirement into croft's field for it, or copies it to the pool's
// requirements.
func readRequirements(d *draft.Draft, name string, list source.Field, p *draft.Pool) {
	instances := &p.Spec.Instances
	for _, r := range list.Items() {
		key, operator, values := r.At("key").Text(), r.At("operator").Text(), r.At("values").Texts()
		if now, renamed := formerKeys[key]; renamed {
			r.At("key").MarkChanged(draft.PoolField(name, "instances"), "Karpenter v1 calls it %s", now)
			key = now
		}
		field := draft.PoolField(name, "instances.requirements")
		plain := operator == string(corev1.NodeSelectorOpIn) && !r.At("minValues").Found()
		switch {
		case key == corev1.LabelOSStable:
			r.MarkKept(draft.PoolField(name, "instances"))
			if operator != string(corev1.NodeSelectorOpIn) || !slices.Equal(values, []string{string(corev1.Linux)}) {
				r.MarkNotKept("croft's nodes run Linux")
				d.ReportProblem(r, "croft's nodes run only Linux, and pool %s requires another system: keep a NodePool of your own outside of croft for these pods", name)
			}
			continue
		case key == capacityKey && plain && instances.CapacityTypes == nil:
			field = draft.PoolField(name, "instances.capacityTypes")
			instances.CapacityTypes = draft.DistinctAs[v1alpha1.CapacityType](values)
		case key == corev1.LabelInstanceTypeStable && plain && instances.InstanceTypes == nil:
			field = draft.PoolField(name, "instances.instanceTypes")
			instances.InstanceTypes = values
		case key == corev1.LabelArchStable && plain && instances.Architectures == nil:
			field = draft.PoolField(name, "instances.architectures")
			instances.Architectures = draft.DistinctAs[v1alpha1.Architecture](values)
		case key == d.Key:
			if operator == string(corev1.NodeSelectorOpIn) && slices.Equal(values, []string{name}) {
				r.MarkKeptAs("platform.nodePoolKey", "croft sets this label")
			} else {
				r.MarkChanged("platform.nodePoolKey", "nodes will have the value %s, the pool's name: change selectors that use it", name)
			}
			continue
		default:
			requirement := v1alpha1.Requirement{Key: key}
			requirement.Operator, requirement.Values = convertOperator(operator, r.At("values"))
			if n, ok := r.At("minValues").Number(); ok {
				least := int(n)
				requirement.MinValues = &least
			}
			instances.Requirements = append(instances.Requirements, requirement)
		}
		r.MarkKept(field)
	}
	list.MarkKept(draft.PoolField(name, "instances"))
}

// convertOperator converts Gte and Lte, which a Pool does not have, into Gt and Lt with the preceding
// or following number.
func convertOperator(operator string, values source.Field) (corev1.NodeSelectorOperator, []string) {
	texts := values.Texts()
	if len(texts) != 1 || operator != "Gte" && operator != "Lte" {
		return corev1.NodeSelectorOperator(operator), texts
	}
	n, ok := values.Items()[0].Number()
	switch {
	case !ok:
		return corev1.NodeSelectorOperator(operator), texts
	case operator == "Gte":
		return corev1.NodeSelectorOpGt, []string{strconv.FormatInt(n-1, 10)}
	default:
		return corev1.NodeSelectorOpLt, []string{strconv.FormatInt(n+1, 10)}
	}
}

// hasRequirement reports whether there is a requirement for one of the labels.
func hasRequirement(instances *v1alpha1.Instances, keys ...string) bool {
	return slices.ContainsFunc(instances.Requirements, func(r v1alpha1.Requirement) bool { return slices.Contains(keys, r.Key) })
}

// writeWebhookDefaults sets the defaults that Karpenter's webhook used to write into a Provisioner.
// Current versions have no such webhook.
func writeWebhookDefaults(name string, spec source.Field, instances *v1alpha1.Instances) {
	list := spec.At("requirements")
	if instances.CapacityTypes == nil && !hasRequirement(instances, capacityKey) {
		instances.CapacityTypes = []v1alpha1.CapacityType{"on-demand"}
		list.MarkUnset(draft.PoolField(name, "instances.capacityTypes"), "no capacity type: Karpenter's webhook set on-demand, and croft.yaml sets it")
	}
	if instances.Architectures == nil && !hasRequirement(instances, corev1.LabelArchStable) {
		instances.Architectures = []v1alpha1.Architecture{"amd64"}
		list.MarkUnset(draft.PoolField(name, "instances.architectures"), "no architecture: Karpenter's webhook set amd64, and croft.yaml sets it")
	}
	if nodeclass.IsAWS(spec) && instances.InstanceTypes == nil && !hasRequirement(instances, corev1.LabelInstanceTypeStable, awsInstance+"family", awsInstance+"category", awsInstance+"generation") {
		instances.Requirements = append(instances.Requirements,
			v1alpha1.Requirement{Key: awsInstance + "category", Operator: corev1.NodeSelectorOpIn, Values: []string{"c", "m", "r"}},
			v1alpha1.Requirement{Key: awsInstance + "generation", Operator: corev1.NodeSelectorOpGt, Values: []string{"2"}})
		list.MarkUnset(draft.PoolField(name, "instances.requirements"), "no instance type, family, category or generation: Karpenter's webhook required the categories c, m and r, "+
			"newer than generation 2, and croft.yaml requires them")
	}
}

// allowAnyInstance makes a NodePool's defaults explicit: without requirements it accepts every
// instance, but a Pool defaults to on-demand and amd64.
func allowAnyInstance(name string, list source.Field, instances *v1alpha1.Instances) {
	if instances.CapacityTypes == nil {
		instances.CapacityTypes = []v1alpha1.CapacityType{"on-demand", "spot", "reserved"}
		if !hasRequirement(instances, capacityKey) {
			list.MarkUnset(draft.PoolField(name, "instances.capacityTypes"), "no capacity type: Karpenter uses all, and croft.yaml names them, since a Pool's default is on-demand")
		}
	}
	if instances.Architectures == nil && (instances.InstanceTypes == nil || hasRequirement(instances, corev1.LabelArchStable)) {
		instances.Architectures = []v1alpha1.Architecture{"amd64", "arm64"}
		if !hasRequirement(instances, corev1.LabelArchStable) {
			list.MarkUnset(draft.PoolField(name, "instances.architectures"), "no architecture: Karpenter uses all, and croft.yaml names them, since a Pool's default is amd64")
		}
	}
}
