// Package addons is the catalogue of add-ons' annotations and labels, as data, with
// the effect of each on a tenant's object. An add-on acts with its own rights, which
// often reach every namespace: a tenant that may write the annotation can use them.
//
// The policy wall compiles the catalogue into a constant number of rules, `make
// generate` lists it in docs/addons.md, and `croft doctor` names add-ons in a cluster
// that it does not know. The package does no I/O.
package addons

import (
	"regexp"
	"slices"
	"strings"
)

// Class is the kind of an annotation's value, which determines the check of it.
type Class string

// The classes, from harmless to refused.
const (
	// Harmless annotations concern the object itself, or other rules judge their effect.
	Harmless Class = "harmless"
	// Text is written into the configuration of a controller that serves every
	// tenant: it has no characters that end a value there.
	Text Class = "text"
	// Rules are the JSON of rules of an AWS load balancer. CEL cannot parse JSON, so
	// escapes are refused, and so are hosts and target groups.
	Rules Class = "rules"
	// OneOf is one of some values, or several of them with commas between.
	OneOf Class = "one-of"
	// Hosts are names of hosts with commas between: the tenant's, or one of some words.
	Hosts Class = "hosts"
	// URL is where a controller sends requests: a host or a Service of the tenant.
	URL Class = "url"
	// Object is an object's name, or namespace/name with a namespace of the tenant;
	// several with commas between.
	Object Class = "object"
	// Namespaces are namespaces of the tenant with commas between.
	Namespaces Class = "namespaces"
	// Prefixed are names of objects that begin with a namespace and a hyphen, as
	// Traefik writes them.
	Prefixed Class = "prefixed"
	// Shared is the name of something that several objects share by naming it alike:
	// it is a namespace of the tenant, or begins with one and a dot.
	Shared Class = "shared"
	// Networks are Multus' networks of the tenant's namespaces: as Object, or as a JSON
	// list of objects that have a name, a namespace and an interface alone. Escapes are
	// refused, with which JSON says the same in other characters.
	Networks Class = "networks"
	// Settings are YAML or JSON whose keys, at any depth, are among some. What YAML can
	// say them by otherwise, such as escapes, anchors and tags, is refused.
	Settings Class = "settings"
	// JSON is JSON whose keys, at any depth, are among some. A key with values, as
	// type=multi_line, allows those values alone. Escapes of characters are refused.
	JSON Class = "json"
	// Attributes are KEY=VALUE with commas between, whose keys are among some. A key that
	// ends in a dot allows all keys with that prefix.
	Attributes Class = "attributes"
	// KeepsNode keeps a node from being replaced: by policy.doNotDisrupt.
	KeepsNode Class = "keeps-node"
	// Address claims an address, which may be another's.
	Address Class = "address"
	// Rights uses something of the platform or the cloud that others own, or that
	// gives rights.
	Rights Class = "rights"
	// Never is configuration that affects all tenants, or that leaves the namespace.
	Never Class = "never"
	// Unknown annotations are not in the catalogue: policy.unknownAnnotations decides.
	Unknown Class = "unknown"
)

// Kinds are kinds of objects that add-ons read annotations of.
type Kinds int

// The kinds. Those of a group have one table in the rules.
const (
	// Edge are Ingresses, Services, Gateways and routes.
	Edge Kinds = 1 << iota
	// Data are Secrets, ConfigMaps and PersistentVolumeClaims.
	Data
	// Pods are pods, and the templates that they are made from.
	Pods
	// Every kind of these.
	Every = Edge | Data | Pods
)

// Groups are the groups of kinds, each with the name that documents give it.
var Groups = []struct {
	Kinds Kinds
	Name  string
}{
	{Edge, "Ingresses, Services, Gateways, routes"},
	{Data, "Secrets, ConfigMaps, PersistentVolumeClaims"},
	{Pods, "pods"},
}

// Addon is an add-on and the annotations that it reads.
type Addon struct {
	Name string
	// Source is where the annotations are documented.
	Source string
	// On are the kinds on which it reads them. On others they are harmless.
	On Kinds
	// Prefixes are the prefixes of its annotations, without the slash. *.example.org is
	// example.org and every prefix below it, and keys without a slash that are called so.
	Prefixes []string
	// Rest is the class of those that Names do not list; Unknown if empty.
	Rest Class
	// Names are the annotations that it is known to read.
	Names []Names
	// Installs are the API groups and controllers of IngressClasses that reveal the
	// add-on in a cluster. A group includes those below it.
	Installs []string
}

// Names are annotations of one add-on that are of one class.
type Names struct {
	Class Class
	// Values are the allowed values of OneOf, the words that Hosts allows, the values of
	// KeepsNode that do not keep a node, and the keys of Settings, JSON and Attributes.
	Values []string
	// Why is the harm that the annotation would do, and Source its reference.
	Why, Source string
	// Names come after the slash. A name that ends in a dot matches all names with that
	// prefix, up to their first dot; one that begins with a dot matches all names with
	// that ending, from their last dot. For an add-on without a prefix, names are whole
	// keys, and a name that ends in a dot matches all keys with that prefix up to their
	// second dot, with a slash or without.
	Names []string
}

// Label is a label that makes an add-on act.
type Label struct {
	Addon, Key, Why, Source string
	On                      Kinds
}

// externalDNS is the prefix that external-dns reads unless it is told another one.
const externalDNS = "external-dns.alpha.kubernetes.io"

// Table is the lookup table of the rules, for one group of kinds: the class of each
// entry that Entries may name. Classes with values have them after a colon.
func Table(on Kinds) map[string]string {
	table := map[string]string{}
	for i := range catalogue {
		a := &catalogue[i]
		rest := a.Rest
		if a.On&on == 0 {
			rest = Harmless // it does not read them there
		}
		for _, prefix := range a.Prefixes {
			if rest == "" || rest == Unknown {
				continue
			}
			if !strings.HasPrefix(prefix, "*.") {
				prefix += "/"
			}
			table[prefix] = string(rest)
		}
		for _, n := range a.Names {
			class := code(n)
			if a.On&on == 0 {
				class = string(Harmless)
			}
			if class == string(rest) {
				continue
			}
			for _, key := range keys(a, n) {
				table[key] = class
			}
		}
	}
	return table
}

// HarmlessPrefixes are the prefixes, without the slash, whose annotations are all
// harmless on the kinds: most annotations have one of these.
func HarmlessPrefixes(on Kinds) []string {
	var all []string
	for i := range catalogue {
		a := &catalogue[i]
		harmless := a.On&on == 0 || a.Rest == Harmless && !slices.ContainsFunc(a.Names, func(n Names) bool { return n.Class != Harmless })
		if harmless {
			all = append(all, a.Prefixes...)
		}
	}
	slices.Sort(all)
	return all
}

func code(n Names) string {
	if len(n.Values) == 0 {
		return string(n.Class)
	}
	return string(n.Class) + ":" + strings.Join(n.Values, ",")
}

func keys(a *Addon, n Names) []string {
	if len(a.Prefixes) == 0 {
		return n.Names
	}
	var all []string
	for _, prefix := range a.Prefixes {
		for _, name := range n.Names {
			all = append(all, prefix+"/"+name)
		}
	}
	return all
}

// elastic is the prefix of Elastic's hints. The name of a container may come after the
// hints' kind, as in co.elastic.logs.sidecar/enabled.
const elastic = "co.elastic."

// Normal is the key under which the table has an annotation: external-dns can be
// configured with any prefix, and Elastic's hints may be for one container.
func Normal(key string) string {
	prefix, name, ok := strings.Cut(key, "/")
	switch {
	case ok && strings.Contains(prefix, "external-dns"):
		return externalDNS + "/" + name
	case ok && strings.HasPrefix(prefix, elastic):
		return elastic + strings.Split(prefix, ".")[2] + "/" + name
	}
	return key
}

// Entries are the entries of a table that may be about a key, the most specific first. A
// key without a slash is looked up as if it were a prefix, too: some add-ons read both
// devices.nri.io and devices.nri.io/pod.
func Entries(key string) []string {
	key = Normal(key)
	prefix, name, ok := strings.Cut(key, "/")
	all := []string{key}
	if ok {
		first, _, _ := strings.Cut(name, ".")
		all = append(all, prefix+"/"+first+".", prefix+"/."+name[strings.LastIndex(name, ".")+1:])
	}
	all = append(all, prefix+"/")
	labels := strings.Split(prefix, ".")
	if n := len(labels); n > 2 {
		all = append(all, labels[0]+"."+labels[1]+".")
	}
	if n := len(labels); n > 1 {
		all = append(all, "*."+labels[n-2]+"."+labels[n-1])
	}
	return all
}

// BareDomain is the form of a key without a slash that is a domain: Kubernetes has
// add-ons use a prefix, but plugins of container runtimes read such keys. Others without
// a slash are private to their users.
const BareDomain = `^[a-z0-9.-]+[.](io|dev|com|org|net|sh|cloud)$`

var bareDomain = regexp.MustCompile(BareDomain)

// ClassOf looks a key up as the rules do.
func ClassOf(table map[string]string, key string) string {
	for _, entry := range Entries(key) {
		if class, ok := table[entry]; ok {
			return class
		}
	}
	if !strings.Contains(key, "/") && !bareDomain.MatchString(key) {
		return string(Harmless)
	}
	return string(Unknown)
}

// All are the add-ons, in the order of their names.
func All() []Addon {
	all := slices.Clone(catalogue)
	slices.SortFunc(all, func(a, b Addon) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return all
}

// Labels are the labels that make an add-on act.
func Labels(on Kinds) []Label {
	return slices.DeleteFunc(slices.Clone(labels), func(l Label) bool { return l.On&on == 0 })
}

// Installing names the add-on that an API group, or a controller of an IngressClass,
// belongs to; "" if the catalogue knows none.
func Installing(name string) string {
	for i := range catalogue {
		for _, known := range catalogue[i].Installs {
			if name == known || strings.HasSuffix(name, "."+known) {
				return catalogue[i].Name
			}
		}
	}
	return ""
}
