package network_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall/network"
)

// TestDNSOfPlatforms compares the policies of each dialect with the DNS of common platforms.
// DNS must be allowed, and no other traffic to the same address or pod.
func TestDNSOfPlatforms(t *testing.T) {
	pod := func(namespace, key, value string, port int) attack.Flow {
		return attack.Flow{ToNamespace: namespace, ToLabels: map[string]string{key: value}, Port: port}
	}
	at := func(ip string) attack.Flow { return attack.Flow{ToIP: ip, Port: 53} }
	kubeDNS := pod("kube-system", "k8s-app", "kube-dns", 53)
	for name, platform := range map[string]struct {
		clusterDNS []string
		network    v1alpha1.PlatformNetwork
		dns        []attack.Flow
	}{
		"EKS, AKS, k3s, kubeadm: pods of kube-dns": {dns: []attack.Flow{kubeDNS}},
		"GKE: Cloud DNS":                                    {clusterDNS: []string{"169.254.169.254"}, dns: []attack.Flow{at("169.254.169.254")}},
		"GKE: Cloud DNS over IPv6":                          {clusterDNS: []string{"FD20:CE:0::254"}, dns: []attack.Flow{at("fd20:ce::254")}},
		"GKE: Cloud DNS behind NodeLocal DNSCache":          {clusterDNS: []string{"169.254.20.10", "169.254.169.254"}, dns: []attack.Flow{at("169.254.20.10"), at("169.254.169.254")}},
		"Azure: the host's DNS":                             {clusterDNS: []string{"168.63.129.16"}, dns: []attack.Flow{at("168.63.129.16")}},
		"AKS: LocalDNS":                                     {clusterDNS: []string{"169.254.10.11"}, dns: []attack.Flow{at("169.254.10.11"), kubeDNS}},
		"Alibaba: only its own metadata address":            {clusterDNS: []string{"100.100.100.200", "100.100.2.136"}, network: v1alpha1.PlatformNetwork{MetadataAddresses: []string{"100.100.100.200"}}, dns: []attack.Flow{at("100.100.100.200"), at("100.100.2.136")}},
		"DNS64: a metadata address through NAT64":           {clusterDNS: []string{"64:ff9b::a9fe:a9fe"}, dns: []attack.Flow{at("64:ff9b::a9fe:a9fe")}},
		"NodeLocal DNSCache, iptables: the Service as well": {clusterDNS: []string{"169.254.20.10", "10.96.0.10"}, dns: []attack.Flow{at("169.254.20.10"), at("10.96.0.10"), kubeDNS}},
		"NodeLocal DNSCache, Cilium and GKE Dataplane V2":   {dns: []attack.Flow{kubeDNS, pod("kube-system", "k8s-app", "node-local-dns", 53)}},
		"OpenShift":                      {clusterDNS: []string{"172.30.0.10"}, dns: []attack.Flow{at("172.30.0.10"), pod("openshift-dns", "dns.operator.openshift.io/daemonset-dns", "default", 5353)}},
		"Gardener: CoreDNS on port 8053": {dns: []attack.Flow{pod("kube-system", "k8s-app", "kube-dns", 8053)}},
		"EKS Auto Mode: on each node":    {clusterDNS: []string{"172.20.0.10"}, dns: []attack.Flow{at("172.20.0.10")}},
		"DNS pods of the platform's own, by two labels": {
			network: v1alpha1.PlatformNetwork{DNSPods: []v1alpha1.DNSPods{{Namespace: "dns", Labels: map[string]string{"app": "coredns", "tier": "dns"}, Port: 1053}}},
			dns:     []attack.Flow{kubeDNS, {ToNamespace: "dns", ToLabels: map[string]string{"app": "coredns", "tier": "dns"}, Port: 1053}},
		},
		"DNS pods of the platform's own on the usual port": {
			network: v1alpha1.PlatformNetwork{DNSPods: []v1alpha1.DNSPods{{Namespace: "dns", Labels: map[string]string{"app": "coredns"}}}},
			dns:     []attack.Flow{pod("dns", "app", "coredns", 53)},
		},
		"outside of the cluster, both families": {clusterDNS: []string{"192.0.2.53", "2001:db8::53", "fd00::a"}, dns: []attack.Flow{at("192.0.2.53"), at("2001:db8::53"), at("fd00::a")}},
	} {
		for dialect, how := range dialects {
			t.Run(name+"/"+dialect, func(t *testing.T) {
				how.MetadataAddresses, how.DNSPods = platform.network.MetadataAddresses, platform.network.DNSPods
				p := &estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{Network: how, ClusterDNS: platform.clusterDNS}}
				for _, egress := range []v1alpha1.Egress{v1alpha1.EgressOpen, v1alpha1.EgressRestricted} {
					expectDNS(t, p, egress, platform.dns)
				}
			})
		}
	}
}

// expectDNS expects that a tenant's pods can reach DNS, but neither other ports of it nor
// other metadata addresses.
func expectDNS(t *testing.T, p *estate.Platform, egress v1alpha1.Egress, dns []attack.Flow) {
	t.Helper()
	shop := &estate.Tenant{Name: "shop", Namespaces: []string{"shop"}, Egress: egress}
	var namespaces []corev1.Namespace
	for _, name := range []string{"shop", "other", "kube-system", "openshift-dns", "dns"} {
		labels := map[string]string{corev1.LabelMetadataName: name}
		if name == "shop" {
			labels[v1alpha1.TenantLabel] = name
		}
		namespaces = append(namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	m, err := netpol.NewFromObjects(namespaces, network.Wall{}.Tenant(p, shop))
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want bool, f attack.Flow, protocol string) {
		t.Helper()
		f.FromNamespace, f.Protocol = "shop", protocol
		got, err := m.Evaluate(f)
		if err != nil || got.Allowed != want {
			t.Errorf("%s egress: %+v is allowed: %v, want %v (%v)", egress, f, got.Allowed, want, err)
		}
	}
	open := map[string]bool{}
	for _, f := range dns {
		open[fmt.Sprint(f.ToIP)] = true
		expect(true, f, "UDP")
		expect(true, f, "TCP")
		if egress == v1alpha1.EgressOpen && !isMetadata(p, f.ToIP) {
			continue // everything outside of the cluster is allowed
		}
		expect(false, f, "SCTP")
		for _, port := range []int{80, 443, 988, 9153} {
			other := f
			other.Port = port
			expect(false, other, "TCP")
			expect(false, other, "UDP")
		}
		if f.ToNamespace != "" {
			f.ToNamespace = "other"
			expect(false, f, "UDP")
			expect(false, attack.Flow{ToNamespace: "kube-system", Port: f.Port}, "UDP")
		}
	}
	for _, address := range estate.ListMetadataAddresses(&p.Network) {
		ip := address.String()
		expect(false, attack.Flow{ToIP: ip, Port: 80}, "TCP")
		if !open[ip] {
			expect(false, attack.Flow{ToIP: ip, Port: 53}, "UDP")
		}
	}
}

func isMetadata(p *estate.Platform, ip string) bool {
	for _, address := range estate.ListMetadataAddresses(&p.Network) {
		if address.String() == ip {
			return true
		}
	}
	return false
}
