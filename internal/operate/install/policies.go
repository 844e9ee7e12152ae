package install

import (
	"embed"
	"io/fs"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/rulefile"
)

// TenantsPolicy is the name of the policy that protects Tenants from deletion. It is installed
// with croft and is no part of a wall: it exists before the first Platform, and it restricts the
// platform's own users.
const TenantsPolicy = "croft-tenants"

// ruleFiles has a folder for each policy: see package rulefile.
//
//go:embed rules
var ruleFiles embed.FS

// PolicyObjects returns the policies that are installed with croft, and their bindings.
func PolicyObjects() []client.Object {
	var all []client.Object
	for _, policy := range []admissionpolicy.Validating{buildProbesPolicy(), buildConfigMapsPolicy(), buildRevisionPolicy(), readTenantsPolicy()} {
		all = append(all, policy.Objects()...)
	}
	return all
}

// readTenantsPolicy reads the policy TenantsPolicy from its files. They are part of the program, so a
// test finds any error in them.
func readTenantsPolicy() admissionpolicy.Validating {
	folders, err := fs.Sub(ruleFiles, "rules")
	utilruntime.Must(err)
	policies, err := rulefile.ReadPolicies(folders, nil)
	utilruntime.Must(err)
	policy, err := policies[TenantsPolicy].Build(nil)
	utilruntime.Must(err)
	return policy
}
