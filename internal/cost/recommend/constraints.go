package recommend

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	podresources "k8s.io/component-helpers/resource"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// podTerm selects pods.
type podTerm struct {
	selector labels.Selector
	// namespaces are the namespaces of the pods. All namespaces are meant if there are none.
	namespaces []string
}

func (t podTerm) matches(p *pod) bool {
	return (len(t.namespaces) == 0 || slices.Contains(t.namespaces, p.name.Namespace)) && t.selector.Matches(labels.Set(p.object.Labels))
}

// conflictsWith reports whether two pods must not be on the same node.
func (p *pod) conflictsWith(other *pod) bool {
	return slices.ContainsFunc(p.apart, func(t podTerm) bool { return t.matches(other) }) ||
		slices.ContainsFunc(other.apart, func(t podTerm) bool { return t.matches(p) }) ||
		slices.ContainsFunc(p.ports, func(port string) bool { return slices.Contains(other.ports, port) })
}

// findProblem returns why the simulation cannot place the pods of a pool, or "". It reads the constraints
// of the pods.
func (p *pool) findProblem(c *cluster) string {
	for _, each := range p.pods {
		if problem := each.readConstraints(c.volumes); problem != "" {
			return fmt.Sprintf("pod %s %s", each.name, problem)
		}
	}
	return ""
}

// readConstraints reads the constraints between pods. It returns the first one that the simulation does not know.
func (p *pod) readConstraints(volumes map[types.NamespacedName]*corev1.PersistentVolume) (problem string) {
	if p.object.Annotations[karpenterv1.DoNotDisruptAnnotationKey] != "" {
		return "must not be moved: it has the annotation " + karpenterv1.DoNotDisruptAnnotationKey
	}
	if name := findOtherResource(p.object); name != "" {
		return fmt.Sprintf("requests %s, and the simulation knows only CPU and memory", name)
	}
	if claim := findLocalClaim(p.object, volumes); claim != "" {
		return fmt.Sprintf("has a volume that is bound to its node (claim %s)", claim)
	}
	p.readPorts()
	p.apart = nil
	for _, spread := range p.object.Spec.TopologySpreadConstraints {
		if spread.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		if problem := p.addTerm(spread.TopologyKey, spread.LabelSelector, []string{p.name.Namespace}); problem != "" {
			return "has a topology spread constraint " + problem
		}
	}
	affinity := p.object.Spec.Affinity
	if affinity == nil {
		return ""
	}
	if affinity.PodAffinity != nil {
		for _, term := range affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if !isPlace(term.TopologyKey) {
				return "has a pod affinity for " + term.TopologyKey
			}
		}
	}
	if affinity.PodAntiAffinity == nil {
		return ""
	}
	for _, term := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		namespaces := slices.Clone(term.Namespaces)
		switch {
		case term.NamespaceSelector != nil:
			namespaces = nil // more than it selects, since labels of namespaces are unknown here
		case len(namespaces) == 0:
			namespaces = []string{p.name.Namespace}
		}
		if problem := p.addTerm(term.TopologyKey, term.LabelSelector, namespaces); problem != "" {
			return "has a pod anti-affinity " + problem
		}
	}
	return ""
}

// addTerm adds a constraint between pods. Pods stay in their zone, where they meet its constraints now.
func (p *pod) addTerm(topologyKey string, selector *metav1.LabelSelector, namespaces []string) (problem string) {
	if isPlace(topologyKey) {
		return ""
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || topologyKey != corev1.LabelHostname {
		return "for " + topologyKey
	}
	p.apart = append(p.apart, podTerm{parsed, namespaces})
	return ""
}

// isPlace reports whether a label is for the zone or the region, in which pods stay.
func isPlace(key string) bool {
	return key == corev1.LabelTopologyZone || key == corev1.LabelTopologyRegion || strings.HasSuffix(key, "/zone")
}

// readPorts reads the ports of the host that the pod uses.
func (p *pod) readPorts() {
	p.ports = nil
	for _, list := range [][]corev1.Container{p.object.Spec.InitContainers, p.object.Spec.Containers} {
		for i := range list {
			for _, port := range list[i].Ports {
				if port.HostPort != 0 {
					p.ports = append(p.ports, fmt.Sprint(port.Protocol, port.HostPort))
				}
			}
		}
	}
}

// findOtherResource returns a requested resource other than CPU and memory, or "".
func findOtherResource(object *corev1.Pod) string {
	if len(object.Spec.ResourceClaims) > 0 {
		return "devices"
	}
	requests := podresources.PodRequests(object, podresources.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		quantity := requests[name]
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory && !quantity.IsZero() {
			return string(name)
		}
	}
	return ""
}

// findLocalClaim returns the claim of a volume that only some nodes of its zone can use, or "".
func findLocalClaim(object *corev1.Pod, volumes map[types.NamespacedName]*corev1.PersistentVolume) string {
	for _, v := range object.Spec.Volumes {
		var claim string
		switch {
		case v.PersistentVolumeClaim != nil:
			claim = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			claim = object.Name + "-" + v.Name
		}
		found := volumes[types.NamespacedName{Namespace: object.Namespace, Name: claim}]
		if claim == "" || found == nil || found.Spec.NodeAffinity == nil || found.Spec.NodeAffinity.Required == nil {
			continue
		}
		for _, term := range found.Spec.NodeAffinity.Required.NodeSelectorTerms {
			for _, r := range term.MatchExpressions {
				if !isPlace(r.Key) {
					return claim
				}
			}
		}
	}
	return ""
}
