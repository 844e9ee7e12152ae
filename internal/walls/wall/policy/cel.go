package policy

import (
	"strconv"
	"strings"

	"croft.dev/croft/internal/rules/admissionpolicy"
)

// The parts that the rules' CEL expressions are built from. A comment "the condition that"
// means a CEL expression that is true in that case.

// refuseNew returns an expression for the new values of variables.spec for which a condition on
// VALUE is false.
func refuseNew(values, condition string) string {
	return replaceWords(`NOW.filter(v, !HOLDS && !(v in EARLIER))`,
		"NOW", values,
		"HOLDS", replaceWords(condition, "VALUE", "v"),
		"EARLIER", strings.ReplaceAll(values, "variables.spec", "variables.specBefore"))
}

// goDuration matches a duration as cert-manager and Flux write it. CEL's duration() accepts the same,
// and fails on anything else. It also fails on durations beyond the range of Go's Duration, which is
// some 292 years.
const goDuration = `^([0-9]{1,5}([.][0-9]{1,9})?h|[0-9]{1,7}([.][0-9]{1,9})?m|` +
	`[0-9]{1,9}([.][0-9]{1,9})?(s|ms|us|µs|ns)){1,6}$`

// matchAllowed returns the condition that the tenant's rules list a name, or all names.
func matchAllowed(list, name string) string {
	return replaceWords(`("*" in params.spec.LIST || NAME in params.spec.LIST)`, "LIST", list, "NAME", name)
}

// formatAllowed returns an expression for a list of the tenant's rules, as messages show it.
func formatAllowed(list string) string {
	return replaceWords(
		`(params.spec.LIST.size() == 0 ? "none" : `+formatFirst("params.spec.LIST", 12)+`)`, "LIST", list)
}

// formatFirst returns an expression for the first entries of a list of strings, as messages show
// them. The API server discards a message of more than 5 KiB.
func formatFirst(list string, atMost int) string {
	return replaceWords(`(LIST.transformList(i, v, i < MOST, string(v)).join(", ") +
		(LIST.size() > MOST ? " and " + string(LIST.size() - MOST) + " more" : ""))`,
		"LIST", list, "MOST", strconv.Itoa(atMost))
}

// matchGranted returns the condition that the tenant may serve a host. "*.example.org" grants
// every host below example.org at any depth, wildcards included, but not example.org.
func matchGranted(host string) string {
	return replaceWords(`(HOST in params.spec.domains ||
		variables.wildcards.exists(w, HOST.endsWith(w) && HOST.size() > w.size()))`, "HOST", host)
}

// wildcards is the expression of the variable that matchGranted needs. It has the suffix of each wildcard
// among the tenant's domains.
const wildcards = `params.spec.domains.filter(d, d.startsWith("*.")).map(d, d.substring(1))`

// formatHosts returns an expression for the part of a message that lists the tenant's hosts.
func formatHosts() string {
	return `"; hosts allowed for tenant " + params.spec.tenant + ": " + ` + formatAllowed("domains") +
		` + "; a platform admin grants others by the tenant's domains"`
}

// replaceWords replaces upper-case words in an expression.
func replaceWords(expression string, oldnew ...string) string {
	return strings.NewReplacer(oldnew...).Replace(expression)
}

func formatQuoted(values []string) string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = admissionpolicy.Quote(v)
	}
	return "[" + strings.Join(all, ", ") + "]"
}
