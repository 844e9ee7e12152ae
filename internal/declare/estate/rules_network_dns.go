package estate

import (
	"maps"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
)

// checkDNSAtMetadata reports name servers at metadata addresses: the walls open the DNS port there,
// which is right on such platforms and not obvious.
func checkDNSAtMetadata(p *v1alpha1.PlatformSpec) []finding {
	var all []finding
	metadata := ListMetadataAddresses(&p.Network)
	for i, name := range p.ClusterDNS {
		if address, err := netip.ParseAddr(name); err == nil && slices.Contains(metadata, address.Unmap()) {
			all = append(all, makeNote(field.NewPath("spec", "clusterDNS").Index(i),
				"%s is a metadata address, too: tenants may connect to its port %d, to resolve names, and to no other port", name, DNSPort)...)
		}
	}
	return all
}

// nameServers maps the API group of other clouds' node classes to the addresses at which pods
// may resolve names without DNS pods.
var nameServers = map[string]string{
	"karpenter.k8s.gcp":   "GKE: 169.254.169.254 with Cloud DNS, the Service kube-dns with NodeLocal DNSCache",
	"karpenter.azure.com": "AKS: 169.254.10.11 with LocalDNS",
	"eks.amazonaws.com":   "EKS Auto Mode: the cluster's DNS address, such as 172.20.0.10, which each node serves",
}

// checkNameServers warns of platforms on which names may not be resolved by pods that
// croft's policies select.
func checkNameServers(p *v1alpha1.PlatformSpec) []finding {
	if len(p.ClusterDNS) > 0 || p.NodeClass.Ref == nil || nameServers[p.NodeClass.Ref.Group] == "" {
		return nil
	}
	return makeWarning(field.NewPath("spec", "clusterDNS"),
		"without a pod of kube-dns, tenants cannot resolve names; list the nameservers of a pod's /etc/resolv.conf here (%s)", nameServers[p.NodeClass.Ref.Group])
}

// checkDNSPods refuses invalid labels.
func checkDNSPods(p *v1alpha1.PlatformSpec) []finding {
	var all []finding
	for i, pods := range p.Network.DNSPods {
		at := field.NewPath("spec", "network", "dnsPods").Index(i).Child("labels")
		for _, key := range slices.Sorted(maps.Keys(pods.Labels)) {
			switch value := pods.Labels[key]; {
			case !isLabel(key):
				all = append(all, makeFinding(at.Key(key), "%q is not a label; write one such as k8s-app", key)...)
			case len(validation.IsValidLabelValue(value)) > 0:
				all = append(all, makeFinding(at.Key(key), "%q cannot be the value of a label; write letters, digits, '-', '_' and '.', beginning and ending with a letter or digit", value)...)
			}
		}
	}
	return all
}

// checkKubeletDNS warns of a pool whose kubelets give pods a name server that the
// network wall allows only for tenants with Open egress.
func checkKubeletDNS(w *checker, p *v1alpha1.Pool) []finding {
	class := resolveClass(&w.platform, p).AWS
	if class == nil || class.Kubelet == nil {
		return nil
	}
	var all []finding
	known := ListResolvers(&w.platform)
	for i, name := range class.Kubelet.ClusterDNS {
		if address, err := netip.ParseAddr(name); err == nil && !slices.Contains(known, address.Unmap()) {
			all = append(all, makeWarning(field.NewPath("spec", "nodeClass", "aws", "kubelet", "clusterDNS").Index(i),
				"%s is not in platform.clusterDNS: unless pods of kube-dns answer there, tenants with Restricted egress cannot resolve names on these nodes; add it to platform.clusterDNS", name)...)
		}
	}
	return all
}
