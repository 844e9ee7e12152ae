package component

import (
	"testing"

	"croft.dev/croft/sandbox/internal/home"
)

func TestFindAPIServerProgram(t *testing.T) {
	for _, tt := range []struct {
		programs     []string
		server, want string
	}{
		{nil, "kube-apiserver", ""},
		{[]string{"1.37"}, "kube-apiserver", "1.37"},
		{[]string{"1.37"}, "kube-apiserver-3", "1.37"},
		{[]string{"", "1.37"}, "kube-apiserver", ""},
		{[]string{"", "1.37"}, "kube-apiserver-2", "1.37"},
		{[]string{"1.35", ""}, "kube-apiserver-3", ""},
	} {
		s := &Sandbox{config: home.Config{APIServers: 3, APIServerPrograms: tt.programs}}
		if got := s.findAPIServerProgram(tt.server); got != tt.want {
			t.Errorf("with the programs %q, %s runs %q, want %q", tt.programs, tt.server, got, tt.want)
		}
	}
}
