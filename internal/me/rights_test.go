package me

import "testing"

func TestPeople(t *testing.T) {
	for want, subjects := range map[string][]string{
		"":                              nil,
		" (group oidc:devs, user jane)": {"Group:oidc:devs", "User:jane"},
	} {
		if got := people(subjects); got != want {
			t.Errorf("%q are %q, want %q", subjects, got, want)
		}
	}
}
