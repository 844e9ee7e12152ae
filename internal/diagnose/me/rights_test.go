package me

import "testing"

func TestFormatSubjects(t *testing.T) {
	for _, c := range []struct {
		subjects []string
		want     string
	}{
		{nil, ""},
		{[]string{"Group:oidc:devs", "User:jane"}, " (group oidc:devs, user jane)"},
	} {
		if got := formatSubjects(c.subjects); got != c.want {
			t.Errorf("%q are %q, want %q", c.subjects, got, c.want)
		}
	}
}
