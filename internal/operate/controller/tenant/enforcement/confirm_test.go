package enforcement

import (
	"context"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/install"
)

// TestAddresses reads the addresses of API servers from EndpointSlices.
func TestAddresses(t *testing.T) {
	port := func(name string, number int32) discoveryv1.EndpointPort {
		return discoveryv1.EndpointPort{Name: ptr.To(name), Port: ptr.To(number)}
	}
	at := func(addresses ...string) discoveryv1.Endpoint { return discoveryv1.Endpoint{Addresses: addresses} }
	leaving := at("10.0.0.3")
	leaving.Conditions.Ready = ptr.To(false)
	for name, test := range map[string]struct {
		slice discoveryv1.EndpointSlice
		want  []string
	}{
		"none": {},
		"one":  {discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{port("https", 443)}, Endpoints: []discoveryv1.Endpoint{at("10.0.0.1")}}, []string{"10.0.0.1:443"}},
		"several, of which one leaves": {
			discoveryv1.EndpointSlice{
				Ports:     []discoveryv1.EndpointPort{port("metrics", 9), port("https", 6443)},
				Endpoints: []discoveryv1.Endpoint{at("10.0.0.2"), leaving, at("10.0.0.1"), at("10.0.0.2")},
			},
			[]string{"10.0.0.1:6443", "10.0.0.2:6443"},
		},
		"IPv6":              {discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{port("https", 6443)}, Endpoints: []discoveryv1.Endpoint{at("fd00::1")}}, []string{"[fd00::1]:6443"}},
		"no port for https": {discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{port("http", 80)}, Endpoints: []discoveryv1.Endpoint{at("10.0.0.1")}}, nil},
	} {
		if got := listAddresses(&test.slice); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// newDenial returns an API server's refusal by a rule of a policy.
func newDenial(policy, message string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "limitranges"}, "croft-revision-",
		errors.New("ValidatingAdmissionPolicy '"+policy+"' with binding '"+policy+"' denied request: "+message))
}

// newConnectionError returns the error of a connection.
func newConnectionError(text string) error {
	return &url.Error{Op: "Post", URL: "https://10.0.0.1", Err: &net.OpError{Op: "read", Net: "tcp", Err: errors.New(text)}}
}

// TestCompare reads an API server's version of a namespace from its answer, and compares it
// with version 100.
func TestCompare(t *testing.T) {
	for name, test := range map[string]struct {
		answer error
		want   string // "" if the server evaluates the current rules
		silent bool
	}{
		"the same version":   {newDenial(install.RevisionPolicy, "[revision] 100"), "", false},
		"a later version":    {newDenial(install.RevisionPolicy, "[revision] 1000"), "", false},
		"an earlier version": {newDenial(install.RevisionPolicy, "[revision] 99"), "still evaluates the previous rules of namespace shop (version 99, and 100 is the current one)", false},
		"no version":         {newDenial(install.RevisionPolicy, "[revision] "), "cannot be compared", false},
		"another rule":       {newDenial(install.RevisionPolicy, "[dry-run-only] no"), "does not report its version of namespace shop: ", false},
		"another policy":     {newDenial("foreign", "[revision] 100"), "does not report its version of namespace shop: ", false},
		"an older croft":     {nil, "run croft install or helm upgrade again", false},
		"an overload":        {apierrors.NewTooManyRequests("later", 1), "does not report its version of namespace shop: ", false},
		"a dead server":      {newConnectionError("connection refused"), "does not answer (connection refused)", true},
		"a frozen server":    {&url.Error{Op: "Post", URL: "https://10.0.0.1", Err: context.DeadlineExceeded}, "does not answer (timeout after 3s)", true},
		"other credentials":  {apierrors.NewUnauthorized("who"), "does not answer (who)", true},
	} {
		err := compareVersion(test.answer, "shop", "100")
		switch {
		case test.want == "" && err != nil, test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", name, err, test.want)
		case errors.Is(err, errSilent) != test.silent:
			t.Errorf("%s: silent %t", name, !test.silent)
		}
	}
}

// fakeServer answers the two dry runs of a confirmation.
type fakeServer struct {
	client.Client
	revision, stray error
	asked           atomic.Int32 // two servers may share one
	// late are the answers to begin with, from before the change.
	late int32
}

func (f *fakeServer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	if f.asked.Add(1) <= f.late {
		return newDenial(install.RevisionPolicy, "[revision] 99")
	}
	if o.GetGenerateName() == install.RevisionProbe {
		return f.revision
	}
	return f.stray
}

// Get answers with version 100 of any namespace.
func (*fakeServer) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.(*corev1.Namespace).ResourceVersion = "100"
	return nil
}

// TestConfirm fails if a tenant is confirmed while one of several API servers has not
// confirmed it, or if addresses that never answered keep every tenant from being Ready.
func TestConfirm(t *testing.T) {
	current := func() *fakeServer {
		return &fakeServer{revision: newDenial(install.RevisionPolicy, "[revision] 100"), stray: newDenial("croft-pods", "[tolerations] no")}
	}
	old := &fakeServer{revision: newDenial(install.RevisionPolicy, "[revision] 99")}
	late := current()
	late.late = 4
	unwalled := &fakeServer{revision: newDenial(install.RevisionPolicy, "[revision] 100")}
	dead := &fakeServer{revision: newConnectionError("connection reset by peer")}
	freezing := current()
	freezing.stray = newConnectionError("connection reset by peer")
	for name, test := range map[string]struct {
		servers  []*fakeServer
		given    bool
		answered bool // before
		want     string
		caveat   bool
	}{
		"one server":                         {},
		"both":                               {servers: []*fakeServer{current(), current()}},
		"one has previous rules":             {servers: []*fakeServer{current(), old}, want: "API server b still evaluates the previous rules of namespace shop"},
		"one is late as usual":               {servers: []*fakeServer{current(), late}},
		"one lacks a policy":                 {servers: []*fakeServer{unwalled, current()}, want: "API server a is not ready for namespace shop"},
		"one does not answer":                {servers: []*fakeServer{current(), dead}, want: "API server b does not answer (connection reset by peer)"},
		"one freezes between two requests":   {servers: []*fakeServer{current(), freezing}, want: "API server b is not ready for namespace shop: the API server does not answer the request for a dry-run pod"},
		"none answers, one did":              {servers: []*fakeServer{dead, dead}, answered: true, want: "API server a does not answer"},
		"none ever answered":                 {servers: []*fakeServer{dead, dead}, caveat: true},
		"none of the given ones answered":    {servers: []*fakeServer{dead, dead}, given: true, want: "API server a does not answer"},
		"the second has previous rules, too": {servers: []*fakeServer{dead, old}, want: "API server a does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Servers{live: current(), clock: clock.RealClock{}, listAt: time.Now(), answered: test.answered}
				for i, f := range test.servers {
					s.listed = append(s.listed, server{string(rune('a' + i)), f})
				}
				if test.given {
					s.given = []string{"a", "b"}
				}
				p := New(nil, s)
				platform, tenant := &estate.Platform{}, &estate.Tenant{}
				tenant.Namespaces = []string{"shop"}
				why := s.confirm(t.Context(), platform, tenant)
				if test.want == "" && why != "" || !strings.HasPrefix(why, test.want) {
					t.Errorf("%q, want %q", why, test.want)
				}
				if caveat := p.Caveat(); (caveat != "") != test.caveat {
					t.Errorf("the caveat is %q", caveat)
				}
				if !test.caveat {
					return
				}
				asked := dead.asked.Load()
				if why := s.confirm(t.Context(), platform, tenant); why != "" || dead.asked.Load() != asked {
					t.Errorf("addresses that never answered are tried for each tenant: %q", why)
				}
			})
		})
	}
}
