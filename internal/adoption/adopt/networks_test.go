package adopt

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/observe/netpol"
)

// dialects are all dialects of the network wall. The plan is the same in each.
var dialects = map[string]string{
	"Kubernetes":           "{platformNamespaces: [ingress]}",
	"Calico":               "{platformNamespaces: [ingress], dialect: Calico}",
	"Calico's storage":     "{platformNamespaces: [ingress], dialect: Calico, calico: {apiGroup: crd.projectcalico.org}}",
	"ClusterNetworkPolicy": "{platformNamespaces: [ingress], dialect: ClusterNetworkPolicy}",
	"AWS":                  "{platformNamespaces: [ingress], dialect: AWS}",
}

// newAdoption returns the adoption of tenant shop, with its namespaces shop and shop-ci.
func newAdoption(t *testing.T, network, more string) *Adoption {
	t.Helper()
	text := "platform: {clusterName: demo, nodeClass: {kwok: {}}, network: " + network + "}\npools: {apps: {}}\n" +
		"tenants: {shop: {pool: apps, namespaces: [shop, shop-ci]" + more + "}}\n"
	parsed, problems := manifest.Parse("croft.yaml", []byte(text))
	built, moreProblems := estate.Build(parsed)
	if err := append(problems, moreProblems...).Err(); err != nil {
		t.Fatal(err)
	}
	a, err := New(nil, built, "shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// parseNetworkPolicy returns a NetworkPolicy of namespace shop.
func parseNetworkPolicy(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	return parseObject(t, "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: own, namespace: shop}, spec: "+spec+"}")
}

func parseTypedPolicy(t *testing.T, spec string) *networkingv1.NetworkPolicy {
	t.Helper()
	var policy networkingv1.NetworkPolicy
	if err := decodeInto(parseNetworkPolicy(t, spec), &policy); err != nil {
		t.Fatal(err)
	}
	return &policy
}

// TestCompareNetworkPolicy fails if a policy is classified as replaced although it allows
// connections that croft's walls deny: deleting it would end them.
func TestCompareNetworkPolicy(t *testing.T) {
	for name, test := range map[string]struct {
		spec     string
		replaced bool
	}{
		"denies all":               {"{podSelector: {}, policyTypes: [Ingress, Egress]}", true},
		"its own pods":             {"{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}", true},
		"the other of its own":     {"{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop-ci}}}]}]}", true},
		"the platform's ingress":   {"{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress}}}]}]}", true},
		"names are resolved":       {"{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}, podSelector: {matchLabels: {k8s-app: kube-dns}}}], ports: [{port: 53, protocol: UDP}]}]}", true},
		"the internet":             {"{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 203.0.113.0/24}}]}]}", true},
		"all traffic comes in":     {"{podSelector: {}, ingress: [{}]}", false},
		"every namespace comes in": {"{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}", false},
		"a namespace of no tenant": {"{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: bank}}}]}]}", false},
		"addresses come in":        {"{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 203.0.113.0/24}}]}]}", false},
		"everywhere, metadata too": {"{podSelector: {}, policyTypes: [Egress], egress: [{}]}", false},
		"the metadata address":     {"{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 169.254.169.254/32}}]}]}", false},
		"a port of its own pods":   {"{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}], ports: [{port: 5432}]}]}", true},
	} {
		for dialect, network := range dialects {
			t.Run(name+" "+dialect, func(t *testing.T) {
				a := newAdoption(t, network, "")
				if replaced, why := a.compareNetworkPolicy(parseNetworkPolicy(t, test.spec)); replaced != test.replaced {
					t.Errorf("replaced: %t, want %t: %s", replaced, test.replaced, why)
				}
			})
		}
	}
}

// TestCompareNetworkPolicyAddresses fails if a policy for networks is evaluated by a single
// address: every part of its networks must be allowed, in each IP family and on each port.
func TestCompareNetworkPolicyAddresses(t *testing.T) {
	restricted := func(cidrs string) string { return ", network: {egress: Restricted, allowCIDRs: [" + cidrs + "]}" }
	to := func(peers, more string) string {
		return "{podSelector: {}, policyTypes: [Egress], egress: [{to: [" + peers + "]" + more + "}]}"
	}
	named := func(names string) string {
		return "{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [" + names + "]}]}"
	}
	excepted := func(ipv6 bool) string {
		var all []string
		for _, a := range estate.ListMetadataAddresses(&v1alpha1.PlatformNetwork{}) {
			if a.Is6() == ipv6 {
				all = append(all, fmt.Sprintf("%q", netip.PrefixFrom(a, a.BitLen())))
			}
		}
		return strings.Join(all, ", ")
	}
	for name, test := range map[string]struct {
		tenant, spec string
		replaced     bool
	}{
		"a network of which the first part is granted": {restricted("10.0.0.0/24"), to("{ipBlock: {cidr: 10.0.0.0/8}}", ""), false},
		"of which the last part is granted":            {restricted("10.128.0.0/9"), to("{ipBlock: {cidr: 10.0.0.0/8}}", ""), false},
		"the network that is granted":                  {restricted("10.0.0.0/24"), to("{ipBlock: {cidr: 10.0.0.0/24}}", ""), true},
		"a part of it":                                 {restricted("10.0.0.0/8"), to("{ipBlock: {cidr: 10.7.0.0/24}}", ""), true},
		"two halves are a whole":                       {restricted("10.0.0.0/9, 10.128.0.0/9"), to("{ipBlock: {cidr: 10.0.0.0/8}}", ""), true},
		"two halves with a hole":                       {restricted("10.0.0.0/9, 10.128.0.0/10"), to("{ipBlock: {cidr: 10.0.0.0/8}}", ""), false},
		"an exception that is not granted":             {restricted("10.0.0.0/9"), to("{ipBlock: {cidr: 10.0.0.0/8, except: [10.128.0.0/9]}}", ""), true},
		"it leaves out too little":                     {restricted("10.0.0.0/9"), to("{ipBlock: {cidr: 10.0.0.0/8, except: [10.128.0.0/10]}}", ""), false},
		"the second of its networks":                   {restricted("10.0.0.0/24"), to("{ipBlock: {cidr: 10.0.0.0/25}}, {ipBlock: {cidr: 10.0.1.0/25}}", ""), false},
		"the last address":                             {restricted("10.0.0.0/32, 10.0.0.1/32, 10.0.0.2/32"), to("{ipBlock: {cidr: 10.0.0.0/30}}", ""), false},
		"all addresses":                                {restricted("0.0.0.0/2"), to("{ipBlock: {cidr: 0.0.0.0/0}}", ""), false},
		"IPv6, of which a part is granted":             {restricted("\"2001:db8::/48\""), to("{ipBlock: {cidr: \"2001:db8::/32\"}}", ""), false},
		"IPv6 that is granted":                         {restricted("\"2001:db8::/32\""), to("{ipBlock: {cidr: \"2001:db8:7::/48\"}}", ""), true},
		"the other family":                             {restricted("10.0.0.0/8"), to("{ipBlock: {cidr: 10.0.0.0/8}}, {ipBlock: {cidr: \"2001:db8::/32\"}}", ""), false},
		"everywhere but metadata":                      {"", to("{ipBlock: {cidr: 0.0.0.0/0, except: ["+excepted(false)+"]}}", ""), true},
		"everywhere but some metadata":                 {"", to("{ipBlock: {cidr: 0.0.0.0/0, except: [169.254.169.254/32]}}", ""), false},
		"everywhere but metadata, IPv6":                {"", to("{ipBlock: {cidr: \"::/0\", except: ["+excepted(true)+"]}}", ""), true},
		"metadata by IPv6":                             {"", to("{ipBlock: {cidr: \"fd00::/8\"}}", ""), false},
		"everywhere, IPv4 metadata left out":           {"", to("{ipBlock: {cidr: 0.0.0.0/0, except: ["+excepted(false)+"]}}, {ipBlock: {cidr: \"::/0\"}}", ""), false},
		"a port of the network that is granted":        {restricted("10.0.0.0/24"), to("{ipBlock: {cidr: 10.0.0.0/24}}", ", ports: [{port: 5432}]"), true},
		"no network at all":                            {restricted(""), to("{ipBlock: {cidr: 10.0.0.0/24}}", ""), false},
		// These test the same mistake with selectors and ports.
		"its namespace and another's":     {"", to(named("shop-ci, bank")+"}", ""), true}, // egress is Open
		"its namespace and another's in":  {"", "{podSelector: {}, ingress: [{from: [" + named("shop-ci, bank") + "}]}]}", false},
		"the platform's and another's in": {"", "{podSelector: {}, ingress: [{from: [" + named("ingress, bank") + "}]}]}", false},
		"the platform's two in":           {"", "{podSelector: {}, ingress: [{from: [" + named("ingress, shop") + "}]}]}", true},
		"all but its own come in":         {"", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [shop]}]}}]}]}", false},
		"tenants come in":                 {"", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: croft.dev/tenant, operator: Exists}]}}]}]}", false},
		"the tenant comes in":             {"", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {croft.dev/tenant: shop}}}]}]}", true},
		"the tenant and another come in":  {"", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: croft.dev/tenant, operator: In, values: [shop, bank]}]}}]}]}", false},
		"DNS, and a port more":            {restricted(""), to(named("kube-system")+", podSelector: {matchLabels: {k8s-app: kube-dns}}}", ", ports: [{port: 53, protocol: UDP}, {port: 9153}]"), false},
		"DNS, and ports up to":            {restricted(""), to(named("kube-system")+", podSelector: {matchLabels: {k8s-app: kube-dns}}}", ", ports: [{port: 53, endPort: 55, protocol: UDP}]"), false},
		"DNS by a port with a name":       {restricted(""), to(named("kube-system")+", podSelector: {matchLabels: {k8s-app: kube-dns}}}", ", ports: [{port: dns, protocol: UDP}]"), false},
		"DNS by an expression":            {restricted(""), to(named("kube-system")+", podSelector: {matchExpressions: [{key: k8s-app, operator: In, values: [kube-dns]}]}}", ", ports: [{port: 53, protocol: UDP}]"), true},
		"DNS by UDP on all ports":         {restricted(""), to(named("kube-system")+", podSelector: {matchLabels: {k8s-app: kube-dns}}}", ", ports: [{protocol: UDP}]"), false},
	} {
		for dialect, network := range dialects {
			t.Run(name+" "+dialect, func(t *testing.T) {
				a := newAdoption(t, network, test.tenant)
				if replaced, why := a.compareNetworkPolicy(parseNetworkPolicy(t, test.spec)); replaced != test.replaced {
					t.Errorf("replaced: %t, want %t: %s", replaced, test.replaced, why)
				}
			})
		}
	}
}

// TestChanges fails if the plan misses a connection that the walls end, in any kind of policy,
// or lists one that remains.
func TestChanges(t *testing.T) {
	named := func(name string) corev1.Namespace {
		return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
	}
	snapshot := func(policies ...client.Object) *netpol.Snapshot {
		return &netpol.Snapshot{
			Namespaces: []corev1.Namespace{named("bank"), named("ingress"), named("kube-system"), named("shop")},
			Policies:   policies,
		}
	}
	all := []Traffic{
		{From: "bank", To: "shop", Ends: true},
		{From: "kube-system", To: "shop", Ends: true},
		{From: "outside", To: "shop", Ends: true},
		{From: "shop", To: "instance metadata", Ends: true},
	}
	calicoDeny := parseObject(t, "{apiVersion: projectcalico.org/v3, kind: NetworkPolicy, metadata: {name: deny-bank, namespace: shop}, spec: {order: 10, ingress: [{action: Deny, source: {namespaceSelector: \"projectcalico.org/name == 'bank'\"}}]}}")
	for name, test := range map[string]struct {
		policies []client.Object
		ends     []Traffic
	}{
		"nothing existed": {nil, all},
		// A Calico policy denies the sources that it does not allow.
		"nothing came in by Calico's":      {[]client.Object{calicoDeny}, all[3:]},
		"nothing came in":                  {[]client.Object{parseTypedPolicy(t, "{podSelector: {}, policyTypes: [Ingress]}")}, all[3:]},
		"nothing came in, and nothing out": {[]client.Object{parseTypedPolicy(t, "{podSelector: {}, policyTypes: [Ingress, Egress]}")}, nil},
	} {
		for dialect, network := range dialects {
			t.Run(name+" "+dialect, func(t *testing.T) {
				got, err := newAdoption(t, network, "").findTrafficChanges(snapshot(test.policies...), &Plan{})
				if err != nil {
					t.Fatal(err)
				}
				var ends []Traffic
				for _, g := range got {
					if g.Ends {
						ends = append(ends, g)
					}
				}
				if diff := cmp.Diff(test.ends, ends); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}
