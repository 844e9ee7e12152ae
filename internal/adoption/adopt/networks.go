package adopt

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/rules/attack"
)

// Traffic is a connection that the walls newly deny or allow.
type Traffic struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Ends is false if the connection is newly allowed.
	Ends bool `json:"ends"`
}

const (
	// internet is an address outside of the cluster, and metadata the address at which a cloud
	// serves credentials.
	internet, metadata = "203.0.113.10", "169.254.169.254"
	somePort           = 8080
)

// buildWalledNamespaces returns the namespaces with their future labels, and croft's policies for the tenant's
// namespaces in the platform's dialect.
func (a *Adoption) buildWalledNamespaces(namespaces []corev1.Namespace) ([]corev1.Namespace, []client.Object) {
	var policies []client.Object
	labelled := slices.Clone(namespaces)
	for _, o := range a.buildWalls() {
		switch o := o.(type) {
		case *networkingv1.NetworkPolicy, *unstructured.Unstructured:
			policies = append(policies, o) // reach skips objects that are not policies
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

// compareTraffic compares the connections to and from the tenant's namespaces before and after the
// adoption.
func (a *Adoption) compareTraffic(ctx context.Context, p *Plan) error {
	now, err := netpol.TakeSnapshot(ctx, a.client)
	if err != nil {
		return err
	}
	p.Traffic, err = a.findTrafficChanges(now, p)
	return err
}

// findTrafficChanges returns the connections that change with the walls. Other policies remain, and apply
// in both states.
func (a *Adoption) findTrafficChanges(now *netpol.Snapshot, p *Plan) ([]Traffic, error) {
	before, err := netpol.NewFromObjects(now.Namespaces, now.Policies)
	if err != nil {
		return nil, err
	}
	will, err := netpol.NewFromObjects(a.buildFinalState(now, p))
	if err != nil {
		return nil, err
	}
	var all []Traffic
	compare := func(from, to string, f attack.Flow) {
		allows := func(m *netpol.Map) (bool, error) {
			if f.Port != 0 {
				return m.Allows(f)
			}
			v, err := m.Connects(from, to, 0, "TCP")
			return v.Allowed, err
		}
		before, wrong := allows(before)
		then, alsoWrong := allows(will)
		if wrong == nil && alsoWrong == nil && before != then {
			all = append(all, Traffic{From: from, To: to, Ends: before})
		}
	}
	for _, own := range a.tenant.Namespaces {
		if !before.Has(own) {
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

// buildFinalState returns the namespaces and policies once the walls are in place and the replaced
// objects are deleted.
func (a *Adoption) buildFinalState(now *netpol.Snapshot, p *Plan) ([]corev1.Namespace, []client.Object) {
	namespaces, walls := a.buildWalledNamespaces(now.Namespaces)
	replaced := map[apply.Ref]bool{}
	for _, b := range p.ListReplaced() {
		replaced[apply.RefOf(b.object)] = true
	}
	for _, o := range walls {
		replaced[apply.RefOf(o)] = true
	}
	policies := slices.DeleteFunc(slices.Clone(now.Policies), func(o client.Object) bool {
		return replaced[apply.RefOf(o)] || isOurs(o) && slices.Contains(a.tenant.Namespaces, o.GetNamespace())
	})
	return namespaces, append(policies, walls...)
}
