package policy

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"text/template"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	"byAdmins":            admissionpolicy.ByAdmins,
	"byCopier":            func() string { return byCopier },
	"byGarbageCollector":  func() string { return byGarbageCollector },
	"byVolumeControllers": func() string { return byVolumeControllers },
	"bindingAnnotations":  func() string { return formatQuoted(BindingAnnotations) },
	"catalogue":           formatCatalogue,
	"checkValues":         checkValues,
	"clusterWide":         func() string { return clusterWide },
	// comparable is true if there is an old object that rules may compare.
	"comparable":          func() string { return admissionpolicy.Comparable },
	"countBytes":          countBytes,
	"countListedNames":    countListedNames,
	"everyNamespace":      func() string { return everyNamespace },
	"findClass":           findClass,
	"formatAllowed":       formatAllowed,
	"formatAnnotations":   formatAnnotations,
	"formatFirst":         formatFirst,
	"formatHosts":         formatHosts,
	"formatPrintable":     formatPrintable,
	"goDuration":          func() string { return goDuration },
	"harmless":            formatHarmless,
	"hostname":            func() string { return hostname },
	"isWindows":           func() string { return isWindows },
	"labelKeys":           formatLabelKeys,
	"listedKeys":          formatListedKeys,
	"matchAllowed":        matchAllowed,
	"matchAllowedClass":   matchAllowedClass,
	"matchClasses":        matchClasses,
	"matchClusterName":    matchClusterName,
	"matchGranted":        matchGranted,
	"matchHardlyGrown":    matchHardlyGrown,
	"matchNoLabels":       matchNoLabels,
	"matchOutsideHost":    matchOutsideHost,
	"matchOwnSource":      matchOwnSource,
	"matchSafeHost":       matchSafeHost,
	"matchTooLarge":       matchTooLarge,
	"matchURLHost":        matchURLHost,
	"maxNoteBytes":        func() int { return estate.MaxNoteBytes },
	"normalizeKey":        normalizeKey,
	"notByPlatform":       matchNotByPlatform,
	"ofTheCluster":        func() string { return ofTheCluster },
	"notAllowed":          func() string { return notAllowed },
	"ofCluster":           func() string { return ofCluster },
	"quoteAll":            quoteAll,
	"refusedOf":           filterRefused,
	"readAttributesClass": readAttributesClass,
	"readBound":           readBound,
	"readStorageClasses":  readStorageClasses,
	"readStorageRequest":  readStorageRequest,
	"readText":            readText,
	"refusedNew":          refuseNew,
	"sharesNode":          func() string { return sharesNode },
	"wildcards":           func() string { return wildcards },
}

// matchNotByPlatform returns the condition of admissionpolicy.NotByPlatform.
func matchNotByPlatform(admins []string) string {
	return admissionpolicy.NotByPlatform(admins)["not-by-the-platform"]
}

// quoteAll returns a list of names, which begins with the given first ones, as a CEL literal.
func quoteAll(names []string, first ...string) string {
	return formatQuoted(slices.Concat(first, names))
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
	agreed := s.findAgreed()
	agreedNamespace, agreedService, _ := strings.Cut(agreed.Services[0], "/")
	_, agreedGateway, _ := strings.Cut(agreed.Gateways[0], "/")
	words := map[string]string{
		"agreedNamespace": agreedNamespace, "agreedService": agreedService, "agreedGateway": agreedGateway,
		"own": s.own, "other": s.other, "otherTenant": s.target.Name, "host": s.host, "otherHost": s.otherHost,
		"otherDomain": findParentDomain(s.otherHost), "platform": s.findPlatformNamespace(),
		"deviceClass": s.findDeviceClass(), "gatewayClass": s.findGatewayClass(), "ingressClass": s.findIngressClass(),
		"issuer": s.findIssuer(), "sourceHost": s.findSourceHost(), "registry": s.attacker.Allowances.Registries[0],
		"storageClass": s.findStorageClass(), "maxVolumeSize": s.attacker.Allowances.MaxVolumeSize.String(),
		"overVolumeSize": s.exceedVolumeSize(), "otherRuntimeClass": findRuntimeClass(s.target).Force,
	}
	scene := rulefile.Scene{Words: words, Bases: s.buildBases()}
	all, err := rulefile.BuildAttacks(readCases(), scene, buildRulesSpec(s.platform, s.attacker, s.own))
	utilruntime.Must(err)
	return all
}

// findAgreed returns the connection by which routes of the attacker may name Services and Gateways of
// another tenant, or one without any.
func (s scene) findAgreed() estate.Connection {
	for _, c := range s.attacker.Connections {
		if c.Caller == s.attacker.Name && len(c.Services) > 0 && len(c.Gateways) > 0 {
			return c
		}
	}
	return estate.Connection{Services: []string{""}, Gateways: []string{""}}
}

// findPlatformNamespace returns a namespace of the platform, or "".
func (s scene) findPlatformNamespace() string {
	if names := s.platform.Network.PlatformNamespaces; len(names) > 0 {
		return names[0]
	}
	return ""
}

// BuildBases returns the objects that cases may name as their base, for a tenant.
func BuildBases(p *estate.Platform, t *estate.Tenant) map[string]client.Object {
	return newScene(p, t, t).buildBases()
}

func (s scene) buildBases() map[string]client.Object {
	bases := map[string]client.Object{
		"pod": s.makePod(""), "deployment": attack.NewDeployment(s.own, "", attack.NewTemplate()),
		"edge": s.makeEdge(""), "ingress": nil,
	}
	if s.host != "" {
		bases["ingress"] = s.makeIngress("")
	}
	return bases
}
