package policy

import (
	"embed"
	"io/fs"
	"sync"
	"text/template"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/rules/rulefile"
)

// ruleFiles has a folder for each policy: see package rulefile.
//
//go:embed rules
var ruleFiles embed.FS

// expressionParts are the functions that the expressions in the rule files may call.
var expressionParts = template.FuncMap{
	"clusterWide": func() string { return clusterWide },
	// comparable is true if there is an old object that rules may compare.
	"comparable":       func() string { return admissionpolicy.Comparable },
	"formatAllowed":    formatAllowed,
	"formatFirst":      formatFirst,
	"formatHosts":      formatHosts,
	"formatPrintable":  formatPrintable,
	"goDuration":       func() string { return goDuration },
	"hostname":         func() string { return hostname },
	"matchAllowed":     matchAllowed,
	"matchClusterName": matchClusterName,
	"matchGranted":     matchGranted,
	"matchOutsideHost": matchOutsideHost,
	"matchSafeHost":    matchSafeHost,
	"matchURLHost":     matchURLHost,
	"notByPlatform":    matchNotByPlatform,
	"refusedNew":       refuseNew,
	"wildcards":        func() string { return buildWildcards().Expression },
}

// matchNotByPlatform returns the condition of admissionpolicy.NotByPlatform.
func matchNotByPlatform(admins []string) string {
	return admissionpolicy.NotByPlatform(admins)["not-by-the-platform"]
}

// The files are parsed once. They are part of the program, so a test finds any error in them.
var (
	readPolicies = sync.OnceValue(func() map[string]*rulefile.Policy {
		folders, err := fs.Sub(ruleFiles, "rules")
		utilruntime.Must(err)
		policies, err := rulefile.ReadPolicies(folders, expressionParts)
		utilruntime.Must(err)
		return policies
	})
	readCases = sync.OnceValue(func() map[string]rulefile.Cases {
		folders, err := fs.Sub(ruleFiles, "rules")
		utilruntime.Must(err)
		cases, err := rulefile.ReadCases(folders)
		utilruntime.Must(err)
		return cases
	})
)

// buildPolicy builds a policy from its folder.
func buildPolicy(p *estate.Platform, name string) admissionpolicy.Validating {
	policy, err := readPolicies()[name].Build(p)
	utilruntime.Must(err)
	return policy
}

// buildFileAttacks returns the attacks and mirrors among the cases of the rule files.
func (s scene) buildFileAttacks() []attack.Attack {
	words := rulefile.Scene{
		"own": s.own, "other": s.other, "host": s.host, "otherHost": s.otherHost,
		"otherDomain": findParentDomain(s.otherHost),
		"deviceClass": s.findDeviceClass(), "gatewayClass": s.findGatewayClass(), "ingressClass": s.findIngressClass(),
		"issuer": s.findIssuer(), "sourceHost": s.findSourceHost(),
	}
	all, err := rulefile.BuildAttacks(readCases(), words, buildRulesSpec(s.platform, s.attacker, s.own))
	utilruntime.Must(err)
	return all
}
