package component

import (
	"strings"
	"testing"
)

func TestCheckWithout(t *testing.T) {
	if err := CheckWithout([]string{"MutatingAdmissionPolicy"}); err != nil {
		t.Error(err)
	}
	if err := CheckWithout([]string{"PodSecurity"}); err == nil || !strings.Contains(err.Error(), "choose from MutatingAdmissionPolicy") {
		t.Errorf("got %v, want an error that lists the features", err)
	}
	if args := buildWithoutArgs(nil); len(args) > 0 {
		t.Errorf("arguments without a feature to turn off: %v", args)
	}
}
