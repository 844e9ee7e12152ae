package kubernetes_test

import (
	"net/netip"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/observe/netpol/kubernetes"
	"croft.dev/croft/internal/observe/netpol/tier"
)

// newPod returns a pod in a namespace whose name is also its label.
func newPod(namespace string, labels map[string]string) tier.End {
	return tier.End{
		Pod:     &tier.Pod{Namespace: namespace, NamespaceLabels: map[string]string{"name": namespace}, Labels: labels},
		Address: netip.MustParseAddr("10.244.1.1"),
	}
}

func newOutside(address string) tier.End {
	ip, _ := netip.ParseAddr(address) // an unreadable address is an unknown address
	return tier.End{Address: ip}
}

func parsePolicy(t testing.TB, spec string) *networkingv1.NetworkPolicy {
	t.Helper()
	p := &networkingv1.NetworkPolicy{}
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: p, namespace: red}\nspec: "+spec), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPolicy evaluates the rules of the API's reference, and cases that are easily confused
// with others: missing labels, empty lists and absent fields.
func TestPolicy(t *testing.T) {
	web, db := map[string]string{"app": "web"}, map[string]string{"app": "db"}
	from := func(end tier.End) *tier.Connection {
		return &tier.Connection{From: end, To: newPod("red", db), Port: 80, Protocol: "TCP"}
	}
	to := func(end tier.End) *tier.Connection {
		return &tier.Connection{From: newPod("red", web), To: end, Port: 80, Protocol: "TCP"}
	}
	on := func(port int, name, protocol string) *tier.Connection {
		return &tier.Connection{From: newPod("blue", web), To: newPod("red", db), Port: port, PortName: name, Protocol: protocol}
	}
	const (
		none    = "is not selected"
		denied  = "is not allowed"
		allowed = "is allowed"
	)
	for name, test := range map[string]struct {
		spec string
		c    *tier.Connection
		d    tier.Direction
		want string
	}{
		"no rules":                          {"{podSelector: {}, policyTypes: [Ingress]}", from(newPod("red", web)), tier.Ingress, denied},
		"an empty rule":                     {"{podSelector: {}, policyTypes: [Ingress], ingress: [{}]}", from(newOutside("203.0.113.10")), tier.Ingress, allowed},
		"no policyTypes":                    {"{podSelector: {}}", from(newPod("red", web)), tier.Ingress, denied},
		"no policyTypes, no rule of egress": {"{podSelector: {}}", to(newPod("red", db)), tier.Egress, none},
		"no policyTypes, a rule of egress":  {"{podSelector: {}, egress: [{to: [{podSelector: {matchLabels: {app: web}}}]}]}", to(newPod("red", db)), tier.Egress, denied},
		"policyTypes without egress":        {"{podSelector: {}, policyTypes: [Ingress], egress: [{}]}", to(newPod("red", db)), tier.Egress, none},
		"other pods":                        {"{podSelector: {matchLabels: {app: web}}}", from(newPod("red", web)), tier.Ingress, none},
		"pods of another namespace":         {"{podSelector: {}}", &tier.Connection{From: newPod("red", web), To: newPod("blue", db), Port: 80, Protocol: "TCP"}, tier.Ingress, none},
		"no pod":                            {"{podSelector: {}, egress: [{}]}", from(newOutside("203.0.113.10")), tier.Egress, none},

		"pods of its own namespace":           {"{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}", from(newPod("red", nil)), tier.Ingress, allowed},
		"and not of another":                  {"{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}", from(newPod("blue", nil)), tier.Ingress, denied},
		"namespaces":                          {"{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {name: blue}}}]}]}", from(newPod("blue", nil)), tier.Ingress, allowed},
		"other namespaces":                    {"{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {name: green}}}]}]}", from(newPod("blue", nil)), tier.Ingress, denied},
		"pods of namespaces":                  {"{podSelector: {}, ingress: [{from: [{namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}]}]}", from(newPod("blue", web)), tier.Ingress, allowed},
		"other pods of namespaces":            {"{podSelector: {}, ingress: [{from: [{namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}]}]}", from(newPod("blue", db)), tier.Ingress, denied},
		"one peer of several":                 {"{podSelector: {}, ingress: [{from: [{podSelector: {}}, {namespaceSelector: {}}]}]}", from(newPod("blue", db)), tier.Ingress, allowed},
		"a selector is no address":            {"{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}", from(newOutside("203.0.113.10")), tier.Ingress, denied},
		"one rule of several":                 {"{podSelector: {}, ingress: [{from: [{podSelector: {}}]}, {from: [{namespaceSelector: {}}]}]}", from(newPod("blue", db)), tier.Ingress, allowed},
		"NotIn selects pods without it":       {"{podSelector: {}, ingress: [{from: [{podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [db]}]}}]}]}", from(newPod("red", nil)), tier.Ingress, allowed},
		"NotIn does not select those with it": {"{podSelector: {}, ingress: [{from: [{podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [db]}]}}]}]}", from(newPod("red", db)), tier.Ingress, denied},
		"an empty value is no absent one":     {"{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: ''}}}]}]}", from(newPod("red", nil)), tier.Ingress, denied},
		"it selects pods without":             {"{podSelector: {matchExpressions: [{key: app, operator: DoesNotExist}]}}", from(newPod("red", nil)), tier.Ingress, none},

		"a range":                         {"{podSelector: {}, egress: [{to: [{ipBlock: {cidr: 203.0.113.0/24}}]}]}", to(newOutside("203.0.113.10")), tier.Egress, allowed},
		"another range":                   {"{podSelector: {}, egress: [{to: [{ipBlock: {cidr: 203.0.113.0/24}}]}]}", to(newOutside("203.0.114.10")), tier.Egress, denied},
		"an exception":                    {"{podSelector: {}, egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [169.254.169.254/32]}}]}]}", to(newOutside("169.254.169.254")), tier.Egress, denied},
		"an exception is of one rule":     {"{podSelector: {}, egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [169.254.169.254/32]}}]}, {to: [{ipBlock: {cidr: 169.254.0.0/16}}]}]}", to(newOutside("169.254.169.254")), tier.Egress, allowed},
		"a range with zeros before":       {"{podSelector: {}, egress: [{to: [{ipBlock: {cidr: 203.0.113.010/32}}]}]}", to(newOutside("203.0.113.10")), tier.Egress, allowed},
		"a pod's address":                 {"{podSelector: {}, egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}", to(newPod("blue", nil)), tier.Egress, allowed},
		"a range of IPv6":                 {"{podSelector: {}, egress: [{to: [{ipBlock: {cidr: '2001:db8::/32'}}]}]}", to(newOutside("2001:db8::1")), tier.Egress, allowed},
		"IPv4 is not in a range of IPv6":  {"{podSelector: {}, egress: [{to: [{ipBlock: {cidr: '::/0'}}]}]}", to(newOutside("203.0.113.10")), tier.Egress, denied},
		"an address that is none":         {"{podSelector: {}, egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}]}", to(newOutside("nonsense")), tier.Egress, denied},
		"no peers, which means everybody": {"{podSelector: {}, egress: [{to: []}]}", to(newOutside("203.0.113.10")), tier.Egress, allowed},

		"a port":                         {"{podSelector: {}, ingress: [{ports: [{port: 80}]}]}", on(80, "", "TCP"), tier.Ingress, allowed},
		"another port":                   {"{podSelector: {}, ingress: [{ports: [{port: 80}]}]}", on(81, "", "TCP"), tier.Ingress, denied},
		"another protocol":               {"{podSelector: {}, ingress: [{ports: [{port: 80}]}]}", on(80, "", "UDP"), tier.Ingress, denied},
		"all of a protocol":              {"{podSelector: {}, ingress: [{ports: [{protocol: UDP}]}]}", on(53, "", "UDP"), tier.Ingress, allowed},
		"the end of a range":             {"{podSelector: {}, ingress: [{ports: [{port: 80, endPort: 90}]}]}", on(90, "", "TCP"), tier.Ingress, allowed},
		"behind a range":                 {"{podSelector: {}, ingress: [{ports: [{port: 80, endPort: 90}]}]}", on(91, "", "TCP"), tier.Ingress, denied},
		"a name":                         {"{podSelector: {}, ingress: [{ports: [{port: http}]}]}", on(0, "http", "TCP"), tier.Ingress, allowed},
		"another name":                   {"{podSelector: {}, ingress: [{ports: [{port: http}]}]}", on(0, "metrics", "TCP"), tier.Ingress, denied},
		"a pod may name a port so":       {"{podSelector: {}, ingress: [{ports: [{port: http}]}]}", on(80, "", "TCP"), tier.Ingress, allowed},
		"a name of another protocol":     {"{podSelector: {}, ingress: [{ports: [{port: http}]}]}", on(80, "", "UDP"), tier.Ingress, denied},
		"the peer and the port":          {"{podSelector: {}, ingress: [{from: [{podSelector: {}}], ports: [{port: 80}]}]}", on(80, "", "TCP"), tier.Ingress, denied},
		"no ports, which means all":      {"{podSelector: {}, ingress: [{ports: []}]}", on(81, "", "SCTP"), tier.Ingress, allowed},
		"neither peers nor ports of two": {"{podSelector: {}, ingress: [{from: [{podSelector: {}}]}, {ports: [{port: 81}]}]}", on(80, "", "TCP"), tier.Ingress, denied},
	} {
		t.Run(name, func(t *testing.T) {
			got := none
			p, err := kubernetes.NewPolicy(parsePolicy(t, test.spec))
			if err != nil {
				t.Fatal(err)
			}
			switch selects, decides := p.Evaluate(test.c, test.d); {
			case selects == tier.Yes && decides == tier.Allow:
				got = allowed
			case selects == tier.Yes && decides == "":
				got = denied
			case selects != tier.No || decides != "":
				t.Fatalf("got %v, %q", selects, decides)
			}
			if got != test.want {
				t.Errorf("it %s; want that it %s", got, test.want)
			}
		})
	}
}

// TestUnreadable expects an error that names the field for each value that an API server
// would refuse and that cannot be read.
func TestUnreadable(t *testing.T) {
	const in = "{podSelector: {}, ingress: [{}, "
	for spec, want := range map[string]string{
		in + "{from: [{podSelector: {}}, {ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}], ports: [{port: 80, endPort: 80}, {port: http}, {}]}]}": "",
		in + "{from: [{ipBlock: {cidr: nonsense}}]}]}":                       "spec.ingress[1].from[0].ipBlock.cidr",
		in + "{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.0.0.1]}}]}]}": "spec.ingress[1].from[0].ipBlock.except[0]",
		in + "{from: [{}]}]}": "spec.ingress[1].from[0]",
		in + "{from: [{ipBlock: {cidr: 10.0.0.0/8}, podSelector: {}}]}]}":                "spec.ingress[1].from[0]",
		in + "{from: [{podSelector: {matchExpressions: [{key: a, operator: Near}]}}]}]}": "spec.ingress[1].from[0].podSelector",
		in + "{from: [{namespaceSelector: {matchLabels: {-a-: b}}}]}]}":                  "spec.ingress[1].from[0].namespaceSelector",
		in + "{ports: [{port: 80, endPort: 79}]}]}":                                      "spec.ingress[1].ports[0].endPort",
		in + "{ports: [{port: http, endPort: 90}]}]}":                                    "spec.ingress[1].ports[0].endPort",
		"{podSelector: {}, egress: [{to: [{ipBlock: {cidr: 10.0.0.0}}]}]}":               "spec.egress[0].to[0].ipBlock.cidr",
		"{podSelector: {}, egress: [{ports: [{endPort: 90}]}]}":                          "spec.egress[0].ports[0].endPort",
		"{podSelector: {matchExpressions: [{key: a, operator: In}]}}":                    "spec.podSelector",
	} {
		t.Run(spec, func(t *testing.T) {
			_, err := kubernetes.NewPolicy(parsePolicy(t, spec))
			switch {
			case want == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case want != "" && (err == nil || !strings.HasPrefix(err.Error(), "NetworkPolicy red/p: "+want+": ")):
				t.Errorf("the error is %v; want it to name %s", err, want)
			}
		})
	}
}
