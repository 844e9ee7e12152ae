package policy

import (
	"strconv"
	"strings"

	"croft.dev/croft/internal/admissionpolicy"
)

// The pieces that the rules' CEL expressions are put together from.

// annotations are an object's, never absent.
func annotations(metadata string) string {
	return with(`(has(META.annotations) ? META.annotations : {})`, "META", metadata)
}

// before is an expression about oldObject, if there is one that rules may read.
func before(expression, otherwise string) string {
	return admissionpolicy.Comparable + ` ? ` + expression + ` : ` + otherwise
}

// specVariables are the spec and the old spec of a custom resource; the old one is empty
// for a new object.
func specVariables() []admissionpolicy.Variable {
	return []admissionpolicy.Variable{
		{Name: "spec", Expression: `dyn(object).spec`},
		{Name: "specBefore", Expression: before(`dyn(oldObject).spec`, `{}`)},
		{Name: "unchanged", Expression: `variables.spec == variables.specBefore`},
	}
}

// refusedNew are the new values of variables.spec for which an expression on VALUE is
// false.
func refusedNew(name, values, holds string) admissionpolicy.Variable {
	return admissionpolicy.Variable{Name: name, Expression: with(`NOW.filter(v, !HOLDS && !(v in EARLIER))`,
		"NOW", values,
		"HOLDS", with(holds, "VALUE", "v"),
		"EARLIER", strings.ReplaceAll(values, "variables.spec", "variables.specBefore"))}
}

// allowed is true where the tenant's rules list a name, or any name.
func allowed(list, name string) string {
	return with(`("*" in params.spec.LIST || NAME in params.spec.LIST)`, "LIST", list, "NAME", name)
}

// listed is a list of the tenant's rules, for people.
func listed(list string) string {
	return with(`(params.spec.LIST.size() == 0 ? "none" : `+some("params.spec.LIST", 12)+`)`, "LIST", list)
}

// some are the first of a list of strings, for a person: the API server throws
// away a message of more than 5 KiB.
func some(list string, atMost int) string {
	return with(`(LIST.transformList(i, v, i < MOST, string(v)).join(", ") +
		(LIST.size() > MOST ? " and " + string(LIST.size() - MOST) + " more" : ""))`,
		"LIST", list, "MOST", strconv.Itoa(atMost))
}

// granted is true if the tenant may serve the host. "*.example.org" grants everything
// below example.org at any depth, wildcards included, but not example.org.
func granted(host string) string {
	return with(`(HOST in params.spec.domains ||
		variables.wildcards.exists(w, HOST.endsWith(w) && HOST.size() > w.size()))`, "HOST", host)
}

// wildcards is the variable that granted needs: the suffixes of hosts below each
// wildcard among the tenant's domains.
func wildcards() admissionpolicy.Variable {
	return admissionpolicy.Variable{
		Name:       "wildcards",
		Expression: `params.spec.domains.filter(d, d.startsWith("*.")).map(d, d.substring(1))`,
	}
}

// hosts says which hosts the tenant may serve.
func hosts() string {
	return `"; hosts allowed for tenant " + params.spec.tenant + ": " + ` + listed("domains") +
		` + "; a platform admin grants others by the tenant's domains"`
}

// with replaces upper-case words in an expression.
func with(expression string, oldnew ...string) string {
	return strings.NewReplacer(oldnew...).Replace(expression)
}

func quoted(values []string) string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = admissionpolicy.Quote(v)
	}
	return "[" + strings.Join(all, ", ") + "]"
}
