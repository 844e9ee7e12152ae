package cluster_test

import (
	"net/netip"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/observe/netpol/cluster"
	"croft.dev/croft/internal/observe/netpol/tier"
)

func newPod(namespace, app string) tier.End {
	return tier.End{
		Pod:     &tier.Pod{Namespace: namespace, NamespaceLabels: map[string]string{"kubernetes.io/metadata.name": namespace, "tenant": namespace}, Labels: map[string]string{"app": app}},
		Address: netip.MustParseAddr("10.244.1.1"),
	}
}

func newOutside(address string) tier.End { return tier.End{Address: netip.MustParseAddr(address)} }

func parsePolicy(t *testing.T, spec string) (*cluster.Policy, error) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("apiVersion: policy.networking.k8s.io/v1alpha2\nkind: ClusterNetworkPolicy\nmetadata: {name: p}\nspec: "+spec), &u.Object); err != nil {
		t.Fatal(err)
	}
	return cluster.NewPolicy(u)
}

// TestRules evaluates rules as the network policy API describes them, and ports as the Amazon
// VPC CNI writes them.
func TestRules(t *testing.T) {
	c := func(change func(*tier.Connection)) *tier.Connection {
		all := &tier.Connection{From: newPod("blue", "web"), To: newPod("red", "db"), Port: 80, Protocol: "TCP"}
		if change != nil {
			change(all)
		}
		return all
	}
	between := c(nil)
	fromOutside := c(func(c *tier.Connection) { c.From = newOutside("203.0.113.10") })
	toMetadata := c(func(c *tier.Connection) { c.To = newOutside("169.254.169.254") })
	named := c(func(c *tier.Connection) { c.Port, c.PortName = 0, "http" })
	const red, blue = "tier: Admin, priority: 10, subject: {namespaces: {matchLabels: {tenant: red}}}", "tier: Admin, priority: 10, subject: {namespaces: {matchLabels: {tenant: blue}}}"
	const everybody = "[{namespaces: {}}]"
	for name, test := range map[string]struct {
		spec      string
		c         *tier.Connection
		direction tier.Direction
		selects   tier.Match
		decides   tier.Action
	}{
		"Deny":                                 {"{" + red + ", ingress: [{action: Deny, from: " + everybody + "}]}", between, tier.Ingress, tier.Yes, tier.Deny},
		"Accept":                               {"{" + red + ", ingress: [{action: Accept, from: " + everybody + "}]}", between, tier.Ingress, tier.Yes, tier.Allow},
		"Pass":                                 {"{" + red + ", ingress: [{action: Pass, from: " + everybody + "}]}", between, tier.Ingress, tier.Yes, tier.Pass},
		"another subject":                      {"{" + blue + ", ingress: [{action: Deny, from: " + everybody + "}]}", between, tier.Ingress, tier.No, ""},
		"no rules of this direction":           {"{" + red + ", egress: [{action: Deny, to: " + everybody + "}]}", between, tier.Ingress, tier.No, ""},
		"pods of a subject":                    {"{tier: Admin, priority: 1, subject: {pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}}, ingress: [{action: Deny, from: " + everybody + "}]}", between, tier.Ingress, tier.No, ""},
		"the first rule decides":               {"{" + red + ", ingress: [{action: Pass, from: [{namespaces: {matchLabels: {tenant: blue}}}]}, {action: Deny, from: " + everybody + "}]}", between, tier.Ingress, tier.Yes, tier.Pass},
		"namespaces":                           {"{" + red + ", ingress: [{action: Deny, from: [{namespaces: {matchLabels: {tenant: green}}}]}]}", between, tier.Ingress, tier.Yes, ""},
		"namespaces without a label too":       {"{" + red + ", ingress: [{action: Deny, from: [{namespaces: {matchExpressions: [{key: other, operator: NotIn, values: [red]}]}}]}]}", between, tier.Ingress, tier.Yes, tier.Deny},
		"namespaces hold no address":           {"{" + red + ", ingress: [{action: Deny, from: " + everybody + "}]}", fromOutside, tier.Ingress, tier.Yes, ""},
		"pods":                                 {"{" + red + ", ingress: [{action: Deny, from: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}}]}]}", between, tier.Ingress, tier.Yes, tier.Deny},
		"networks":                             {"{" + blue + ", egress: [{action: Deny, to: [{networks: [169.254.169.254/32]}]}]}", toMetadata, tier.Egress, tier.Yes, tier.Deny},
		"networks hold pods too":               {"{" + blue + ", egress: [{action: Deny, to: [{networks: [0.0.0.0/0]}]}]}", between, tier.Egress, tier.Yes, tier.Deny},
		"a domain may be an address":           {"{" + blue + ", egress: [{action: Accept, to: [{domainNames: [\"*.example.org\"]}]}]}", toMetadata, tier.Egress, tier.Yes, tier.Allow},
		"a node may be, but is not denied":     {"{" + blue + ", egress: [{action: Deny, to: [{nodes: {}}]}]}", toMetadata, tier.Egress, tier.Yes, ""},
		"an unknown peer accepts no":           {"{" + blue + ", egress: [{action: Accept, to: [{planets: {}}]}]}", toMetadata, tier.Egress, tier.Yes, ""},
		"and denies all":                       {"{" + blue + ", egress: [{action: Deny, to: [{planets: {}}]}]}", toMetadata, tier.Egress, tier.Yes, tier.Deny},
		"a port":                               {"{" + red + ", ingress: [{action: Deny, from: " + everybody + ", protocols: [{tcp: {destinationPort: {number: 80}}}]}]}", between, tier.Ingress, tier.Yes, tier.Deny},
		"another port":                         {"{" + red + ", ingress: [{action: Deny, from: " + everybody + ", protocols: [{tcp: {destinationPort: {number: 81}}}]}]}", between, tier.Ingress, tier.Yes, ""},
		"a range":                              {"{" + red + ", ingress: [{action: Deny, from: " + everybody + ", protocols: [{tcp: {destinationPort: {range: {start: 79, end: 81}}}}]}]}", between, tier.Ingress, tier.Yes, tier.Deny},
		"another protocol":                     {"{" + red + ", ingress: [{action: Deny, from: " + everybody + ", protocols: [{udp: {destinationPort: {number: 80}}}]}]}", between, tier.Ingress, tier.Yes, ""},
		"all of a protocol, named ports too":   {"{" + red + ", ingress: [{action: Deny, from: " + everybody + ", protocols: [{tcp: {}}]}]}", named, tier.Ingress, tier.Yes, tier.Deny},
		"a named port":                         {"{" + red + ", ingress: [{action: Deny, from: " + everybody + ", protocols: [{destinationNamedPort: http}]}]}", named, tier.Ingress, tier.Yes, tier.Deny},
		"a number may be that of a named port": {"{" + red + ", ingress: [{action: Accept, from: " + everybody + ", protocols: [{tcp: {destinationPort: {number: 80}}}]}]}", named, tier.Ingress, tier.Yes, tier.Allow},
		"AWS: a port":                          {"{" + red + ", ingress: [{action: Deny, from: " + everybody + ", ports: [{portNumber: {port: 80, protocol: TCP}}]}]}", between, tier.Ingress, tier.Yes, tier.Deny},
		"AWS: another protocol":                {"{" + red + ", ingress: [{action: Deny, from: " + everybody + ", ports: [{portNumber: {port: 80, protocol: UDP}}]}]}", between, tier.Ingress, tier.Yes, ""},
		"AWS: a range":                         {"{" + red + ", ingress: [{action: Deny, from: " + everybody + ", ports: [{portRange: {start: 81, end: 90, protocol: TCP}}]}]}", between, tier.Ingress, tier.Yes, ""},
		"AWS: a named port":                    {"{" + red + ", ingress: [{action: Deny, from: " + everybody + ", ports: [{namedPort: http}]}]}", named, tier.Ingress, tier.Yes, tier.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := parsePolicy(t, test.spec)
			if err != nil {
				t.Fatal(err)
			}
			selects, decides := p.Evaluate(test.c, test.direction)
			if selects != test.selects || decides != test.decides {
				t.Errorf("selects %v and decides %q; want %v and %q", selects, decides, test.selects, test.decides)
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	for _, spec := range []string{
		"{priority: first}",
		"{subject: {namespaces: {matchExpressions: [{key: a, operator: Perhaps}]}}}",
		"{subject: {namespaces: {}}, egress: [{action: Deny, to: [{networks: [nowhere]}]}]}",
	} {
		if p, err := parsePolicy(t, spec); err == nil {
			t.Errorf("%s: %+v, want an error", spec, p)
		}
	}
}
