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
	words := rulefile.Scene{Own: s.own, Other: s.other, Host: s.host, OtherHost: s.otherHost}
	all, err := rulefile.BuildAttacks(readCases(), words, buildRulesSpec(s.platform, s.attacker, s.own))
	utilruntime.Must(err)
	return all
}
