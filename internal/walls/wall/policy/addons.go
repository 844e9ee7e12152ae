package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"croft.dev/croft/internal/declare/addons"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// The parts of rule files that are generated from the catalogue of add-ons. Files name the kinds of
// objects: pods, and objects for all other kinds, of which edge and data have catalogues of their own.

func listKinds(group string) []addons.Kinds {
	if group == "pods" {
		return []addons.Kinds{addons.Pods}
	}
	return []addons.Kinds{addons.Edge, addons.Data}
}

func listTables(group string) []map[string]string {
	var all []map[string]string
	for _, kinds := range listKinds(group) {
		all = append(all, addons.BuildTable(kinds))
	}
	return all
}

// formatCatalogue returns the catalogue of annotations on edge, data or pods as a CEL map. The API
// server builds this constant once: a lookup costs the same for any size.
func formatCatalogue(name string) (string, error) {
	kinds, known := map[string]addons.Kinds{
		"edge": addons.Edge, "data": addons.Data, "pods": addons.Pods,
	}[name]
	if !known {
		return "", fmt.Errorf("there is no catalogue of %s", name)
	}
	return formatTable(addons.BuildTable(kinds), listHarmless(name)), nil
}

// listHarmless returns the prefixes of annotations that are harmless on all kinds of a group.
func listHarmless(group string) []string {
	kinds := listKinds(group)
	all := addons.ListHarmlessPrefixes(kinds[0])
	for _, more := range kinds[1:] {
		other := addons.ListHarmlessPrefixes(more)
		all = slices.DeleteFunc(all, func(v string) bool { return !slices.Contains(other, v) })
	}
	return all
}

func formatHarmless(group string) string { return formatSet(listHarmless(group)) }

// listing has the classes whose values are lists.
var listing = []addons.Class{
	addons.OneOf, addons.Hosts, addons.Object, addons.Namespaces, addons.Prefixed, addons.Networks,
}

// formatListedKeys returns the keys of the catalogue whose values are lists, as a CEL map.
func formatListedKeys(group string) string {
	var keys []string
	for _, table := range listTables(group) {
		for key, code := range table {
			class, _, _ := strings.Cut(code, ":")
			if slices.Contains(listing, addons.Class(class)) {
				keys = append(keys, fmt.Sprintf("%q: 0", key))
			}
		}
	}
	slices.Sort(keys)
	return "{" + strings.Join(slices.Compact(keys), ", ") + "}"
}

// countListedNames returns an expression for the number of names in annotations whose values are
// lists of names.
func countListedNames(annotations string) string {
	return replaceWords(`ANNOTATIONS.transformList(k, v,
		KEY in variables.listing || k.split("/")[0] + "/" in variables.listing,
		v.split(",").size()).sum()`, "ANNOTATIONS", annotations, "KEY", normalizeKey("k"))
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

// normalizeKey returns an expression for an annotation's key in the catalogue: see addons.NormalizeKey.
func normalizeKey(key string) string {
	return replaceWords(
		`(KEY.contains("external-dns") && KEY.contains("/") && KEY.split("/")[0].contains("external-dns") ?
		"external-dns.alpha.kubernetes.io/" + KEY.split("/")[1] :
		KEY.startsWith("co.elastic.") && KEY.contains("/") ?
		"co.elastic." + KEY.split("/")[0].split(".")[2] + "/" + KEY.split("/")[1] : KEY)`, "KEY", key)
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

// matchClasses returns the condition that an annotation a is in one of the classes.
func matchClasses(classes ...addons.Class) string {
	is := make([]string, len(classes))
	for i, c := range classes {
		is[i] = fmt.Sprintf("a[2] == %q", c)
		if slices.Contains(valued, c) {
			is[i] = fmt.Sprintf("a[2].startsWith(%q)", c)
		}
	}
	return strings.Join(is, " || ")
}

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

// filterRefused returns an expression for the refused annotations of some classes.
func filterRefused(classes ...addons.Class) string {
	return "variables.refused.filter(a, " + matchClasses(classes...) + ")"
}

func listLabels(group string) []addons.Label {
	var all addons.Kinds
	for _, kinds := range listKinds(group) {
		all |= kinds
	}
	return addons.Labels(all)
}

func formatLabelKeys(group string) string {
	var all []string
	for _, l := range listLabels(group) {
		all = append(all, l.Key)
	}
	return formatQuoted(all)
}

// matchNoLabels returns the condition that an object has no label that an add-on acts on. It is
// true for most objects.
func matchNoLabels(group string) string {
	var there []string
	for _, l := range listLabels(group) {
		there = append(there, admissionpolicy.Quote(l.Key)+` in variables.labels`)
	}
	return `!(` + strings.Join(there, " || ") + `)`
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
