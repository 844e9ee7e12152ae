package policy

import (
	"fmt"
	"slices"
	"strings"

	"croft.dev/croft/internal/declare/addons"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// The conditions on the values of annotations, for each class of the catalogue.

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

// checkValues returns the beginning of the condition that the value of an annotation a is allowed: a
// condition for each class that the tables of a group have.
func checkValues(group string) string {
	classes := listValueClasses(listTables(group)...)
	var fine strings.Builder
	for _, c := range valueChecks {
		if slices.Contains(classes, c.class) {
			condition := replaceWords(c.fine, "CLASS", "a[2]", "V", "a[1]")
			fmt.Fprintf(&fine, "%s ? (%s) :\n", matchClasses(c.class), condition)
		}
	}
	return fine.String()
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
