package component

import (
	"slices"
	"strings"
	"testing"
)

func TestSelect(t *testing.T) {
	for name, tc := range map[string]struct {
		names, want []string
		fails       string // the remedy in the error
	}{
		"all":            {names: All, want: All},
		"in start order": {names: []string{Kwok, APIServer, Etcd}, want: []string{Etcd, APIServer, Kwok}},
		"missing need":   {names: []string{APIServer}, fails: `add it to --components`},
		"unknown":        {names: []string{Etcd, "kubelet"}, fails: "choose from"},
		"none":           {fails: "choose from"},
		"croft":          {names: []string{Etcd, APIServer, Croft}, fails: "--croft PATH"},
		"flux":           {names: []string{Etcd, APIServer, Flux}, fails: "--with flux"},
		"git":            {names: []string{Etcd, APIServer, Git}, fails: "--with flux"},
		"gatekeeper":     {names: []string{Etcd, APIServer, Gatekeeper}, fails: "--with gatekeeper"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Select(tc.names)
			if tc.fails == "" && (err != nil || !slices.Equal(got, tc.want)) {
				t.Errorf("got %v, %v; want %v", got, err, tc.want)
			}
			if tc.fails != "" && (err == nil || !strings.Contains(err.Error(), tc.fails)) {
				t.Errorf("got %v, want an error with %q", err, tc.fails)
			}
		})
	}
}

func TestListFailures(t *testing.T) {
	body := "[+]ping ok\n[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\n[+]etcd ok\nreadyz check failed\n"
	if got, want := listFailures(body), "poststarthook/rbac/bootstrap-roles failed: reason withheld"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := listFailures("not found\n"); got != "not found" {
		t.Errorf("got %q", got)
	}
}
