package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// testCharts writes NetworkPolicies of popular charts, and then the YAML from the refusals,
// which must be accepted unchanged.
func (p *people) testCharts(t *testing.T) {
	c := p.newClient(p.newConfig("oidc:devs"))
	for name, chart := range map[string]struct{ namespace, spec, field string }{
		"ports without from":      {"shop-prod", `{podSelector: {}, ingress: [{ports: [{port: 8080}]}]}`, "from"},
		"egress of everything":    {"shop-prod", `{podSelector: {}, policyTypes: [Egress], egress: [{}]}`, "to"},
		"egress, Restricted":      {"vault", `{podSelector: {}, policyTypes: [Egress], egress: [{}]}`, "to"},
		"no from, other platform": {"vault", `{podSelector: {}, ingress: [{}]}`, "from"},
	} {
		t.Run(name, func(t *testing.T) {
			np := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: chart.namespace, GenerateName: "chart-"}}
			if err := yaml.Unmarshal([]byte(chart.spec), &np.Spec); err != nil {
				t.Fatal(err)
			}
			var refused error
			p.awaitCondition(t, "the floor refuses it", func(ctx context.Context) error {
				refused = c.Create(ctx, np.DeepCopy(), client.DryRunAll)
				if !apierrors.IsForbidden(refused) || !strings.Contains(refused.Error(), "gress-") && !strings.Contains(refused.Error(), "[egress-to]") {
					return fmt.Errorf("not refused: %w", refused)
				}
				return nil
			})
			var peers []networkingv1.NetworkPolicyPeer
			if err := yaml.Unmarshal([]byte(cutList(refused.Error(), chart.field+": ")), &peers); err != nil || len(peers) == 0 {
				t.Fatalf("no YAML to write instead: %v: %v", err, refused)
			}
			for i := range np.Spec.Ingress {
				np.Spec.Ingress[i].From = peers
			}
			for i := range np.Spec.Egress {
				np.Spec.Egress[i].To = peers
			}
			if err := c.Create(t.Context(), np); err != nil {
				t.Errorf("the YAML that the message suggests is refused: %v\n%v", err, refused)
			}
		})
	}
}

// cutList returns the list in brackets that follows a field's name.
func cutList(message, field string) string {
	_, rest, _ := strings.Cut(message, field+"[")
	depth := 1
	for i, r := range rest {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth == 0 {
			return "[" + rest[:i] + "]"
		}
	}
	return ""
}
