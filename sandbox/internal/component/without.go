package component

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// leftOut are the arguments with which the API server does without something
// that it has by default.
//
// The resources alone will not do: the admission plugin waits for them, and
// admits nothing while it does. The plugin alone, or its feature gate, leaves the
// kinds served and whatever is written of them without effect.
var leftOut = map[string][]string{
	// As on a cluster before Kubernetes 1.36.
	"MutatingAdmissionPolicy": {
		"--disable-admission-plugins=MutatingAdmissionPolicy",
		"--runtime-config=admissionregistration.k8s.io/v1/mutatingadmissionpolicies=false," +
			"admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings=false",
	},
}

// CheckWithout checks the names of what is to be left out.
func CheckWithout(names []string) error {
	for _, name := range names {
		if _, ok := leftOut[name]; !ok {
			return fmt.Errorf("nothing is called %q that the API server can do without: choose from %s",
				name, strings.Join(slices.Sorted(maps.Keys(leftOut)), ", "))
		}
	}
	return nil
}

func without(names []string) []string {
	var args []string
	for _, name := range names {
		args = append(args, leftOut[name]...)
	}
	return args
}
