package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

func TestChoosePool(t *testing.T) {
	for _, c := range []struct {
		declared, name string
		want, problem  string
	}{
		{"", "", "", "none is declared"},
		{"apps", "", "apps", ""},
		{"apps", "apps", "apps", ""},
		{"gpu apps", "", "", "--pool: apps, gpu"},
		{"gpu apps", "gpu", "gpu", ""},
		{"gpu apps", "app", "", "--pool app: there is no such pool: write one of apps, gpu"},
	} {
		declared := &manifest.Declaration{}
		for _, name := range strings.Fields(c.declared) {
			declared.Pools = append(declared.Pools, v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		got, err := choosePool(declared, "--packets", c.name)
		if got != c.want || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%q of %q: %q, %v", c.name, c.declared, got, err)
		}
	}
}
