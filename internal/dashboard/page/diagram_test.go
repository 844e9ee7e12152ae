package page_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/dashboard/connections"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/observe/netpol"
)

// TestDiagram expects a style of its own for each kind of connection, and only these styles in the legend:
// a connection about which another tenant decides is neither denied nor a hole.
func TestDiagram(t *testing.T) {
	s := &connections.Snapshot{Namespace: "shop", Policies: []networkingv1.NetworkPolicy{{ObjectMeta: metav1.ObjectMeta{
		Name: "croft-isolation", Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy},
	}}}}
	yes, no := &netpol.Verdict{Allowed: true}, &netpol.Verdict{}
	element := regexp.MustCompile(`<(line|polygon|text) class="(\w+)"`)
	for name, c := range map[string]struct {
		peer connections.Peer
		// arrows are the elements of both arrows, and legend the elements of the legend.
		arrows, legend string
	}{
		"a namespace of the tenant": {connections.Peer{Name: "shop-dev", From: yes, To: no},
			"line good, polygon good, line denied, text cross", "line good, polygon good, text legend, line denied, text cross, text legend"},
		"other tenants": {connections.Peer{Name: connections.OtherTenants, From: no, To: yes},
			"line denied, text cross, line peer, polygon peer", "line denied, text cross, text legend, line peer, polygon peer, text legend"},
		"a hole": {connections.Peer{Name: connections.OtherTenants, From: yes, To: no},
			"line bad, polygon bad, line denied, text cross", "line bad, polygon bad, text legend, line denied, text cross, text legend"},
		"metadata": {connections.Peer{Name: netpol.Metadata, To: yes}, "line bad, polygon bad", "line bad, polygon bad, text legend"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := page.Render(page.NewNetwork(s, []connections.Peer{c.peer}))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, found := range element.FindAllStringSubmatch(string(text), -1) {
				got = append(got, found[1]+" "+found[2])
			}
			if want := c.arrows + ", " + c.legend; strings.Join(got, ", ") != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	for _, style := range []string{"good", "bad", "denied", "peer"} {
		if !slices.Contains(strings.FieldsFunc(string(page.Style), func(r rune) bool { return r == '\n' || r == '{' }), ".diagram line."+style+" ") {
			t.Errorf("the style sheet has no style %s", style)
		}
	}
}
