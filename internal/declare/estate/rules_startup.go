package estate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
)

// checkStartupTaints refuses startup taints that the API server or Karpenter would refuse, and
// taints of croft and Karpenter. It warns of taints that tenants' pods may tolerate: these pods
// do not wait.
func checkStartupTaints(w *checker, p *v1alpha1.Pool) []finding {
	var all []finding
	for i, t := range p.Spec.StartupTaints {
		at := field.NewPath("spec", "startupTaints").Index(i)
		same := func(other v1alpha1.StartupTaint) bool { return other.Key == t.Key && other.Effect == t.Effect }
		if why := ExplainInvalidStartupTaint(w.platform.NodePoolKey, t.Key); why != "" {
			all = append(all, makeFinding(at.Child("key"), "%s", why)...)
		} else if first := slices.IndexFunc(p.Spec.StartupTaints, same); first < i {
			all = append(all, makeFinding(at, "startupTaints[%d] has the key %s and the effect %s, too; leave one of them out", first, t.Key, t.Effect)...)
		} else if slices.Contains(w.platform.Tolerations, t.Key) {
			all = append(all, makeWarning(at.Child("key"), "tenants' pods may tolerate %s, since it is in platform.tolerations: "+
				"pods that do start before the taint is removed", t.Key)...)
		}
		if len(validation.IsValidLabelValue(t.Value)) > 0 {
			all = append(all, makeFinding(at.Child("value"), "%q cannot be the value of a taint; "+
				"write letters, digits, '-', '_' and '.', beginning and ending with a letter or digit", t.Value)...)
		}
	}
	return all
}

// ExplainInvalidStartupTaint returns why a pool cannot have a startup taint with a key, or "" if it can.
func ExplainInvalidStartupTaint(nodePoolKey, key string) string {
	domain := "." + karpenterv1.GetLabelDomain(key)
	switch {
	case !isLabel(key):
		return fmt.Sprintf("%q is not the key of a taint; write one such as node.cilium.io/agent-not-ready", key)
	case key == nodePoolKey:
		return fmt.Sprintf("%s is the nodePoolKey, and the pool's nodes keep its taint; leave this taint out", key)
	case key == v1alpha1.NetworksTaint:
		return fmt.Sprintf("the taint %s is reserved for croft; write waitForNetworks: true instead", key)
	case strings.HasSuffix(domain, "."+v1alpha1.GroupVersion.Group):
		return fmt.Sprintf("the taint %s is reserved for croft; leave this taint out", key)
	case strings.HasSuffix(domain, ".karpenter.sh"):
		return fmt.Sprintf("the taint %s is reserved for Karpenter; leave this taint out", key)
	}
	return ""
}
