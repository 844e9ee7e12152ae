package component

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// leftOut are the arguments that turn off a default feature of the API server.
//
// Turning off the resources alone fails: the admission plugin waits for them, and meanwhile
// refuses all requests. Turning off only the plugin, or its feature gate, leaves the kinds
// served, and their objects without effect.
var leftOut = map[string][]string{
	// As on a cluster before Kubernetes 1.36.
	"MutatingAdmissionPolicy": {
		"--disable-admission-plugins=MutatingAdmissionPolicy",
		"--runtime-config=admissionregistration.k8s.io/v1/mutatingadmissionpolicies=false," +
			"admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings=false",
	},
	// As on Kubernetes 1.34 and 1.35, where the kind is v1beta1. The admission plugin of
	// this version reads v1 alone: it is off, and the objects have no effect.
	"MutatingAdmissionPolicy/v1": {
		"--disable-admission-plugins=MutatingAdmissionPolicy",
		"--runtime-config=admissionregistration.k8s.io/v1/mutatingadmissionpolicies=false," +
			"admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings=false," +
			"admissionregistration.k8s.io/v1beta1=true",
	},
}

// CheckWithout checks the names of features to turn off.
func CheckWithout(names []string) error {
	for _, name := range names {
		if _, ok := leftOut[name]; !ok {
			return fmt.Errorf("there is no feature %q to turn off: choose from %s",
				name, strings.Join(slices.Sorted(maps.Keys(leftOut)), ", "))
		}
	}
	return nil
}

func buildWithoutArgs(names []string) []string {
	var args []string
	for _, name := range names {
		args = append(args, leftOut[name]...)
	}
	return args
}
