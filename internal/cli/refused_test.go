package cli

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/me"
)

// TestRefusedPods expects refused workloads in the output of `croft status` and `croft me`.
func TestRefusedPods(t *testing.T) {
	first := v1alpha1.RefusedWorkload{Namespace: "shop-dev", Kind: "ReplicaSet", Name: "web-1", Message: "exceeded quota: croft, requested: pods=1\nTENANT forged"}
	shop := v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Status: v1alpha1.TenantStatus{RefusedPods: &v1alpha1.RefusedPods{Workloads: 3, First: first}}}
	bank := v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "bank"}}
	const detail = "Pods are refused:\n  - ReplicaSet shop-dev/web-1: exceeded quota: croft, requested: pods=1 TENANT forged\n"
	var out bytes.Buffer
	a := &app{out: &out}
	status := func(pick *selection) func() {
		return func() {
			look := &overview{selection: pick, Platform: newDefaultPlatform(), Tenants: []v1alpha1.Tenant{shop, bank}, Operator: operatorStatus{believable: true}}
			if err := look.applySelection(); err != nil {
				t.Fatal(err)
			}
			a.printStatus(look)
		}
	}
	for name, c := range map[string]struct {
		print     func()
		has, lack string
	}{
		"status of all":         {status(&selection{}), "PODS   REFUSED   AGE\n", "Pods are refused"},
		"status of a tenant":    {status(&selection{tenants: []string{"shop"}}), detail, "bank"},
		"status of another one": {status(&selection{tenants: []string{"bank"}}), "bank", "Pods are refused"},
		"me":                    {func() { a.printMe(&me.Me{Refused: []v1alpha1.RefusedWorkload{first}}) }, detail, "\nTENANT forged"},
		"me, nothing refused":   {func() { a.printMe(&me.Me{}) }, "YOU MAY USE", "Pods are refused"},
		"more than a screen":    {func() { a.printRefused(make([]v1alpha1.RefusedWorkload, mostRows+2)) }, "  and 2 more\n", detail},
	} {
		t.Run(name, func(t *testing.T) {
			out.Reset()
			c.print()
			if text := out.String(); !strings.Contains(text, c.has) || strings.Contains(text, c.lack) {
				t.Errorf("want %q, and not %q, in:\n%s", c.has, c.lack, text)
			}
		})
	}
	out.Reset()
	status(&selection{})()
	for line := range strings.Lines(out.String()) {
		if cells := strings.Fields(line); len(cells) > 2 && cells[0] == "shop" && cells[len(cells)-2] != "3" {
			t.Errorf("the count is missing in %q", line)
		}
	}
}
