package network

import (
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/walls/wall/network"
)

// readAgreement reads the consents of two tenants from croft's policy for the connections between
// them. The callee's consent has the ports and the end, since the policy only has the common ones.
func readAgreement(d *draft.Draft, name string, p Policy) {
	other := p.Labels[v1alpha1.ConsentLabel]
	callee, caller := d.Tenants[name], d.Tenants[other]
	if callee == nil || caller == nil || len(p.Spec.Ingress) != 1 || len(p.Spec.Ingress[0].From) != 1 {
		return
	}
	from := p.Spec.Ingress[0].From[0].PodSelector
	if caller.Spec.Network.Calls == nil {
		caller.Spec.Network.Calls = map[string]v1alpha1.Call{}
	}
	caller.Spec.Network.Calls[name] = v1alpha1.Call{Pods: toPodLabels(from)}
	if strings.HasPrefix(p.Name, acceptedPrefix) {
		// The team's consent is its TenantCaller, which stays. As one of the callers, it would be for
		// all namespaces of the tenant.
		if !slices.Contains(callee.Spec.Network.CallersFrom, other) {
			callee.Spec.Network.CallersFrom = append(callee.Spec.Network.CallersFrom, other)
		}
		return
	}
	if callee.Spec.Network.Callers == nil {
		callee.Spec.Network.Callers = map[string]v1alpha1.Caller{}
	}
	callee.Spec.Network.Callers[other] = v1alpha1.Caller{
		Ports: readAgreedPorts(p.Spec.Ingress[0].Ports), Pods: toPodLabels(&p.Spec.PodSelector),
		Services: listReferences(d, v1alpha1.ServiceLabelPrefix, other, name), Gateways: listReferences(d, v1alpha1.GatewayLabelPrefix, other, name),
		Until: v1alpha1.ConsentEnd(p.Annotations[v1alpha1.UntilAnnotation]),
	}
}

// acceptedPrefix begins the names of policies for connections that a team accepted by a TenantCaller.
const acceptedPrefix = network.AcceptPolicy + "-"

// listReferences returns the references to objects of a tenant that the labels of the caller's
// namespaces name.
func listReferences(d *draft.Draft, prefix, caller, tenant string) []v1alpha1.ConsentReference {
	var all []v1alpha1.ConsentReference
	for _, o := range d.List("", "Namespace") {
		if d.FindTenant(o.Name) != caller {
			continue
		}
		for _, label := range o.At("metadata", "labels").Fields() {
			object, isReference := strings.CutPrefix(label.Key(), prefix)
			namespace, name, _ := strings.Cut(object, ".")
			if isReference && d.FindTenant(namespace) == tenant {
				all = append(all, v1alpha1.ConsentReference(namespace+"/"+name))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func readAgreedPorts(ports []networkingv1.NetworkPolicyPort) v1alpha1.ConsentPorts {
	var all v1alpha1.ConsentPorts
	for _, port := range ports {
		first := port.Port.IntVal
		all = append(all, estate.PortRange{Protocol: *port.Protocol, First: first, Last: ptr.Deref(port.EndPort, first)}.ToPort())
	}
	return all
}

func toPodLabels(selector *metav1.LabelSelector) map[string]v1alpha1.LabelValue {
	if selector == nil || len(selector.MatchLabels) == 0 {
		return nil
	}
	all := map[string]v1alpha1.LabelValue{}
	for key, value := range selector.MatchLabels {
		all[key] = v1alpha1.LabelValue(value)
	}
	return all
}

// reportAgreement reports Calico's policy for connections between tenants, which is not read.
func reportAgreement(d *draft.Draft, o *source.Object) {
	if other := o.At("metadata", "labels", v1alpha1.ConsentLabel); other.Found() {
		if strings.HasPrefix(strings.TrimPrefix(o.Name, "default."), acceptedPrefix) {
			d.ReportProblem(o.At("spec"), "allows connections that a team accepted by a TenantCaller, which stays: write tenant %s into network.callersFrom of tenant %s, and the connections into its network.calls",
				other.Text(), d.FindTenant(o.Namespace))
			return
		}
		d.ReportProblem(o.At("spec"), "allows connections between two tenants that agreed to them: write them into network.callers and network.calls of tenants %s and %s",
			d.FindTenant(o.Namespace), other.Text())
	}
}
