package kubernetes

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// Validate finds what is unknown to Judge in a policy that no API server has taken, such as
// one in a file. The error names the fields, as the API server does.
func Validate(p *networkingv1.NetworkPolicy) error {
	spec := field.NewPath("spec")
	errs := validSelector(spec.Child("podSelector"), &p.Spec.PodSelector)
	for i, r := range p.Spec.Ingress {
		at := spec.Child("ingress").Index(i)
		errs = append(append(errs, validPeers(at.Child("from"), r.From)...), validPorts(at.Child("ports"), r.Ports)...)
	}
	for i, r := range p.Spec.Egress {
		at := spec.Child("egress").Index(i)
		errs = append(append(errs, validPeers(at.Child("to"), r.To)...), validPorts(at.Child("ports"), r.Ports)...)
	}
	return errs.ToAggregate()
}

func validPeers(at *field.Path, peers []networkingv1.NetworkPolicyPeer) (errs field.ErrorList) {
	for i := range peers {
		p, at := &peers[i], at.Index(i)
		switch {
		case p.IPBlock == nil && p.PodSelector == nil && p.NamespaceSelector == nil:
			errs = append(errs, field.Required(at, "name an ipBlock, or a podSelector, a namespaceSelector or both"))
		case p.IPBlock != nil && (p.PodSelector != nil || p.NamespaceSelector != nil):
			errs = append(errs, field.Forbidden(at, "an ipBlock stands alone: write the selectors as a peer of their own"))
		case p.IPBlock != nil:
			errs = append(errs, validRange(at.Child("ipBlock", "cidr"), p.IPBlock.CIDR)...)
			for j, text := range p.IPBlock.Except {
				errs = append(errs, validRange(at.Child("ipBlock", "except").Index(j), text)...)
			}
		default:
			errs = append(errs, validSelector(at.Child("podSelector"), p.PodSelector)...)
			errs = append(errs, validSelector(at.Child("namespaceSelector"), p.NamespaceSelector)...)
		}
	}
	return errs
}

func validRange(at *field.Path, text string) field.ErrorList {
	if _, _, err := netutils.ParseCIDRSloppy(text); err != nil {
		return field.ErrorList{field.Invalid(at, text, "write a range of addresses, such as 10.0.0.0/8")}
	}
	return nil
}

func validSelector(at *field.Path, s *metav1.LabelSelector) field.ErrorList {
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		return field.ErrorList{field.Invalid(at, metav1.FormatLabelSelector(s), err.Error())}
	}
	return nil
}

func validPorts(at *field.Path, ports []networkingv1.NetworkPolicyPort) (errs field.ErrorList) {
	for i, p := range ports {
		if p.EndPort == nil {
			continue
		}
		at := at.Index(i).Child("endPort")
		switch {
		case p.Port == nil || p.Port.Type == intstr.String:
			errs = append(errs, field.Forbidden(at, "a range begins at a port that has a number"))
		case *p.EndPort < p.Port.IntVal:
			errs = append(errs, field.Invalid(at, *p.EndPort, "a range does not end before its beginning"))
		}
	}
	return errs
}
