// Package addons is the catalogue of add-ons' annotations and labels, as data, with the
// effect of each on a tenant's object. An add-on acts with its own permissions, which often
// cover every namespace. A tenant that may write the annotation can use these permissions.
//
// The policy wall compiles the catalogue into a constant number of rules, `make generate`
// lists it in docs/reference/addons.md, and `croft doctor` reports add-ons in a cluster that are not in
// it. The package does no I/O.
package addons

import (
	"slices"
	"strings"
	"sync"
)

// Class is the kind of an annotation's value. It determines how the value is checked.
type Class string

// The classes, from harmless to refused.
const (
	// Harmless annotations affect only the object itself, or other rules check their effect.
	Harmless Class = "harmless"
	// Text is written into the configuration of a controller that serves every tenant. It
	// must not contain characters that end a value there.
	Text Class = "text"
	// Rules are JSON rules of an AWS load balancer. CEL cannot parse JSON, so escapes are
	// refused, and so are hosts and target groups.
	Rules Class = "rules"
	// OneOf is one value of a list, or several of them, separated by commas.
	OneOf Class = "one-of"
	// Hosts are host names of the tenant, or words of a list, separated by commas.
	Hosts Class = "hosts"
	// URL is an address to which a controller sends requests. It must have a host or a
	// Service of the tenant.
	URL Class = "url"
	// Object is an object's name, or namespace/name with a namespace of the tenant, or
	// several of them, separated by commas.
	Object Class = "object"
	// Namespaces are namespaces of the tenant, separated by commas.
	Namespaces Class = "namespaces"
	// Prefixed are names of objects that begin with a namespace and a hyphen, in the notation
	// of Traefik.
	Prefixed Class = "prefixed"
	// Shared is the name of a resource that objects share if they use the same name. It must
	// be a namespace of the tenant, or begin with one and a dot.
	Shared Class = "shared"
	// Networks are Multus networks in the tenant's namespaces: in the form of Object, or as a
	// JSON list of objects that have only a name, a namespace and an interface. Escapes are
	// refused, because JSON can write the same text with them.
	Networks Class = "networks"
	// Settings are YAML or JSON whose keys, at any depth, are in a list. Other YAML notations
	// of keys, such as escapes, anchors and tags, are refused.
	Settings Class = "settings"
	// JSON is JSON whose keys, at any depth, are in a list. A key with a value, such as
	// type=multi_line, allows only that value. Escapes of characters are refused.
	JSON Class = "json"
	// Attributes are KEY=VALUE pairs, separated by commas, whose keys are in a list. A key
	// that ends with a dot allows all keys with that prefix.
	Attributes Class = "attributes"
	// KeepsNode prevents a node from being replaced. policy.doNotDisrupt allows it.
	KeepsNode Class = "keeps-node"
	// Address claims an address, which may belong to another tenant.
	Address Class = "address"
	// Rights uses a resource of the platform or the cloud that belongs to others, or that
	// grants permissions.
	Rights Class = "rights"
	// Never is configuration that affects all tenants, or that has effects outside of the
	// namespace.
	Never Class = "never"
	// Unknown annotations are not in the catalogue. policy.unknownAnnotations decides about
	// them.
	Unknown Class = "unknown"
)

// Kinds are the kinds of objects whose annotations an add-on reads.
type Kinds int

// The groups of kinds. Each group has one table in the rules.
const (
	// Edge are Ingresses, Services, Gateways and routes.
	Edge Kinds = 1 << iota
	// Data are Secrets, ConfigMaps and PersistentVolumeClaims.
	Data
	// Pods are pods, and the templates from which they are created.
	Pods
	// Every includes all kinds.
	Every = Edge | Data | Pods
)

// Groups are the groups of kinds, with their names in the documentation.
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
	// Source is the address of the annotations' documentation.
	Source string
	// Kinds are the kinds whose annotations the add-on reads. On other kinds they are harmless.
	Kinds Kinds
	// Prefixes are the prefixes of its annotations, without the slash. *.example.org matches
	// example.org and every prefix below it, and keys of these names without a slash.
	Prefixes []string
	// DefaultClass is the class of annotations that Names do not list. It defaults to Unknown.
	DefaultClass Class
	// Names are the annotations that the add-on is known to read.
	Names []Names
	// InstalledMarkers are the API groups and the controllers of IngressClasses that show that the
	// add-on is installed in a cluster. A group includes the groups below it.
	InstalledMarkers []string
}

// Names are annotations of one add-on that have the same class.
type Names struct {
	Class Class
	// Values are the allowed values of OneOf, the words that Hosts allows, the values of
	// KeepsNode that do not keep a node, and the keys of Settings, JSON and Attributes.
	Values []string
	// Harm is the harm of the annotation, and Source its reference.
	Harm, Source string
	// Names are the parts of keys after the slash. A name that ends with a dot matches all
	// names with that prefix, up to their first dot. A name that begins with a dot matches
	// all names with that ending, from their last dot. For an add-on without a prefix, names
	// are whole keys, and a name that ends with a dot matches all keys with that prefix up to
	// their second dot, with a slash or without.
	Names []string
}

// Label is a label on which an add-on acts.
type Label struct {
	Addon, Key, Harm, Source string
	Kinds                    Kinds
}

// externalDNS is the default prefix of external-dns.
const externalDNS = "external-dns.alpha.kubernetes.io"

// BuildTable returns the lookup table of the rules for one group of kinds: the class of each entry
// that Entries may return. Classes with values have them after a colon.
func BuildTable(on Kinds) map[string]string {
	table := map[string]string{}
	for i := range catalogue {
		a := &catalogue[i]
		rest := a.DefaultClass
		if a.Kinds&on == 0 {
			rest = Harmless // the add-on does not read them there
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
			class := formatCode(n)
			if a.Kinds&on == 0 {
				class = string(Harmless)
			}
			if class == string(rest) {
				continue
			}
			for _, key := range listKeys(a, n) {
				table[key] = class
			}
		}
	}
	return table
}

// ListHarmlessPrefixes returns the prefixes, without the slash, whose annotations are all
// harmless on the kinds. Most annotations have one of these.
func ListHarmlessPrefixes(on Kinds) []string {
	var all []string
	for i := range catalogue {
		a := &catalogue[i]
		harmless := a.Kinds&on == 0 || a.DefaultClass == Harmless && !slices.ContainsFunc(a.Names, func(n Names) bool { return n.Class != Harmless })
		if harmless {
			all = append(all, a.Prefixes...)
		}
	}
	slices.Sort(all)
	return all
}

func formatCode(n Names) string {
	if len(n.Values) == 0 {
		return string(n.Class)
	}
	return string(n.Class) + ":" + strings.Join(n.Values, ",")
}

func listKeys(a *Addon, n Names) []string {
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

// elastic is the prefix of Elastic's hints. The name of a container may follow the kind of
// the hints, as in co.elastic.logs.sidecar/enabled.
const elastic = "co.elastic."

// NormalizeKey returns the key of an annotation in the table. external-dns can be configured with
// any prefix, and Elastic's hints may apply to one container.
func NormalizeKey(key string) string {
	prefix, name, ok := strings.Cut(key, "/")
	switch {
	case ok && strings.Contains(prefix, "external-dns"):
		return externalDNS + "/" + name
	case ok && strings.HasPrefix(prefix, elastic):
		return elastic + strings.Split(prefix, ".")[2] + "/" + name
	}
	return key
}

// ListEntries returns the entries of a table that may match a key, the most specific first. A key
// without a slash is also looked up as a prefix: some add-ons read both devices.nri.io and
// devices.nri.io/pod.
func ListEntries(key string) []string {
	key = NormalizeKey(key)
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

// BareDomain matches a key without a slash that is a domain. Kubernetes asks add-ons to use a
// prefix, but plugins of container runtimes read such keys. Other keys without a slash are
// private to their users.
const BareDomain = `^[a-z0-9.-]+[.](io|dev|com|org|net|sh|cloud)$`

// FindReader returns the name of the add-on that reads an annotation or a label with this key on
// any kind of object, or "" if the catalogue has none.
func FindReader(key string) string {
	for _, entry := range ListEntries(key) {
		if name, ok := readers()[entry]; ok {
			return name
		}
	}
	return ""
}

// readers maps the entries that ListEntries may return to the names of add-ons. Unlike
// BuildTable, it contains harmless annotations.
var readers = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for _, l := range labels {
		all[l.Key] = l.Addon
	}
	for i := range catalogue {
		a := &catalogue[i]
		for _, prefix := range a.Prefixes {
			if !strings.HasPrefix(prefix, "*.") {
				prefix += "/"
			}
			all[prefix] = a.Name
		}
		for _, n := range a.Names {
			for _, key := range listKeys(a, n) {
				all[key] = a.Name
			}
		}
	}
	return all
})

// All returns the add-ons in the order of their names.
func All() []Addon {
	all := slices.Clone(catalogue)
	slices.SortFunc(all, func(a, b Addon) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return all
}

// Labels returns the labels on which an add-on acts, for the given kinds.
func Labels(on Kinds) []Label {
	return slices.DeleteFunc(slices.Clone(labels), func(l Label) bool { return l.Kinds&on == 0 })
}

// FindAddon returns the add-on that an API group, or a controller of an IngressClass,
// belongs to. It returns "" if the catalogue has none.
func FindAddon(name string) string {
	for i := range catalogue {
		for _, known := range catalogue[i].InstalledMarkers {
			if name == known || strings.HasSuffix(name, "."+known) {
				return catalogue[i].Name
			}
		}
	}
	return ""
}
