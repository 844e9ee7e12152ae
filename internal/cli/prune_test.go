package cli

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

func TestExtraObjects(t *testing.T) {
	tenants := func(n int) (all []v1alpha1.Tenant) {
		for i := range n {
			all = append(all, v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("t%d", i)}})
		}
		return all
	}
	pools := []v1alpha1.Pool{{ObjectMeta: metav1.ObjectMeta{Name: "p"}}}
	networks := []v1alpha1.SecondaryNetwork{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}
	for want, b := range map[string]extraObjects{
		"":                          {},
		"pool p":                    {pools: pools},
		"tenants t0, t1 and pool p": {tenants: tenants(2), pools: pools},
		"tenant t0, pool p and secondary network n":              {tenants: tenants(1), pools: pools, networks: networks},
		"tenants t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, 2 more": {tenants: tenants(12)},
	} {
		if got := b.String(); got != want || b.isEmpty() != (want == "") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
