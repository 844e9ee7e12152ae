package adopt

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/reach"
)

// Traffic is a connection that the walls end, or that they let through where it was
// not before.
type Traffic struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Ends is false where the connection is new.
	Ends bool `json:"ends"`
}

const (
	// internet is an address of nobody's, and metadata that at which a cloud hands
	// out credentials.
	internet, metadata = "203.0.113.10", "169.254.169.254"
	somePort           = 8080
)

// walled are the namespaces as they will be labelled, and croft's policies for the
// tenant's, in whichever dialect they are written.
func (a *Adoption) walled(namespaces []corev1.Namespace) ([]corev1.Namespace, []client.Object) {
	var policies []client.Object
	labelled := slices.Clone(namespaces)
	for _, o := range a.standing() {
		switch o := o.(type) {
		case *networkingv1.NetworkPolicy, *unstructured.Unstructured:
			policies = append(policies, o) // reach passes over what is none
		case *corev1.Namespace:
			i := slices.IndexFunc(labelled, func(n corev1.Namespace) bool { return n.Name == o.Name })
			if i < 0 {
				labelled = append(labelled, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Name}})
				i = len(labelled) - 1
			}
			labelled[i] = *labelled[i].DeepCopy()
			labelled[i].Labels = maps.Clone(labelled[i].Labels)
			if labelled[i].Labels == nil {
				labelled[i].Labels = map[string]string{}
			}
			maps.Copy(labelled[i].Labels, o.Labels)
			labelled[i].Labels[corev1.LabelMetadataName] = o.Name
		}
	}
	return labelled, policies
}

// traffic compares who reaches the tenant's namespaces, and whom they reach, before
// and after.
func (a *Adoption) traffic(ctx context.Context, p *Plan) error {
	now, err := reach.Take(ctx, a.client)
	if err != nil {
		return err
	}
	p.Traffic, err = a.changes(now, p)
	return err
}

// changes are the connections that are not as they were once the walls stand. Other
// policies stay, and count in both.
func (a *Adoption) changes(now *reach.Snapshot, p *Plan) ([]Traffic, error) {
	was, err := reach.Of(now.Namespaces, now.Policies)
	if err != nil {
		return nil, err
	}
	will, err := reach.Of(a.after(now, p))
	if err != nil {
		return nil, err
	}
	var all []Traffic
	compare := func(from, to string, f attack.Flow) {
		allows := func(m *reach.Map) (bool, error) {
			if f.Port != 0 {
				return m.Allows(f)
			}
			v, err := m.Connects(from, to, 0, "TCP")
			return v.Allowed, err
		}
		before, wrong := allows(was)
		then, alsoWrong := allows(will)
		if wrong == nil && alsoWrong == nil && before != then {
			all = append(all, Traffic{From: from, To: to, Ends: before})
		}
	}
	for _, own := range a.tenant.Namespaces {
		if !was.Has(own) {
			continue
		}
		for _, n := range now.Namespaces {
			compare(n.Name, own, attack.Flow{})
			if n.Name != own {
				compare(own, n.Name, attack.Flow{})
			}
		}
		compare("outside", own, attack.Flow{FromIP: internet, ToNamespace: own, Port: somePort, Protocol: "TCP"})
		compare(own, "outside", attack.Flow{FromNamespace: own, ToIP: internet, Port: 443, Protocol: "TCP"})
		compare(own, "instance metadata", attack.Flow{FromNamespace: own, ToIP: metadata, Port: 80, Protocol: "TCP"})
	}
	return all, nil
}

// after are the namespaces and policies once the walls stand and what they replace is
// gone.
func (a *Adoption) after(now *reach.Snapshot, p *Plan) ([]corev1.Namespace, []client.Object) {
	namespaces, walls := a.walled(now.Namespaces)
	gone := map[apply.Ref]bool{}
	for _, b := range p.Replaced() {
		gone[apply.RefOf(b.object)] = true
	}
	for _, o := range walls {
		gone[apply.RefOf(o)] = true
	}
	policies := slices.DeleteFunc(slices.Clone(now.Policies), func(o client.Object) bool {
		return gone[apply.RefOf(o)] || isOurs(o) && slices.Contains(a.tenant.Namespaces, o.GetNamespace())
	})
	return namespaces, append(policies, walls...)
}

// judgeNetworkPolicy asks whether everything that a policy lets through is let
// through by croft's. What it denies croft's deny too: they select every pod, both
// ways.
func (a *Adoption) judgeNetworkPolicy(o *unstructured.Unstructured) (bool, string) {
	var policy networkingv1.NetworkPolicy
	if into(o, &policy) != nil {
		return false, ""
	}
	own := policy.Namespace
	stranger := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "croft-adopt-stranger"}}
	system := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, Labels: map[string]string{corev1.LabelMetadataName: metav1.NamespaceSystem}}}
	known := []corev1.Namespace{stranger, system}
	for _, name := range a.estate.Platform.Network.PlatformNamespaces {
		known = append(known, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}})
	}
	known, walls := a.walled(known)
	judge, err := reach.Of(known, walls)
	if err != nil {
		return false, "cannot be compared: " + err.Error()
	}
	within := func(flows []attack.Flow, ingress bool) bool {
		for _, f := range flows {
			v, err := judge.Judge(f)
			if err != nil || ingress && !v.Ingress.Allowed || !ingress && !v.Egress.Allowed {
				return false
			}
		}
		return true
	}
	for _, rule := range policy.Spec.Ingress {
		for _, peer := range everybody(rule.From) {
			flows, ok := flowsOf(peer, own, known, rule.Ports, func(f *attack.Flow, namespace, ip string, _ map[string]string) {
				f.FromNamespace, f.FromIP, f.ToNamespace = namespace, ip, own
			})
			if !ok || !within(flows, true) {
				return false, "lets in more than the tenant's walls: stays, and adds up with them"
			}
		}
	}
	for _, rule := range policy.Spec.Egress {
		for _, peer := range everybody(rule.To) {
			flows, ok := flowsOf(peer, own, known, rule.Ports, func(f *attack.Flow, namespace, ip string, pod map[string]string) {
				f.FromNamespace, f.ToNamespace, f.ToIP, f.ToLabels = own, namespace, ip, pod
			})
			if !ok || !within(flows, false) {
				return false, "lets out more than the tenant's walls: stays, and adds up with them"
			}
		}
	}
	return true, "croft's policies let through all that it does, and deny the rest"
}

// everybody is what a rule without peers means.
func everybody(peers []networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyPeer {
	if len(peers) > 0 {
		return peers
	}
	return []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{}},
		{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}},
	}
}

// flowsOf are connections that a peer stands for. It is false where they cannot be
// told in full, so that nobody relies on them.
func flowsOf(peer networkingv1.NetworkPolicyPeer, own string, known []corev1.Namespace, ports []networkingv1.NetworkPolicyPort,
	fill func(*attack.Flow, string, string, map[string]string)) ([]attack.Flow, bool) {
	type side struct {
		namespace, ip string
		pod           map[string]string
	}
	var sides []side
	switch {
	case peer.IPBlock != nil:
		block, err := netip.ParsePrefix(peer.IPBlock.CIDR)
		if err != nil {
			return nil, false
		}
		sides = append(sides, side{ip: block.Masked().Addr().Next().String()})
		for _, address := range []string{internet, metadata} {
			if block.Contains(netip.MustParseAddr(address)) {
				sides = append(sides, side{ip: address})
			}
		}
	default:
		var pod map[string]string
		if peer.PodSelector != nil {
			pod = peer.PodSelector.MatchLabels
		}
		for _, n := range known {
			if peer.NamespaceSelector == nil && n.Name == own || peer.NamespaceSelector != nil && matches(peer.NamespaceSelector, n.Labels) {
				sides = append(sides, side{namespace: n.Name, pod: pod})
			}
		}
		// A selector that none of these namespaces has may yet choose others.
		if len(sides) == 0 {
			return nil, false
		}
	}
	if len(ports) == 0 {
		ports = []networkingv1.NetworkPolicyPort{{}}
	}
	var flows []attack.Flow
	for _, s := range sides {
		for _, port := range ports {
			f := attack.Flow{Port: somePort, Protocol: string(corev1.ProtocolTCP)}
			if port.Protocol != nil {
				f.Protocol = string(*port.Protocol)
			}
			if port.Port != nil {
				f.Port = port.Port.IntValue() // of a name 0, which no policy of croft's allows by itself
			}
			fill(&f, s.namespace, s.ip, s.pod)
			flows = append(flows, f)
			if port.EndPort != nil {
				f.Port = int(*port.EndPort)
				flows = append(flows, f)
			}
		}
	}
	return flows, true
}

func matches(selector *metav1.LabelSelector, have map[string]string) bool {
	chosen, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || chosen.Matches(labels.Set(have))
}
