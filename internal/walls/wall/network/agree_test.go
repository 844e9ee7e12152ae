package network_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall/network"
)

// TestDialectsAgree evaluates the same connections against the objects of each dialect. All
// dialects must allow the same connections.
func TestDialectsAgree(t *testing.T) {
	tenants := []*estate.Tenant{
		{Name: "shop", Namespaces: []string{"shop", "shop-ci"}, Egress: v1alpha1.EgressOpen},
		{Name: "bank", Namespaces: []string{"bank"}, Egress: v1alpha1.EgressRestricted, AllowCIDRs: []string{"10.20.0.0/16"}},
	}
	var namespaces []corev1.Namespace
	of := map[string]string{"shop": "shop", "shop-ci": "shop", "bank": "bank", "ingress": "", "default": "", "kube-system": ""}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		labels := map[string]string{corev1.LabelMetadataName: name}
		if of[name] != "" {
			labels[v1alpha1.TenantLabel] = of[name]
		}
		namespaces = append(namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	var flows []attack.Flow
	for _, port := range []struct {
		number   int
		protocol string
	}{{8080, "TCP"}, {53, "UDP"}, {53, "TCP"}, {80, "TCP"}} {
		flow := func(f attack.Flow) {
			f.Port, f.Protocol = port.number, port.protocol
			flows = append(flows, f)
		}
		for from := range maps.Keys(of) {
			for to := range maps.Keys(of) {
				flow(attack.Flow{FromNamespace: from, ToNamespace: to})
				flow(attack.Flow{FromNamespace: from, ToNamespace: to, ToLabels: map[string]string{"k8s-app": "kube-dns"}})
			}
			for _, ip := range []string{"203.0.113.10", "169.254.169.254", "fd00:ec2::254", "169.254.170.2", "64:ff9b::6464:64c8", "169.254.170.23", "fd00:ec2::23", "2001:db8::1", "10.20.1.1", "10.100.0.10"} {
				flow(attack.Flow{FromNamespace: from, ToIP: ip})
				flow(attack.Flow{FromIP: ip, ToNamespace: from})
			}
		}
	}
	judges := map[string]*netpol.Map{}
	for name, dialect := range dialects {
		dialect.PlatformNamespaces = []string{"ingress"}
		p := &estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{Network: dialect, ClusterDNS: []string{"10.100.0.10"}}}
		var objects []client.Object
		for _, tenant := range tenants {
			objects = append(objects, network.Wall{}.Tenant(p, tenant)...)
		}
		m, err := netpol.NewFromObjects(namespaces, objects)
		if err != nil {
			t.Fatal(err)
		}
		judges[name] = m
	}
	allowed := 0
	for _, f := range flows {
		want, err := judges["kubernetes"].Allows(f)
		if err != nil {
			t.Fatal(err)
		}
		if want {
			allowed++
		}
		for name, m := range judges {
			got, err := m.Evaluate(f)
			if err != nil || got.Allowed != want {
				t.Errorf("%s evaluates %s to %v (%+v); kubernetes to %v", name, fmt.Sprintf("%+v", f), got.Allowed, got, want)
			}
		}
	}
	if allowed == 0 || allowed == len(flows) {
		t.Errorf("%d of %d connections are let through: that tells nothing apart", allowed, len(flows))
	}
	t.Logf("%d of %d connections are let through, in every dialect", allowed, len(flows))
}
