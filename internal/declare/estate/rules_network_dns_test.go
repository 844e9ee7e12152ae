package estate

import (
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/internal/declare/manifest"
)

// TestDNSFindings compares the findings of check about a platform's DNS.
func TestDNSFindings(t *testing.T) {
	const (
		gke = `ref: {group: karpenter.k8s.gcp, kind: GCENodeClass, name: default}`
		at  = "croft.yaml:1: platform."
	)
	for name, c := range map[string]struct {
		platform, pool, tenants string
		want                    []string
	}{
		"pods of kube-dns":            {platform: `nodeClass: {kwok: {}}`},
		"the cluster's DNS address":   {platform: `clusterDNS: [10.100.0.10], nodeClass: {` + gke + `}`},
		"NodeLocal DNSCache":          {platform: `clusterDNS: [169.254.20.10, 10.0.0.10], nodeClass: {kwok: {}}`},
		"the metadata address of GKE": {platform: `clusterDNS: [169.254.20.10, 169.254.169.254], nodeClass: {` + gke + `}`, want: []string{at + "clusterDNS[1]: note: 169.254.169.254 is a metadata address, too: tenants may connect to its port 53, to resolve names, and to no other port"}},
		"that of Azure":               {platform: `clusterDNS: [168.63.129.16], nodeClass: {kwok: {}}`, want: []string{at + "clusterDNS[0]: note: 168.63.129.16 is a metadata address"}},
		"that of Google over IPv6":    {platform: `clusterDNS: ["FD20:CE:0::254"], nodeClass: {kwok: {}}`, want: []string{at + "clusterDNS[0]: note: FD20:CE:0::254 is a metadata address"}},
		"one through NAT64":           {platform: `clusterDNS: ["64:ff9b::a9fe:a9fe"], nodeClass: {kwok: {}}`, want: []string{at + "clusterDNS[0]: note: 64:ff9b::a9fe:a9fe is a metadata address"}},
		"none of the platform's":      {platform: `clusterDNS: [168.63.129.16], nodeClass: {kwok: {}}, network: {metadataAddresses: [169.254.169.254]}`},
		"nothing on GKE":              {platform: `nodeClass: {` + gke + `}`, want: []string{at + "clusterDNS: warning: without a pod of kube-dns, tenants cannot resolve names; list the nameservers of a pod's /etc/resolv.conf here (GKE: 169.254.169.254 with Cloud DNS"}},
		"nothing on AKS":              {platform: `nodeClass: {ref: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}}`, want: []string{at + "clusterDNS: warning: without a pod of kube-dns, tenants cannot resolve names; list the nameservers of a pod's /etc/resolv.conf here (AKS: 169.254.10.11"}},
		"nothing on EKS Auto Mode":    {platform: `nodeClass: {ref: {group: eks.amazonaws.com, kind: NodeClass, name: default}}`, want: []string{"(EKS Auto Mode: "}},
		"nothing on another cloud":    {platform: `nodeClass: {ref: {group: example.org, kind: NodeClass, name: default}}`},
		"the stub of systemd":         {platform: `clusterDNS: [127.0.0.53], nodeClass: {kwok: {}}`, want: []string{at + `clusterDNS[0]: "127.0.0.53" must be an address that pods can reach: loopback addresses, such as 127.0.0.53, lead to the pod itself`}},
		"the loopback of IPv6":        {platform: `clusterDNS: ["::1"], nodeClass: {kwok: {}}`, want: []string{at + `clusterDNS[0]: "::1" must be an address that pods can reach`}},
		"any address":                 {platform: `clusterDNS: [0.0.0.0], nodeClass: {kwok: {}}`, want: []string{at + `clusterDNS[0]: "0.0.0.0" must be an address that pods can reach`}},
		"multicast DNS":               {platform: `clusterDNS: [224.0.0.251], nodeClass: {kwok: {}}`, want: []string{at + `clusterDNS[0]: "224.0.0.251" must be an address that pods can reach`}},
		"other servers on nodes":      {platform: `clusterDNS: [10.0.0.10], nodeClass: {aws: {role: a}}`, pool: `nodeClass: {aws: {kubelet: {clusterDNS: [10.0.0.10, 10.0.0.2]}}}`, want: []string{"pools.jobs.nodeClass.aws.kubelet.clusterDNS[1]: warning: 10.0.0.2 is not in platform.clusterDNS: unless pods of kube-dns answer there, tenants with Restricted egress cannot resolve names on these nodes; add it to platform.clusterDNS"}},
		"pods of one's own":           {platform: `nodeClass: {kwok: {}}, network: {dnsPods: [{namespace: dns, labels: {app: coredns}, port: 1053}]}`},
		"labels that no pod has":      {platform: `nodeClass: {kwok: {}}, network: {dnsPods: [{namespace: dns, labels: {"a b": c, app: "-"}}]}`, want: []string{at + `network.dnsPods[0].labels["a b"]: "a b" is not a label`, at + `network.dnsPods[0].labels.app: "-" cannot be the value of a label`}},
		"no labels":                   {platform: `nodeClass: {kwok: {}}, network: {dnsPods: [{namespace: dns, labels: {}}]}`, want: []string{at + "network.dnsPods[0].labels: "}},
		"a namespace of DNS pods":     {platform: `nodeClass: {kwok: {}}, network: {dnsPods: [{namespace: dns, labels: {app: coredns}}]}`, tenants: `, dns: {pool: jobs}, openshift-dns: {pool: jobs}`, want: []string{"tenants.dns: dns is the name of a namespace of the platform", "tenants.openshift-dns: openshift-dns is the name of a namespace of the platform"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, problems := manifest.Parse("croft.yaml", []byte("platform: {clusterName: demo, "+c.platform+"}\npools: {jobs: {"+c.pool+"}}\ntenants: {shop: {pool: jobs}"+c.tenants+"}\n"))
			e, more := Build(d)
			all := slices.Concat(problems, more)
			if e != nil {
				all = append(all, e.Warnings...)
			}
			if len(all) != len(c.want) {
				t.Fatalf("got\n%v\nwant %d findings", all.Error(), len(c.want))
			}
			for i, p := range all {
				if !strings.Contains(p.Error(), c.want[i]) {
					t.Errorf("got %s\nwant %s", p.Error(), c.want[i])
				}
			}
		})
	}
}
