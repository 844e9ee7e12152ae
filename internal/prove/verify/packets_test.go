package verify

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/prove/dial"
)

// newPacketTargets returns two tenants: red with two namespaces and open egress, blue with one and
// restricted egress.
func newPacketTargets() *targets {
	red, blue := &estate.Tenant{Name: "red", Egress: v1alpha1.EgressOpen}, &estate.Tenant{Name: "blue", Egress: v1alpha1.EgressRestricted}
	return &targets{
		tenants: map[string]*estate.Tenant{"red": red, "red-2": red, "blue": blue},
		servers: []serverAddresses{
			{"red", []string{"10.0.0.1"}, []string{"10.1.0.1"}},
			{"red-2", []string{"10.0.0.2"}, []string{"10.1.0.2"}},
			{"blue", []string{"10.0.0.3", "fd00::3"}, []string{"10.1.0.3"}},
		},
		metadata: []string{"169.254.169.254"},
		nodes:    []nodeAddress{{"node-1", "192.0.2.1"}, {"node-2", "192.0.2.2"}}, apiServers: []string{"10.1.0.9"}, dns: true,
	}
}

// makeConnections returns the connections of all namespaces, from pods on node-1, with the outcomes that
// open decides for each container.
func makeConnections(t *testing.T, to *targets, open func(container string, c connection) bool) []connection {
	t.Helper()
	var all []connection
	for _, namespace := range []string{"red", "red-2", "blue"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dial"}, Spec: corev1.PodSpec{NodeName: "node-1"}}
		terminate := func(container string, connections []connection) corev1.ContainerStatus {
			var lines []string
			for _, c := range connections {
				lines = append(lines, map[bool]string{true: dial.Open, false: dial.Silent}[open(container, c)])
			}
			return corev1.ContainerStatus{Name: container, State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{Message: strings.Join(lines, "\n") + "\n"},
			}}
		}
		connections := to.listConnections(namespace)
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{terminate(firstContainer, selectClosed(connections))}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{terminate(mainContainer, connections)}
		made, err := readOutcomes(pod, to)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, made...)
	}
	return all
}

// TestPackets plants a wrong outcome for each test, and expects its result alone to be a
// breach.
func TestPackets(t *testing.T) {
	enforced := func(_ string, c connection) bool { return !c.closed || c.node == "node-1" }
	for _, planted := range []struct {
		name     string
		open     func(container string, c connection) bool
		breached []string
		wantText string
	}{
		{"enforced", enforced, nil, ""},
		{"no plugin", func(string, connection) bool { return true }, []string{betweenTenants, firstMoments, toMetadata, toNodes}, "from red to the pod of blue at tcp/10.0.0.3:8080: open"},
		{"nothing passes", func(string, connection) bool { return false }, []string{withinTenant, toAPIServer, byName}, "from red to the Service of red-2 at tcp/croft-packets.red-2.svc:8080: silent"},
		{"open over IPv6 alone", func(container string, c connection) bool {
			return enforced(container, c) || container == mainContainer && strings.Contains(c.address, "fd00")
		}, []string{betweenTenants}, "tcp/[fd00::3]:8080"},
		{"open in the first moments", func(container string, c connection) bool {
			return enforced(container, c) || container == firstContainer
		}, []string{firstMoments}, ""},
		{"metadata", func(container string, c connection) bool {
			return enforced(container, c) || container == mainContainer && c.test == toMetadata
		}, []string{toMetadata}, "from blue to the metadata address at tcp/169.254.169.254:80: open"},
		{"another node", func(container string, c connection) bool { return enforced(container, c) || c.node == "node-2" }, []string{toNodes}, "from blue to the kubelet of node-2"},
		{"UDP is closed within the tenant", func(container string, c connection) bool {
			return enforced(container, c) && (c.test != withinTenant || !strings.HasPrefix(c.address, "udp"))
		}, []string{withinTenant}, "from red-2 to the pod of red at udp/10.0.0.1:8080: silent"},
	} {
		t.Run(planted.name, func(t *testing.T) {
			var breached []string
			var breaches string
			for _, r := range summarizePackets(makeConnections(t, newPacketTargets(), planted.open), true) {
				if r.Result == Breached {
					breached = append(breached, r.Name)
				} else if r.Result != Held {
					t.Errorf("%s: %s: %s", r.Name, r.Result, r.Message)
				}
				breaches += strings.Join(r.Breaches, "\n") + "\n"
			}
			if !slices.Equal(breached, planted.breached) || !strings.Contains(breaches, planted.wantText) {
				t.Errorf("breached: %v, want %v, and %q in:\n%s", breached, planted.breached, planted.wantText, breaches)
			}
		})
	}
}

// TestPacketsKeepClasses fails if croft verify --packets would write or delete a RuntimeClass or a
// PriorityClass of the platform, or one without a name.
func TestPacketsKeepClasses(t *testing.T) {
	for _, class := range []string{"", "gvisor"} {
		platform := v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
		may := &platform.Spec.TenantDefaults.Policy
		may.RuntimeClass = &v1alpha1.PodRuntimeClass{Force: class}
		may.PriorityClass = &v1alpha1.PodPriorityClass{Default: class} // among the classes of its tenants only
		p, err := NewPackets(platform, "apps", "registry.example.org/croft")
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range p.scratch.Objects() {
			if kind := o.GetObjectKind().GroupVersionKind().Kind; kind == "RuntimeClass" || kind == "PriorityClass" {
				t.Errorf("with the platform's class %q, it writes %s %q", class, kind, o.GetName())
			}
		}
	}
}

func TestPacketsWithoutDNS(t *testing.T) {
	to := newPacketTargets()
	to.dns = false
	for _, r := range summarizePackets(makeConnections(t, to, func(_ string, c connection) bool { return !c.closed }), false) {
		if want := map[bool]Outcome{true: NotTried, false: Held}[r.Name == byName]; r.Result != want {
			t.Errorf("%s: %s", r.Name, r.Result)
		}
	}
}

func TestReadOutcomesOfAnotherImage(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "red", Name: "dial"}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: firstContainer, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 127},
	}}}
	if _, err := readOutcomes(pod, newPacketTargets()); err == nil || !strings.Contains(err.Error(), "is the image croft's?") {
		t.Error(err)
	}
}
