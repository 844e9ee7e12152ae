package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"croft.dev/croft/internal/observe/netpol/kubernetes"
	"croft.dev/croft/internal/observe/netpol/tier"
	"croft.dev/croft/internal/test/sandbox"
)

// policiesCompared is the number of random policies in TestPoliciesAgree.
const policiesCompared = 20_000

// question is the input of bin/cyclonus.
type question struct {
	Policies []*networkingv1.NetworkPolicy
	Traffic  traffic
	Ingress  bool
}

type traffic struct {
	Source, Destination trafficPeer
	ResolvedPort        int
	ResolvedPortName    string
	Protocol            string
}

type trafficPeer struct {
	IP       string
	Internal *internalPeer
}

type internalPeer struct {
	PodLabels, NamespaceLabels map[string]string
	Namespace                  string
}

// TestPoliciesAgree evaluates random policies for random connections, and compares the
// results with Cyclonus, a conformance suite for network plugins. It runs with `make
// test-all`, which builds Cyclonus. TestPolicy has the examples of the API's reference.
//
// Cyclonus differs from Kubernetes in three points, which the random policies avoid: its
// NotIn does not select pods without the label, its matchLabels with an empty value does, and
// it assigns no name to a port with a number.
func TestPoliciesAgree(t *testing.T) {
	sandbox.Thorough(t)
	oracle, err := sandbox.FindTool("cyclonus")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(14, 2))
	var questions []question
	var connections []*tier.Connection
	var in bytes.Buffer
	for range policiesCompared {
		c := generateConnection(random)
		p := generatePolicy(random, c.PortName != "")
		q := question{
			Policies: []*networkingv1.NetworkPolicy{p}, Ingress: random.IntN(2) == 0,
			Traffic: traffic{Source: newPeer(c.From), Destination: newPeer(c.To), ResolvedPort: c.Port, ResolvedPortName: c.PortName, Protocol: c.Protocol},
		}
		questions, connections = append(questions, q), append(connections, c)
		if err := json.NewEncoder(&in).Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), oracle)
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(bytes.NewReader(out))
	selected, allowed := 0, 0
	for i, q := range questions {
		var want struct{ Selected, Allowed bool }
		if err := answers.Decode(&want); err != nil {
			t.Fatal(err)
		}
		d := tier.Egress
		if q.Ingress {
			d = tier.Ingress
		}
		p, err := kubernetes.NewPolicy(q.Policies[0])
		if err != nil {
			t.Fatal(err)
		}
		selects, decides := p.Evaluate(connections[i], d)
		if got := selects == tier.Yes; got != want.Selected {
			t.Errorf("%s: it is selected: %t, with Cyclonus %t", formatQuestion(t, q), got, want.Selected)
		}
		if got := selects != tier.Yes || decides == tier.Allow; got != want.Allowed {
			t.Errorf("%s: it is allowed: %t, with Cyclonus %t", formatQuestion(t, q), got, want.Allowed)
		}
		if want.Selected {
			selected++
			if want.Allowed {
				allowed++
			}
		}
	}
	t.Logf("%d policies, of which %d select the pod, and %d of these allow the connection", len(questions), selected, allowed)
	if allowed < selected/5 || allowed > selected*4/5 || selected < policiesCompared/10 {
		t.Error("want many of each")
	}
}

func formatQuestion(t *testing.T, q question) string {
	t.Helper()
	data, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func newPeer(end tier.End) trafficPeer {
	p := trafficPeer{IP: end.Address.String()}
	if end.Pod != nil {
		p.Internal = &internalPeer{Namespace: end.Pod.Namespace, NamespaceLabels: end.Pod.NamespaceLabels, PodLabels: end.Pod.Labels}
	}
	return p
}

func pickOne[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func pickLabels(r *rand.Rand) map[string]string {
	return pickOne(r, nil, map[string]string{"app": "web"}, map[string]string{"app": "db"}, map[string]string{"app": "web", "role": "a"}, map[string]string{"role": "b"})
}

func generateConnection(r *rand.Rand) *tier.Connection {
	end := func() tier.End {
		if r.IntN(3) == 0 {
			return newOutside(pickOne(r, "203.0.113.10", "10.1.2.3", "169.254.169.254", "2001:db8::1"))
		}
		return newPod(pickOne(r, "red", "blue"), pickLabels(r))
	}
	c := &tier.Connection{From: end(), To: end(), Protocol: pickOne(r, "TCP", "TCP", "UDP", "SCTP")}
	if r.IntN(2) == 0 {
		c.Port = pickOne(r, 53, 80, 85, 8080)
	} else {
		c.PortName = pickOne(r, "http", "dns")
	}
	return c
}

func generateSelector(r *rand.Rand, key string, values ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	if r.IntN(2) == 0 {
		s.MatchLabels = map[string]string{key: pickOne(r, values...)}
	}
	if r.IntN(3) == 0 {
		e := metav1.LabelSelectorRequirement{Key: key, Operator: pickOne(r, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}
		if e.Operator == metav1.LabelSelectorOpIn {
			e.Values = values[:1+r.IntN(len(values))]
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}

// generatePolicy returns a policy that the API server accepts, with default values. Its ports
// have names or numbers.
func generatePolicy(r *rand.Rand, names bool) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "red", Name: "p"}}
	p.Spec.PodSelector = *generateSelector(r, "app", "web", "db")
	p.Spec.PolicyTypes = pickOne(r, []networkingv1.PolicyType{"Ingress"}, []networkingv1.PolicyType{"Egress"}, []networkingv1.PolicyType{"Ingress", "Egress"})
	for range r.IntN(3) {
		p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: generatePeers(r), Ports: generatePorts(r, names)})
		p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{To: generatePeers(r), Ports: generatePorts(r, names)})
	}
	return p
}

func generatePeers(r *rand.Rand) (peers []networkingv1.NetworkPolicyPeer) {
	for range r.IntN(3) {
		var p networkingv1.NetworkPolicyPeer
		switch r.IntN(4) {
		case 0:
			p.IPBlock = &networkingv1.IPBlock{CIDR: pickOne(r, "0.0.0.0/0", "203.0.113.0/24", "10.0.0.0/8", "2001:db8::/32")}
			if p.IPBlock.CIDR == "0.0.0.0/0" {
				p.IPBlock.Except = pickOne(r, nil, []string{"169.254.0.0/16", "10.1.0.0/16"})
			}
		case 1:
			p.PodSelector = generateSelector(r, "app", "web", "db")
		case 2:
			p.NamespaceSelector = generateSelector(r, "name", "red", "blue")
		default:
			p.PodSelector, p.NamespaceSelector = generateSelector(r, "role", "a", "b"), generateSelector(r, "name", "red", "blue")
		}
		peers = append(peers, p)
	}
	return peers
}

func generatePorts(r *rand.Rand, names bool) (ports []networkingv1.NetworkPolicyPort) {
	for range r.IntN(3) {
		p := networkingv1.NetworkPolicyPort{Protocol: new(pickOne(r, corev1.ProtocolTCP, corev1.ProtocolUDP))}
		switch n := r.IntN(3); {
		case n == 0: // all ports of a protocol
		case names:
			p.Port = new(intstr.FromString(pickOne(r, "http", "dns")))
		case n == 1:
			p.Port = new(intstr.FromInt32(pickOne[int32](r, 53, 80)))
		default:
			p.Port, p.EndPort = new(intstr.FromInt32(80)), new(int32(90))
		}
		ports = append(ports, p)
	}
	return ports
}
