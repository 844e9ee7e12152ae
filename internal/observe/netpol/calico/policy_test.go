package calico_test

import (
	"net/netip"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/observe/netpol/calico"
	"croft.dev/croft/internal/observe/netpol/tier"
)

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func parsePolicy(t *testing.T, text string) *calico.Policy {
	t.Helper()
	p, err := calico.NewPolicy(parseObject(t, text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newPod(namespace string, labels ...string) tier.End {
	all := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		all[labels[i]] = labels[i+1]
	}
	return tier.End{
		Pod:     &tier.Pod{Namespace: namespace, NamespaceLabels: map[string]string{"env": namespace, "kubernetes.io/metadata.name": namespace}, Labels: all},
		Address: netip.MustParseAddr("10.244.1.1"),
	}
}

func newOutside(address string) tier.End { return tier.End{Address: netip.MustParseAddr(address)} }

const head = "apiVersion: projectcalico.org/v3\nkind: NetworkPolicy\nmetadata: {name: p, namespace: prod}\nspec: "

// TestRules evaluates rules as Calico's reference of NetworkPolicy describes them, for
// connections to a pod of the policy's namespace and from one.
func TestRules(t *testing.T) {
	into := tier.Connection{From: newPod("prod", "role", "web"), To: newPod("prod", "role", "db"), Port: 80, Protocol: "TCP"}
	with := func(change func(*tier.Connection)) *tier.Connection {
		c := into
		change(&c)
		return &c
	}
	same := &into
	elsewhere := with(func(c *tier.Connection) { c.From = newPod("test", "role", "web") })
	address := with(func(c *tier.Connection) { c.From = newOutside("203.0.113.10") })
	out := with(func(c *tier.Connection) { c.To = newOutside("203.0.113.10") })
	for name, test := range map[string]struct {
		spec      string
		c         *tier.Connection
		direction tier.Direction
		selects   tier.Match
		decides   tier.Action
	}{
		"no rule decides":                          {"{types: [Ingress]}", same, tier.Ingress, tier.Yes, ""},
		"without types it is about ingress":        {"{}", same, tier.Ingress, tier.Yes, ""},
		"and not about egress":                     {"{}", same, tier.Egress, tier.No, ""},
		"with egress rules alone it is not":        {"{egress: [{action: Deny}]}", same, tier.Ingress, tier.No, ""},
		"but about egress":                         {"{egress: [{action: Deny}]}", same, tier.Egress, tier.Yes, tier.Deny},
		"another pod is selected":                  {"{selector: role == 'web', ingress: [{action: Allow}]}", same, tier.Ingress, tier.No, ""},
		"the pod is selected":                      {"{selector: role == 'db', ingress: [{action: Allow}]}", same, tier.Ingress, tier.Yes, tier.Allow},
		"by its namespace":                         {"{selector: projectcalico.org/namespace == 'prod', ingress: [{action: Allow}]}", same, tier.Ingress, tier.Yes, tier.Allow},
		"a rule without criteria":                  {"{ingress: [{action: Allow}]}", address, tier.Ingress, tier.Yes, tier.Allow},
		"the first rule decides":                   {"{ingress: [{action: Deny}, {action: Allow}]}", same, tier.Ingress, tier.Yes, tier.Deny},
		"Log does not decide":                      {"{ingress: [{action: Log}, {action: Allow}]}", same, tier.Ingress, tier.Yes, tier.Allow},
		"a selector is of the policy's namespace":  {"{ingress: [{action: Allow, source: {selector: role == 'web'}}]}", same, tier.Ingress, tier.Yes, tier.Allow},
		"and of no other":                          {"{ingress: [{action: Allow, source: {selector: role == 'web'}}]}", elsewhere, tier.Ingress, tier.Yes, ""},
		"and no address":                           {"{ingress: [{action: Allow, source: {selector: all()}}]}", address, tier.Ingress, tier.Yes, ""},
		"a namespaceSelector reaches further":      {"{ingress: [{action: Allow, source: {namespaceSelector: env == 'test'}}]}", elsewhere, tier.Ingress, tier.Yes, tier.Allow},
		"both selectors":                           {"{ingress: [{action: Allow, source: {namespaceSelector: all(), selector: role == 'db'}}]}", elsewhere, tier.Ingress, tier.Yes, ""},
		"a namespace by its name":                  {"{ingress: [{action: Allow, source: {namespaceSelector: projectcalico.org/name == 'test'}}]}", elsewhere, tier.Ingress, tier.Yes, tier.Allow},
		"all() are all namespaces, and no address": {"{ingress: [{action: Allow, source: {namespaceSelector: all()}}]}", address, tier.Ingress, tier.Yes, ""},
		"global() is no pod":                       {"{ingress: [{action: Allow, source: {namespaceSelector: global()}}]}", elsewhere, tier.Ingress, tier.Yes, ""},
		"notSelector":                              {"{ingress: [{action: Allow, source: {notSelector: role == 'web'}}]}", same, tier.Ingress, tier.Yes, ""},
		"notSelector is of the policy's namespace": {"{ingress: [{action: Allow, source: {notSelector: has(x)}}]}", elsewhere, tier.Ingress, tier.Yes, ""},
		"nets":                                  {"{ingress: [{action: Allow, source: {nets: [203.0.113.0/24]}}]}", address, tier.Ingress, tier.Yes, tier.Allow},
		"nets of another family":                {"{ingress: [{action: Allow, source: {nets: ['::/0']}}]}", address, tier.Ingress, tier.Yes, ""},
		"notNets":                               {"{ingress: [{action: Allow, source: {nets: [0.0.0.0/0], notNets: [203.0.113.10/32]}}]}", address, tier.Ingress, tier.Yes, ""},
		"nets hold pods too":                    {"{ingress: [{action: Allow, source: {nets: [10.0.0.0/8]}}]}", elsewhere, tier.Ingress, tier.Yes, tier.Allow},
		"the destination of egress":             {"{egress: [{action: Deny, destination: {nets: [203.0.113.10/32]}}]}", out, tier.Egress, tier.Yes, tier.Deny},
		"a protocol":                            {"{ingress: [{action: Allow, protocol: UDP}]}", same, tier.Ingress, tier.Yes, ""},
		"a protocol's number":                   {"{ingress: [{action: Allow, protocol: 6}]}", same, tier.Ingress, tier.Yes, tier.Allow},
		"not a protocol":                        {"{ingress: [{action: Allow, notProtocol: TCP}]}", same, tier.Ingress, tier.Yes, ""},
		"a port":                                {"{ingress: [{action: Allow, protocol: TCP, destination: {ports: [80]}}]}", same, tier.Ingress, tier.Yes, tier.Allow},
		"a range of ports":                      {"{ingress: [{action: Allow, protocol: TCP, destination: {ports: ['1:79', '81:90']}}]}", same, tier.Ingress, tier.Yes, ""},
		"not a port":                            {"{ingress: [{action: Allow, protocol: TCP, destination: {notPorts: [80]}}]}", same, tier.Ingress, tier.Yes, ""},
		"a named port may be the one":           {"{ingress: [{action: Allow, protocol: TCP, destination: {ports: [http]}}]}", same, tier.Ingress, tier.Yes, tier.Allow},
		"but denies nothing":                    {"{ingress: [{action: Deny, protocol: TCP, destination: {ports: [http]}}]}", same, tier.Ingress, tier.Yes, ""},
		"a service account may be the one":      {"{ingress: [{action: Allow, source: {serviceAccounts: {names: [x]}}}]}", same, tier.Ingress, tier.Yes, tier.Allow},
		"of the policy's namespace":             {"{ingress: [{action: Allow, source: {serviceAccounts: {names: [x]}}}]}", elsewhere, tier.Ingress, tier.Yes, ""},
		"a service account selector is unknown": {"{serviceAccountSelector: all(), ingress: [{action: Allow}]}", same, tier.Ingress, tier.Maybe, tier.Allow},
		"another IP version":                    {"{ingress: [{action: Allow, ipVersion: 6}]}", same, tier.Ingress, tier.Yes, ""},
		"Pass":                                  {"{ingress: [{action: Pass}]}", same, tier.Ingress, tier.Yes, tier.Pass},
	} {
		t.Run(name, func(t *testing.T) {
			selects, decides := parsePolicy(t, head+test.spec).Evaluate(test.c, test.direction)
			if selects != test.selects || decides != test.decides {
				t.Errorf("selects %v and decides %q; want %v and %q", selects, decides, test.selects, test.decides)
			}
		})
	}
}

// TestGlobal evaluates cluster-wide policies, whose selectors are not limited to a namespace.
func TestGlobal(t *testing.T) {
	const head = "apiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {name: p}\nspec: "
	c := &tier.Connection{From: newPod("test", "role", "web"), To: newPod("prod", "role", "db"), Port: 80, Protocol: "TCP"}
	for spec, want := range map[string]tier.Action{
		"{ingress: [{action: Deny, source: {selector: role == 'web'}}]}":                                                                          tier.Deny,
		"{ingress: [{action: Deny, source: {notSelector: role == 'db'}}]}":                                                                        tier.Deny,
		"{namespaceSelector: env == 'prod', ingress: [{action: Deny}]}":                                                                           tier.Deny,
		"{namespaceSelector: env == 'test', ingress: [{action: Deny}]}":                                                                           "",
		"{selector: projectcalico.org/namespace == 'prod', ingress: [{action: Deny, source: {selector: projectcalico.org/namespace != 'prod'}}]}": tier.Deny,
	} {
		if _, got := parsePolicy(t, head+spec).Evaluate(c, tier.Ingress); got != want {
			t.Errorf("%s: decides %q, want %q", spec, got, want)
		}
	}
	if p := parsePolicy(t, head+"{preDNAT: true, applyOnForward: true, ingress: [{action: Allow}]}"); p != nil {
		t.Error("a policy for hosts is about pods")
	}
}

// TestSets expects selectors to match addresses by the labels of sets.
func TestSets(t *testing.T) {
	sets := &calico.Sets{}
	sets.Add(parseObject(t, "kind: GlobalNetworkSet\nmetadata: {name: s, labels: {who: partner}}\nspec: {nets: [203.0.113.0/24, broken]}"), nil)
	c := &tier.Connection{From: newOutside("203.0.113.10"), To: newPod("prod"), Port: 80, Protocol: "TCP"}
	for source, want := range map[string]tier.Action{
		"{namespaceSelector: global(), selector: who == 'partner'}": tier.Allow,
		"{namespaceSelector: global(), selector: who == 'other'}":   "",
		"{selector: who == 'partner'}":                              "",
	} {
		p, err := calico.NewPolicy(parseObject(t, head+"{ingress: [{action: Allow, source: "+source+"}]}"), sets)
		if err != nil {
			t.Fatal(err)
		}
		if _, got := p.Evaluate(c, tier.Ingress); got != want {
			t.Errorf("%s: decides %q, want %q", source, got, want)
		}
	}
}

// TestUnreadable expects an error that names the unreadable policy, because connections
// cannot be evaluated without it.
func TestUnreadable(t *testing.T) {
	for _, spec := range []string{"{selector: role = 'x'}", "{order: many}", "{ingress: [{action: Allow, source: {nets: [nowhere]}}]}"} {
		if p, err := calico.NewPolicy(parseObject(t, head+spec), nil); err == nil {
			t.Errorf("%s: %+v, want an error", spec, p)
		}
	}
}
