package network_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall/network"
)

// connections are between web, which has Open egress, and jobs, which has Restricted egress.
var connections = []estate.Connection{
	{
		Caller: "jobs", Callee: "web",
		Ports: []estate.PortRange{
			{Protocol: corev1.ProtocolTCP, First: 443, Last: 443},
			{Protocol: corev1.ProtocolTCP, First: 8000, Last: 8010},
			{Protocol: corev1.ProtocolUDP, First: 53, Last: 53},
		},
		CallerPods: map[string]string{"app": "batch"},
		CalleePods: map[string]string{"app": "api", "example.org/tier": "front"},
		Until:      metav1.NewTime(time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)),
	},
	{
		Caller: "web", Callee: "jobs",
		Ports: []estate.PortRange{{Protocol: corev1.ProtocolTCP, First: 9090, Last: 9090}},
	},
	{
		Caller: "jobs", Callee: "web", CalleeNamespace: "web-2", TenantCaller: "db",
		Ports:      []estate.PortRange{{Protocol: corev1.ProtocolTCP, First: 5432, Last: 5432}},
		CallerPods: map[string]string{"app": "batch"},
		CalleePods: map[string]string{"app": "db"},
		Until:      metav1.NewTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)),
	},
}

// TestAgreedConnections expects that each dialect allows the connections to which two tenants
// agreed, and no others.
func TestAgreedConnections(t *testing.T) {
	batch, api, db := connections[0].CallerPods, connections[0].CalleePods, connections[2].CalleePods
	of := map[string]string{"web": "web", "web-2": "web", "jobs": "jobs", "bank": "bank", "default": ""}
	var namespaces []corev1.Namespace
	for name, tenant := range of {
		labels := map[string]string{corev1.LabelMetadataName: name}
		if tenant != "" {
			labels[v1alpha1.TenantLabel] = tenant
		}
		namespaces = append(namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	tests := []struct {
		name string
		flow attack.Flow
		want bool
	}{
		{"the port", attack.Flow{FromNamespace: "jobs", FromLabels: batch, ToNamespace: "web", ToLabels: api, Port: 443}, true},
		{"each namespace", attack.Flow{FromNamespace: "jobs", FromLabels: batch, ToNamespace: "web-2", ToLabels: api, Port: 443}, true},
		{"the end of the range", attack.Flow{FromNamespace: "jobs", FromLabels: batch, ToNamespace: "web", ToLabels: api, Port: 8010}, true},
		{"the other protocol", attack.Flow{FromNamespace: "jobs", FromLabels: batch, ToNamespace: "web", ToLabels: api, Port: 53, Protocol: "UDP"}, true},
		{"another port", attack.Flow{FromNamespace: "jobs", FromLabels: batch, ToNamespace: "web", ToLabels: api, Port: 80}, false},
		{"beyond the range", attack.Flow{FromNamespace: "jobs", FromLabels: batch, ToNamespace: "web", ToLabels: api, Port: 8011}, false},
		{"another protocol", attack.Flow{FromNamespace: "jobs", FromLabels: batch, ToNamespace: "web", ToLabels: api, Port: 443, Protocol: "UDP"}, false},
		{"other pods are called", attack.Flow{FromNamespace: "jobs", FromLabels: batch, ToNamespace: "web", Port: 443}, false},
		{"pods with one of two labels are called", attack.Flow{FromNamespace: "jobs", FromLabels: batch, ToNamespace: "web", ToLabels: map[string]string{"app": "api"}, Port: 443}, false},
		{"other pods call", attack.Flow{FromNamespace: "jobs", ToNamespace: "web", ToLabels: api, Port: 443}, false},
		{"a third tenant calls", attack.Flow{FromNamespace: "bank", FromLabels: batch, ToNamespace: "web", ToLabels: api, Port: 443}, false},
		{"a namespace without a tenant calls", attack.Flow{FromNamespace: "default", FromLabels: batch, ToNamespace: "web", ToLabels: api, Port: 443}, false},
		{"the caller is called", attack.Flow{FromNamespace: "web", FromLabels: api, ToNamespace: "jobs", ToLabels: batch, Port: 443}, false},
		{"a third tenant is called", attack.Flow{FromNamespace: "jobs", FromLabels: batch, ToNamespace: "bank", ToLabels: api, Port: 443}, false},
		{"all pods", attack.Flow{FromNamespace: "web-2", ToNamespace: "jobs", Port: 9090}, true},
		{"the port in one namespace", attack.Flow{FromNamespace: "jobs", FromLabels: batch, ToNamespace: "web-2", ToLabels: db, Port: 5432}, true},
		{"its port in another namespace", attack.Flow{FromNamespace: "jobs", FromLabels: batch, ToNamespace: "web", ToLabels: db, Port: 5432}, false},
		{"another port in this namespace", attack.Flow{FromNamespace: "jobs", FromLabels: batch, ToNamespace: "web-2", ToLabels: db, Port: 443}, false},
		{"other pods in this namespace", attack.Flow{FromNamespace: "jobs", FromLabels: batch, ToNamespace: "web-2", ToLabels: api, Port: 5432}, false},
		{"other pods call this namespace", attack.Flow{FromNamespace: "jobs", ToNamespace: "web-2", ToLabels: db, Port: 5432}, false},
		{"a third tenant calls this namespace", attack.Flow{FromNamespace: "bank", FromLabels: batch, ToNamespace: "web-2", ToLabels: db, Port: 5432}, false},
		{"another port of all pods", attack.Flow{FromNamespace: "web", ToNamespace: "jobs", Port: 9091}, false},
	}
	for name, dialect := range dialects {
		t.Run(name, func(t *testing.T) {
			p := &estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{Network: dialect}}
			var objects []client.Object
			for _, tenant := range []*estate.Tenant{
				{Name: "web", Namespaces: []string{"web", "web-2"}, Egress: v1alpha1.EgressOpen, Connections: connections},
				{Name: "jobs", Namespaces: []string{"jobs"}, Egress: v1alpha1.EgressRestricted, Connections: connections},
				{Name: "bank", Namespaces: []string{"bank"}, Egress: v1alpha1.EgressOpen},
			} {
				objects = append(objects, network.Wall{}.Tenant(p, tenant)...)
			}
			policies, err := netpol.NewFromObjects(namespaces, objects)
			if err != nil {
				t.Fatal(err)
			}
			for _, test := range tests {
				if test.flow.Protocol == "" {
					test.flow.Protocol = "TCP"
				}
				got, err := policies.Evaluate(test.flow)
				if err != nil || got.Allowed != test.want {
					t.Errorf("%s: %v, want %v (%+v, %v)", test.name, got.Allowed, test.want, got, err)
				}
			}
			fromJobs := slices.DeleteFunc(network.ListAgreements(&estate.Platform{Connections: connections}),
				func(a attack.Agreement) bool { return a.From != "jobs" })
			if beyond, err := policies.Connects("jobs", "web-2", 0, "TCP", fromJobs...); err != nil || beyond.Allowed {
				t.Errorf("beyond the agreements: %+v, %v", beyond, err)
			}
			fromJobs[1].ToNamespace = "web"
			if beyond, err := policies.Connects("jobs", "web-2", 0, "TCP", fromJobs...); err != nil || !beyond.Allowed {
				t.Errorf("an agreement on another namespace includes %+v, %v", beyond, err)
			}
		})
	}
}

// TestAgreedPolicyCount expects a number of policies that does not depend on ports and labels.
func TestAgreedPolicyCount(t *testing.T) {
	many := connections[0]
	many.Ports = nil
	for port := int32(1); port <= 61; port += 2 {
		many.Ports = append(many.Ports, estate.PortRange{Protocol: corev1.ProtocolTCP, First: port, Last: port})
	}
	for name, dialect := range dialects {
		p := &estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{Network: dialect}}
		count := func(tenant string, egress v1alpha1.Egress, c ...estate.Connection) int {
			return len(network.Wall{}.Tenant(p, &estate.Tenant{Name: tenant, Namespaces: []string{tenant}, Egress: egress, Connections: c}))
		}
		want := 1
		if dialect.Dialect == v1alpha1.DialectClusterNetworkPolicy || dialect.Dialect == v1alpha1.DialectAWS {
			want = 2 // one of them for the cluster
		}
		if got := count("web", v1alpha1.EgressOpen, many) - count("web", v1alpha1.EgressOpen); got != want {
			t.Errorf("%s: %d objects of the callee, want %d", name, got, want)
		}
		if got := count("jobs", v1alpha1.EgressRestricted, many) - count("jobs", v1alpha1.EgressRestricted); got != 1 {
			t.Errorf("%s: %d objects of the caller", name, got)
		}
		if got := count("jobs", v1alpha1.EgressRestricted, many, connections[2], connections[2]) - count("jobs", v1alpha1.EgressRestricted); got != 1 {
			t.Errorf("%s: %d objects of the caller of several namespaces", name, got)
		}
		if got := count("jobs", v1alpha1.EgressOpen, many) - count("jobs", v1alpha1.EgressOpen); got != 0 {
			t.Errorf("%s: %d objects of a caller with Open egress", name, got)
		}
	}
}

// TestUntilAnnotationIsFirstEnd expects the first end of all connections that a policy allows:
// until then nothing has to change.
func TestUntilAnnotationIsFirstEnd(t *testing.T) {
	endless := connections[0]
	endless.Until = metav1.Time{}
	for _, test := range []struct {
		name        string
		connections []estate.Connection
		want        string
	}{
		{"one", connections[:1], "2027-02-01T00:00:00Z"},
		{"none ends", []estate.Connection{endless}, ""},
		{"the second ends first", []estate.Connection{connections[0], connections[2]}, "2027-01-01T00:00:00Z"},
		{"only the second ends", []estate.Connection{endless, connections[2]}, "2027-01-01T00:00:00Z"},
		{"only the first ends", []estate.Connection{connections[2], endless}, "2027-01-01T00:00:00Z"},
	} {
		for name, dialect := range dialects {
			p := &estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{Network: dialect}}
			jobs := &estate.Tenant{Name: "jobs", Namespaces: []string{"jobs"}, Egress: v1alpha1.EgressRestricted, Connections: test.connections}
			for _, o := range (network.Wall{}).Tenant(p, jobs) {
				if o.GetLabels()[v1alpha1.ConsentLabel] == "web" && o.GetAnnotations()[v1alpha1.UntilAnnotation] != test.want {
					t.Errorf("%s, %s: %s ends at %q", name, test.name, o.GetName(), o.GetAnnotations()[v1alpha1.UntilAnnotation])
				}
			}
		}
	}
}

// TestReadConnection expects the same connections from the policies of both tenants, in every dialect.
func TestReadConnection(t *testing.T) {
	end := connections[0].Until.UTC()
	both := []estate.Connection{connections[0], connections[1]}
	want := map[network.OpenConnection]bool{{Caller: "jobs", Callee: "web", End: end}: true, {Caller: "web", Callee: "jobs"}: true}
	for name, dialect := range dialects {
		p := &estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{Network: dialect}}
		for _, tenant := range []string{"web", "jobs"} {
			got := map[network.OpenConnection]bool{}
			for _, o := range (network.Wall{}).Tenant(p, &estate.Tenant{
				Name: tenant, Namespaces: []string{tenant}, Egress: v1alpha1.EgressRestricted, Connections: both,
			}) {
				labels := map[string]string{v1alpha1.TenantLabel: tenant}
				maps.Copy(labels, o.GetLabels())
				o.SetLabels(labels)
				if c, ok := network.ReadConnection(o); ok {
					got[c] = true
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s: the policies of %s allow %v", name, tenant, got)
			}
		}
	}
}
