package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"croft.dev/croft/internal/rules/addons"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// The names of the policies on annotations and labels that add-ons act on. For pods, the
// policies on pods have these rules.
const (
	AnnotationsPolicy           = "croft-annotations"
	UnknownAnnotationsPolicy    = "croft-unknown-annotations"
	UnknownPodAnnotationsPolicy = "croft-unknown-pod-annotations"
)

// The names of their rules. Each is about some classes of the catalogue.
const (
	AnnotatedHostsRule     = "annotated-hosts"
	URLsRule               = "urls"
	ReferencesRule         = "references"
	ValuesRule             = "values"
	WithheldRule           = "withheld"
	UnknownAnnotationsRule = "unknown-annotations"
	UnknownWarningRule     = "unknown-annotations-allowed"
	LabelsRule             = "labels"
	// PodAnnotationsRule combines these rules: a pod passes one rule instead of seven.
	PodAnnotationsRule = "annotations"
)

// classRule is a rule about the annotations of some classes.
type classRule struct {
	name, summary string
	classes       []addons.Class
	// advice is the remedy. exception is the field that allows more, if the remedy names one.
	advice, exception string
}

const (
	byAnnotations = "policy.annotations"
	byGrant       = `; a platform admin allows it by ` + byAnnotations
)

func listClassRules() []classRule {
	return []classRule{
		{
			AnnotatedHostsRule,
			"annotations that add-ons read name only the tenant's hosts",
			[]addons.Class{addons.Hosts},
			formatHosts(),
			"",
		},
		{
			URLsRule,
			"annotations direct controllers only to the tenant's hosts, and to Services of the tenant and the platform",
			[]addons.Class{addons.URL},
			`": a controller would send requests there with its own network access: ` +
				`name a host of the tenant, or a Service of namespaces " + ` + formatAllowed("namespaces") +
				` + " as http://SERVICE.NAMESPACE.svc; ` +
				`a platform admin allows another by policy.annotations: [KEY=VALUE]"`,
			byAnnotations,
		},
		{
			ReferencesRule,
			"annotations that add-ons read name only objects of the tenant's namespaces",
			[]addons.Class{addons.Object, addons.Namespaces, addons.Prefixed, addons.Shared, addons.Networks},
			`": name an object of a namespace of tenant " + params.spec.tenant + ": " + ` +
				formatAllowed("namespaces") + ` + "` + byGrant + `"`,
			byAnnotations,
		},
		{
			ValuesRule,
			"values that controllers write into their configuration contain no syntax of this configuration, " +
				"and add no hosts, target groups and entry points",
			[]addons.Class{addons.Text, addons.Rules, addons.OneOf, addons.Settings, addons.JSON, addons.Attributes},
			`(variables.refused.exists(a, ` + matchClasses(listedValues) + `) ?
				": write only the keys and values that docs/reference/addons.md lists for it" :
				": leave out line breaks, quotes, backslashes and the characters ; { } #, ` +
				`and parts that add hosts, target groups, entry points or addresses") + "` + byGrant + `"`,
			byAnnotations,
		},
		{
			WithheldRule,
			"no annotation lets an add-on claim an address, use resources outside of the tenant, " +
				"or configure a service of all tenants",
			[]addons.Class{addons.Address, addons.Rights, addons.Never},
			`": an add-on would act upon it with its own rights, beyond the tenant: ` +
				`remove it (docs/reference/addons.md gives the reason)` + byGrant + `"`,
			byAnnotations,
		},
	}
}

// objects is the condition that V is a list of object names, each without a namespace or with
// a namespace of the tenant.
const objects = `V.split(",").all(o,
	o.trim().matches("^[A-Za-z0-9.-]*(/[a-z0-9.-]+)?([:@][A-Za-z0-9_.-]+)*$") &&
	(!o.contains("/") || o.trim().split("/")[0] in params.spec.namespaces))`

// urlForm excludes URLs that parsers interpret differently, such as URLs with user names.
const urlForm = "^https?://([$]host|[a-z0-9]([a-z0-9.-]*[a-z0-9])?)(:[0-9]{1,5})?" +
	"([/?][^\\x00-\\x20\\x7f;{}\"'`\\\\#]*)?$"

// multusJSON matches the JSON of networks that have only a name, a namespace and an
// interface, and no address. multusNetwork matches one network.
const (
	multusJSON    = `^\s*\[\s*` + multusNetwork + `\s*(,\s*` + multusNetwork + `\s*)*\]\s*$`
	multusNetwork = `\{\s*("(name|namespace|interface)"\s*:\s*"[a-z0-9.-]+"\s*,?\s*)+\}`
)

// networks is the condition that V lists Multus networks, by name or as JSON, in the tenant's
// namespaces.
var networks = `V.size() <= 4096 && (` + objects + ` ||
	V.matches(` + admissionpolicy.Quote(multusJSON) + `) &&
	V.findAll(` + admissionpolicy.Quote(`"namespace"\s*:\s*"[a-z0-9.-]+"`) + `).all(n,
		n.findAll("[a-z0-9.-]+")[1] in params.spec.namespaces))`

// settings is the condition that V is YAML or JSON whose keys are all listed in CLASS. The
// keys are found in the text, so characters that allow other notations of keys are refused.
var settings = `V.size() <= 4096 &&
	V.matches(` + admissionpolicy.Quote(`^[A-Za-z0-9_.,:"'{}\[\]\s/-]*$`) + `) &&
	V.findAll(` + admissionpolicy.Quote(`[^\s,:"'{}\[\]]+["']?\s*:`) + `).all(k,
		k.find(` + admissionpolicy.Quote(`^[^\s,:"'{}\[\]]+`) + `) in CLASS.substring(9).split(","))`

// jsonString matches a JSON string without \u escapes, which can encode letters and digits.
// jsonTokens matches text that consists of JSON tokens. jsonKey matches a key with the string
// that follows it, if any.
const (
	jsonString = `"([^"\\]|\\["\\/bfnrt])*"`
	jsonTokens = `^(\s|[{}\[\],:]|true|false|null|[0-9.]+|-|` + jsonString + `)*$`
	jsonKey    = jsonString + `\s*:\s*(` + jsonString + `)?`
)

// jsonOfKeys is the condition that V is JSON whose keys are all listed in CLASS. The keys are
// found in the text. A match that begins at the end of a string contains the text between two
// strings, which is not a key of CLASS.
var jsonOfKeys = `V.size() <= 4096 && V.matches(` + admissionpolicy.Quote(jsonTokens) + `) &&
	V.findAll(` + admissionpolicy.Quote(jsonKey) + `).all(k,
		[k.split("\"")[1]].all(name, CLASS.substring(5).split(",").exists(allowed,
			allowed == name ||
			allowed.startsWith(name + "=") && k.endsWith("\"" + allowed.substring(name.size() + 1) + "\""))))`

// attributes is the condition that V is a list of KEY=VALUE with keys that are listed in
// CLASS. The AWS Load Balancer Controller reads a backslash before a comma as part of the
// value.
const attributes = `V.size() <= 4096 && !V.contains("\\") &&
	V.split(",").all(p, [p.split("=")[0].trim()].all(k, CLASS.substring(11).split(",").exists(allowed,
		allowed == k || allowed.endsWith(".") && k.startsWith(allowed))))`

// valueChecks has the conditions on the value V of a class CLASS. Other classes are refused
// with any value.
var valueChecks = []struct {
	class addons.Class
	fine  string
}{
	// Characters that end a value in the configuration of nginx or HAProxy, or continue it.
	{addons.Text, `!V.matches(` + admissionpolicy.Quote("[\\x00-\\x08\\x0a-\\x1f\\x7f;{}\"'`\\\\#]") + `)`},
	// The controller itself creates the target groups of Services. Other target groups are
	// named by ARN or name.
	{addons.Rules, `V.matches(` + admissionpolicy.Quote(`^[\t\n\x20-\x5b\x5d-\x7e]*$`) + `) &&
		!V.lowerAscii().replace("targetgroups\"", "").replace("targetgroupstickinessconfig\"", "")
			.matches("host-?header|targetgroup")`},
	{addons.OneOf, `V.split(",").all(v, v.trim() in CLASS.substring(7).split(","))`},
	{addons.Hosts, `V.lowerAscii().split(",").map(h, h.trim()).all(h,
		h == "" || CLASS.contains(":") && h in CLASS.substring(6).split(",") ||
		h.matches("^([*][.])?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$") && ` + matchGranted("h") + `)`},
	{addons.URL, `V.lowerAscii().matches(` + admissionpolicy.Quote(urlForm) + `) &&
		` + matchURLHost("V", `(h == "$host" ||
			h.matches("`+hostname+`") && (`+matchGranted("h")+` || `+matchClusterName("h")+`))`)},
	{addons.Object, objects},
	{addons.Namespaces, `V.split(",").all(n, n.trim() in params.spec.namespaces)`},
	{addons.Prefixed, `V.lowerAscii().split(",").all(m,
		m.trim() == "" || m.trim().endsWith("@file") || m.trim().endsWith("@kubernetescrd") &&
		(params.spec.namespaces + params.spec.platformNamespaces).exists(n, m.trim().startsWith(n + "-")))`},
	{addons.Shared, `params.spec.namespaces.exists(n, V == n || V.startsWith(n + "."))`},
	{addons.Networks, networks},
	{addons.Settings, settings},
	{addons.JSON, jsonOfKeys},
	{addons.Attributes, attributes},
	{addons.KeepsNode, `params.spec.doNotDisrupt ||
		CLASS.startsWith("keeps-node:") && V in CLASS.substring(11).split(",")`},
	{addons.Unknown, `params.spec.unknownAnnotations in ["Allow", "Warn"]`},
}

// findClass returns an expression for the class of an annotation a of the variable asked: the
// class of the first of its addons.ListEntries that the catalogue has. A key outside the
// catalogue is harmless if its prefix is a host of the tenant, or if it has no slash and is
// not a domain.
func findClass() string {
	return replaceWords(`CATALOGUE[?a[2]].or([string(a[2]).split("/")].map(s,
			(s.size() == 1 ? optional.none() :
				CATALOGUE[?s[0] + "/" + s[1].split(".")[0] + "."]
				.or(CATALOGUE[?s[0] + "/." + s[1].substring(s[1].lastIndexOf(".") + 1)]))
			.or(CATALOGUE[?s[0] + "/"])
			.or([s[0].split(".")].map(l,
				(l.size() < 3 ? optional.none() : CATALOGUE[?l[0] + "." + l[1] + "."])
				.or(l.size() < 2 ? optional.none() : CATALOGUE[?"*." + l[l.size() - 2] + "." + l[l.size() - 1]]))[0])
			.or(optional.of(s.size() == 1 && !s[0].matches(DOMAIN) || GRANTED ? "harmless" : "unknown")))[0])
		.value()`,
		"CATALOGUE", "variables.catalogue",
		"DOMAIN", admissionpolicy.Quote(addons.BareDomain),
		"GRANTED", matchGranted("s[0]"))
}

// notAllowed is the condition that policy.annotations does not allow an annotation a by its
// key, by its key and value, or by its prefix.
const notAllowed = `!("*" in params.spec.annotations ||
	a[0] in params.spec.annotations ||
	a[0] + "=" + a[1] in params.spec.annotations ||
	a[0].split("/")[0] + "/" in params.spec.annotations)`

// ofCluster is the condition that a controller of the cluster sends an update. These
// controllers write identifiers and addresses of load balancers, which tenants may not
// choose, into annotations of Services and Ingresses. Creations are not exempt, because the
// controllers create claims from tenants' templates. A tenant cannot act as such a user.
// Gatekeeper's audit and gator evaluate objects without a user.
const ofCluster = `request.operation == "UPDATE" && has(request.userInfo.username) && (
	request.userInfo.username.startsWith("system:serviceaccount:kube-system:") ||
	request.userInfo.username.startsWith("system:controller:") ||
	request.userInfo.username in ["system:cloud-controller-manager", "system:kube-controller-manager"])`

// buildAddonVariables evaluate the new and changed annotations. Their catalogue is a constant,
// which the API server builds once: a lookup costs the same for any size. The variables
// annotations and annotationsBefore have the object's annotations. With handsOn, the
// variables infrastructure and infrastructureBefore have the annotations that the object
// passes on, as a Gateway does.
func buildAddonVariables(table, harmless string, classes []addons.Class, handsOn bool) []admissionpolicy.Variable {
	changed := func(now, before string) string {
		return replaceWords(`NOW.transformList(k, v,
			!(k.split("/")[0] in HARMLESS) && !(k in BEFORE && BEFORE[k] == v),
			[string(k), string(v), string(KEY)])`,
			"NOW", now, "BEFORE", before, "HARMLESS", harmless, "KEY", normalizeKey("k"))
	}
	asked := `variables.plain ? [] : ` + changed("variables.annotations", "variables.annotationsBefore")
	snippet := ""
	if handsOn {
		asked = `(` + ofCluster + ` ? [] : ` + asked + `) + (variables.infrastructure.size() == 0 ? [] :
			` + changed("variables.infrastructure", "variables.infrastructureBefore") + `)`
		// In any controller, a snippet becomes part of the configuration.
		snippet = `a[0].contains("snippet") && a[0].contains("/") ? "never" : `
	}
	var fine strings.Builder
	for _, c := range valueChecks {
		if !slices.Contains(classes, c.class) {
			continue
		}
		is := matchClasses([]addons.Class{c.class})
		fmt.Fprintf(&fine, "%s ? (%s) :\n", is, replaceWords(c.fine, "CLASS", "a[2]", "V", "a[1]"))
	}
	return []admissionpolicy.Variable{
		{Name: "catalogue", Expression: table},
		// For each annotation: its key, its value, and its key in the catalogue.
		{Name: "asked", Expression: asked},
		{Name: "judged", Expression: `variables.asked.map(a,
			[string(a[0]), string(a[1]), string(` + snippet + findClass() + `)])` +
			`.filter(a, a[2] != "harmless" && ` + notAllowed + `)`},
		{Name: "refused", Expression: `variables.judged.size() == 0 ? [] :
			variables.judged.filter(a, !(` + fine.String() + `false))`},
	}
}

// normalizeKey returns an expression for an annotation's key in the catalogue: see addons.NormalizeKey.
func normalizeKey(key string) string {
	return replaceWords(
		`(KEY.contains("external-dns") && KEY.contains("/") && KEY.split("/")[0].contains("external-dns") ?
		"external-dns.alpha.kubernetes.io/" + KEY.split("/")[1] :
		KEY.startsWith("co.elastic.") && KEY.contains("/") ?
		"co.elastic." + KEY.split("/")[0].split(".")[2] + "/" + KEY.split("/")[1] : KEY)`, "KEY", key)
}

// listValueClasses returns the classes in the tables, and the class of keys outside of them.
func listValueClasses(tables ...map[string]string) []addons.Class {
	all := []addons.Class{addons.Unknown}
	for _, table := range tables {
		for _, code := range table {
			class, _, _ := strings.Cut(code, ":")
			if c := addons.Class(class); !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// formatTable returns a table as a CEL map, without the given prefixes, which are not looked up
// in it.
func formatTable(table map[string]string, without []string) string {
	var entries []string
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if prefix, ok := strings.CutSuffix(key, "/"); !ok || !slices.Contains(without, prefix) {
			entries = append(entries, fmt.Sprintf("%q: %q", key, table[key]))
		}
	}
	return "{" + strings.Join(entries, ", ") + "}"
}

// anyRefused skips the rest of a rule for most requests.
const anyRefused = `variables.refused.size() == 0 || `

// buildAddonRules returns the rules about the given classes.
func buildAddonRules(classes []addons.Class) []admissionpolicy.Rule {
	var all []admissionpolicy.Rule
	for _, r := range listClassRules() {
		has := slices.DeleteFunc(slices.Clone(r.classes), func(c addons.Class) bool {
			return !slices.Contains(classes, c)
		})
		if len(has) == 0 {
			continue
		}
		of := `variables.refused.filter(a, ` + matchClasses(has) + `)`
		all = append(all, admissionpolicy.Rule{
			Name: r.name, Summary: r.summary, Exception: r.exception,
			Expression: anyRefused + of + `.size() == 0`,
			Message:    `"metadata.annotations: " + ` + formatAnnotations(of) + ` + ` + r.advice,
		})
	}
	return append(all, admissionpolicy.Rule{
		Name:       UnknownAnnotationsRule,
		Summary:    "policy.unknownAnnotations decides on annotations that the catalogue of add-ons does not contain",
		Exception:  byAnnotations,
		Expression: anyRefused + `variables.refused.filter(a, a[2] == "unknown").size() == 0`,
		Message: `"metadata.annotations: " + ` +
			formatAnnotations(`variables.refused.filter(a, a[2] == "unknown")`) + ` + ` + unknownAdvice,
	})
}

const unknownAdvice = `": croft does not know the add-on that reads it: remove it; ` +
	`a platform admin allows it by policy.annotations, or all unknown annotations by policy.unknownAnnotations"`

// buildPodAnnotationsRule has, in one rule, the same requirements for pods as buildAddonRules for other
// kinds. Another rule covers the annotations that keep a node from being removed.
func buildPodAnnotationsRule(classes []addons.Class) admissionpolicy.Rule {
	const of = `variables.refused.filter(a, !a[2].startsWith("keeps-node"))`
	var what strings.Builder
	for _, r := range listClassRules() {
		has := slices.DeleteFunc(slices.Clone(r.classes), func(c addons.Class) bool {
			return !slices.Contains(classes, c)
		})
		if len(has) > 0 {
			fmt.Fprintf(&what, "[%s[0]].exists(a, %s) ? %s :\n", of, matchClasses(has), r.advice)
		}
	}
	return admissionpolicy.Rule{
		Name: PodAnnotationsRule,
		Summary: "annotations do not let an add-on exceed the tenant's rights; " +
			"policy.unknownAnnotations decides on annotations that the catalogue of add-ons does not contain",
		Exception:  byAnnotations,
		FastPath:   unannotated,
		Expression: anyRefused + of + `.size() == 0` + ofAddonsThemselves,
		// The message of a rule that calls the authorizer is built for every request.
		Message: `(` + of + `.size() == 0 ? "" :
			"metadata.annotations: " + ` + formatAnnotations(of) + ` +
			(` + what.String() + unknownAdvice + `))`,
	}
}

// matchClasses returns the condition that an annotation a is in one of the classes.
func matchClasses(classes []addons.Class) string {
	is := make([]string, len(classes))
	for i, c := range classes {
		is[i] = fmt.Sprintf("a[2] == %q", c)
		if slices.Contains(valued, c) {
			is[i] = fmt.Sprintf("a[2].startsWith(%q)", c)
		}
	}
	return strings.Join(is, " || ")
}

// listedValues are the classes for which the catalogue lists the allowed values.
var listedValues = []addons.Class{addons.OneOf, addons.Settings, addons.JSON, addons.Attributes}

// valued are the classes whose code in the catalogue has values after a colon.
var valued = []addons.Class{
	addons.OneOf, addons.Hosts, addons.KeepsNode, addons.Settings, addons.JSON, addons.Attributes,
}

// formatSet returns a list as a CEL map, for fast lookups.
func formatSet(keys []string) string {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = admissionpolicy.Quote(k) + ": 0"
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// formatAnnotations returns an expression for the first annotations of a list, as the message
// shows them. Long values are cut off.
func formatAnnotations(list string) string {
	return formatFirst(`(`+list+`).map(a, string(a[0]) + "=" + `+formatPrintable("string(a[1])")+`)`, 3)
}

// formatPrintable returns an expression for a text that a message can contain. The API server
// discards a message with line breaks, and a terminal interprets other control characters.
func formatPrintable(text string) string {
	return replaceWords(`(!TEXT.matches(`+admissionpolicy.Quote(`^[\x20-\x7e]*$`)+`) ?
			"(a value with control characters or others than ASCII)" :
		TEXT.size() > 200 ? TEXT.substring(0, 200) + "…" : TEXT)`, "TEXT", text)
}

// listAnnotatedResources returns the kinds, other than pods, whose annotations and labels add-ons read.
func listAnnotatedResources() []admissionpolicy.Resource {
	return []admissionpolicy.Resource{
		{
			Version:    "v1",
			Resources:  []string{"services", "secrets", "configmaps", "persistentvolumeclaims"},
			Operations: write,
		},
		{Group: "networking.k8s.io", Version: "v1", Resources: []string{"ingresses"}, Operations: write},
		{
			Group: "gateway.networking.k8s.io", Version: "*",
			Resources:  []string{"gateways", "httproutes", "grpcroutes", "tlsroutes"},
			Operations: write,
		},
	}
}

// buildAnnotationsPolicy returns a policy on all annotated kinds, without rules, and the classes that
// its variables distinguish.
func buildAnnotationsPolicy(name string) (admissionpolicy.Validating, []addons.Class) {
	edge, data := addons.BuildTable(addons.Edge), addons.BuildTable(addons.Data)
	infrastructure := func(object string) string { return readInfrastructure(object, "annotations") }
	classes := listValueClasses(edge, data)
	harmless := intersect(addons.ListHarmlessPrefixes(addons.Edge), addons.ListHarmlessPrefixes(addons.Data))
	return admissionpolicy.Validating{
		Name: name, Resources: listAnnotatedResources(),
		Bounds: slices.Concat(listAnnotationBounds(), listInfrastructureBounds()),
		EarlyVariables: append([]admissionpolicy.Variable{
			{Name: "annotations", Expression: readAnnotations("dyn(object).metadata")},
			{Name: "infrastructure", Expression: infrastructure("dyn(object)")},
		}, buildEarlyVariables(harmless, edge, data)...),
		Variables: append([]admissionpolicy.Variable{
			{Name: "annotationsBefore", Expression: readBefore(readAnnotations("dyn(oldObject).metadata"), `{}`)},
			{Name: "infrastructureBefore", Expression: readBefore(infrastructure("dyn(oldObject)"), `{}`)},
		}, buildAddonVariables(`dyn(object).kind in ["Secret", "ConfigMap", "PersistentVolumeClaim"] ?
			`+formatTable(data, harmless)+` :
			`+formatTable(edge, harmless), formatSet(harmless), classes, true)...),
	}, classes
}

// readInfrastructure returns an expression for the annotations or labels that a Gateway passes on to
// the objects that are created for it.
func readInfrastructure(object, marks string) string {
	return replaceWords(`(has(OBJECT.spec) && has(OBJECT.spec.infrastructure) && has(OBJECT.spec.infrastructure.MARKS) ?
		OBJECT.spec.infrastructure.MARKS : {})`, "OBJECT", object, "MARKS", marks)
}

func intersect(a, b []string) []string {
	return slices.DeleteFunc(a, func(v string) bool { return !slices.Contains(b, v) })
}

// checkAnnotations prevents tenants from using an add-on's permissions. Existing annotations
// are allowed.
func checkAnnotations() admissionpolicy.Validating {
	policy, classes := buildAnnotationsPolicy(AnnotationsPolicy)
	// Most objects have no annotations.
	policy.MatchConditions = map[string]string{"annotated": `has(object.metadata.annotations) || ` +
		`object.kind == "Gateway" ||
		has(object.metadata.labels) &&
		` + formatLabelKeys(addons.Edge|addons.Data) + `.exists(l, l in object.metadata.labels)`}
	policy.Variables = append(policy.Variables, buildLabelVariables(addons.Edge|addons.Data)...)
	policy.Rules = append(buildAddonRules(classes), buildLabelsRule())
	return policy
}

// warnOfAnnotations warns of annotations that the catalogue does not list, in tenants with
// policy.unknownAnnotations Warn.
func warnOfAnnotations() admissionpolicy.Validating {
	policy, _ := buildAnnotationsPolicy(UnknownAnnotationsPolicy)
	policy.WarnOnly = true
	// The Gateway API bounds the annotations that Gateways pass on.
	policy.Bounds = nil
	policy.MatchConditions = map[string]string{"annotated": matchFewAnnotations(`object.kind == "Gateway"`)}
	policy.Rules = []admissionpolicy.Rule{buildUnknownWarning("")}
	return policy
}

// ofTemplates are labels of pods that Kubernetes' controllers create from templates. The
// policy croft-pod-templates has warned about these templates.
var ofTemplates = []string{"pod-template-hash", "controller-revision-hash", "batch.kubernetes.io/controller-uid"}

// warnOfPodAnnotations warns in the same way about pods that users and other controllers
// create. It excludes the pods of Kubernetes' controllers: each policy that matches a pod
// adds to the cost of its creation.
func warnOfPodAnnotations() admissionpolicy.Validating {
	table, harmless := addons.BuildTable(addons.Pods), addons.ListHarmlessPrefixes(addons.Pods)
	return admissionpolicy.Validating{
		Name: UnknownPodAnnotationsPolicy, WarnOnly: true,
		Resources:       []admissionpolicy.Resource{{Version: "v1", Resources: []string{"pods"}, Operations: write}},
		ExcludingLabels: ofTemplates,
		MatchConditions: map[string]string{"annotated": matchFewAnnotations("false")},
		EarlyVariables: append([]admissionpolicy.Variable{
			{Name: "annotations", Expression: readAnnotations("object.metadata")},
		}, buildEarlyVariables(harmless, table)...),
		Variables: append([]admissionpolicy.Variable{
			{Name: "annotationsBefore", Expression: readBefore(readAnnotations("oldObject.metadata"), `{}`)},
		}, buildAddonVariables(formatTable(table, harmless), formatSet(harmless), listValueClasses(table), false)...),
		Rules: []admissionpolicy.Rule{buildUnknownWarning("")},
	}
}

// matchFewAnnotations returns the condition that an object has annotations within their bound,
// which another policy enforces, or that it has none and orElse is true.
func matchFewAnnotations(orElse string) string {
	return fmt.Sprintf(`has(object.metadata.annotations) ?
		object.metadata.annotations.size() <= %d : %s`, mostMarks, orElse)
}

// buildUnknownWarning warns of unknown annotations. fine is the rule's FastPath.
func buildUnknownWarning(fine string) admissionpolicy.Rule {
	return admissionpolicy.Rule{
		Name:      UnknownWarningRule,
		Summary:   "the catalogue of add-ons contains the annotations, if policy.unknownAnnotations is Warn",
		Exception: byAnnotations,
		FastPath:  fine,
		Expression: `params.spec.unknownAnnotations != "Warn" ||
			variables.judged.filter(a, a[2] == "unknown").size() == 0`,
		Message: `"metadata.annotations: " + ` + formatAnnotations(`variables.judged.filter(a, a[2] == "unknown")`) +
			` + ": croft does not know the add-on that reads it, and allows it for now: ` +
			`ask a platform admin to allow it by policy.annotations, before unknown annotations are refused"`,
	}
}

func formatLabelKeys(on addons.Kinds) string {
	var all []string
	for _, l := range addons.Labels(on) {
		all = append(all, l.Key)
	}
	return formatQuoted(all)
}

func buildLabelVariables(on addons.Kinds) []admissionpolicy.Variable {
	labels := func(o string) string {
		return replaceWords(`(has(OBJECT.metadata.labels) ? OBJECT.metadata.labels : {})`, "OBJECT", o)
	}
	return []admissionpolicy.Variable{
		{Name: "labels", Expression: labels("dyn(object)")},
		{Name: "labelsBefore", Expression: readBefore(labels("dyn(oldObject)"), `{}`)},
		{Name: "handedLabels", Expression: readInfrastructure("dyn(object)", "labels")},
		{Name: "handedLabelsBefore", Expression: readBefore(readInfrastructure("dyn(oldObject)", "labels"), `{}`)},
		buildRefusedLabels(on, "labels", "handedLabels"),
	}
}

// buildRefusedLabels returns a variable with the new or changed labels that an add-on acts on.
func buildRefusedLabels(on addons.Kinds, of ...string) admissionpolicy.Variable {
	var changed, allowed []string
	for _, labels := range of {
		allowed = append(allowed, replaceWords(`(!(l in variables.NOW) ||
			l + "=" + variables.NOW[l] in params.spec.annotations)`, "NOW", labels))
		changed = append(changed, replaceWords(`l in variables.NOW &&
			!(l in variables.NOWBefore && variables.NOWBefore[l] == variables.NOW[l])`, "NOW", labels))
	}
	return admissionpolicy.Variable{Name: "refusedLabels", Expression: formatLabelKeys(on) + `.filter(l,
		(` + strings.Join(changed, " ||\n") + `) &&
		!("*" in params.spec.annotations || l in params.spec.annotations ||
			l.split("/")[0] + "/" in params.spec.annotations ||
			` + strings.Join(allowed, " && ") + `))`}
}

func buildLabelsRule() admissionpolicy.Rule {
	return admissionpolicy.Rule{
		Name: LabelsRule, Summary: "no label lets an add-on use or expose resources outside of the tenant",
		Expression: matchNoLabels(addons.Edge|addons.Data) + ` && variables.handedLabels.size() == 0 ||
			variables.refusedLabels.size() == 0`,
		Exception: byAnnotations,
		Message:   labelsMessage,
	}
}

// matchNoLabels returns the condition that an object has no label that an add-on acts on. It is
// true for most objects.
func matchNoLabels(on addons.Kinds) string {
	var there []string
	for _, l := range addons.Labels(on) {
		there = append(there, admissionpolicy.Quote(l.Key)+` in variables.labels`)
	}
	return `!(` + strings.Join(there, " || ") + `)`
}

var labelsMessage = `"metadata.labels: " + ` + formatFirst("variables.refusedLabels", 3) + ` +
	": an add-on would act upon it with its own rights, beyond the tenant: ` +
	`remove it (docs/reference/addons.md gives the reason)` + byGrant + `"`
