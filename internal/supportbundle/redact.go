package supportbundle

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Class is what a name names. It begins the name's pseudonym.
type Class string

// The classes of names that are redacted.
const (
	Tenant    Class = "tenant"
	Namespace Class = "namespace"
	Pool      Class = "pool"
	Group     Class = "group"
	User      Class = "user"
	Host      Class = "host"
	Node      Class = "node"
	Cluster   Class = "cluster"
	CostCode  Class = "costcode"
)

// Redactor replaces names by pseudonyms: a class and a hash of the name under a key. The
// same name has the same pseudonym wherever it stands, and without the key nobody can try
// names out. A nil Redactor replaces nothing.
type Redactor struct {
	key   []byte
	words map[string]string // names to pseudonyms
	// find finds names and hosts in a text, inner names within a host that stays.
	find, inner *regexp.Regexp
}

// NewRedactor returns a Redactor that knows no names yet.
func NewRedactor(key []byte) *Redactor { return &Redactor{key: key, words: map[string]string{}} }

// kept are names that every cluster has, which say nothing of anybody.
var kept = map[string]bool{
	"": true, "default": true, "kube-system": true, "kube-public": true, "kube-node-lease": true, "croft-system": true,
	"croft-elevations": true, "karpenter": true, "flux-system": true, "gatekeeper-system": true, "argocd": true, "croft": true,
	"system:masters": true, "system:authenticated": true, "*": true,
}

// Add has a name redacted from now on. The first class of a name stays: a tenant and its
// namespace often have the same.
func (r *Redactor) Add(class Class, names ...string) {
	if r == nil {
		return
	}
	for _, name := range names {
		name = strings.TrimPrefix(name, "*.")
		if _, known := r.words[name]; known || kept[name] {
			continue
		}
		r.words[name] = r.pseudonym(class, name)
		r.find = nil
	}
}

func (r *Redactor) pseudonym(class Class, name string) string {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(name))
	return string(class) + "-" + hex.EncodeToString(mac.Sum(nil))[:10]
}

// Names are the names by their pseudonyms, for those who keep the bundle's origin.
func (r *Redactor) Names() map[string]string {
	names := map[string]string{}
	for name, pseudonym := range r.words {
		names[pseudonym] = name
	}
	return names
}

// hostname is a name with dots that may be a host. What it finds is more than hosts.
const hostname = `\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}\b`

// Text replaces names that stand as words of their own, also beside a hyphen, and every
// host that is not of Kubernetes or of a project that croft works with.
func (r *Redactor) Text(text string) string {
	if r == nil {
		return text
	}
	if r.find == nil {
		r.compile()
	}
	return r.find.ReplaceAllStringFunc(text, func(found string) string {
		switch pseudonym, known := r.words[found]; {
		case known:
			return pseudonym
		case public(found):
			return r.inner.ReplaceAllStringFunc(found, func(name string) string { return r.words[name] })
		default:
			r.words[found] = r.pseudonym(Host, found)
			return r.words[found]
		}
	})
}

// compile makes one expression of all names and of hosts. Names with dots come first: a host
// may be a part of one. Longer names come before those that they begin with.
func (r *Redactor) compile() {
	names := slices.SortedFunc(maps.Keys(r.words), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	var dotted, undotted []string
	for _, name := range names {
		if strings.Contains(name, ".") {
			dotted = append(dotted, word(name))
		} else {
			undotted = append(undotted, word(name))
		}
	}
	r.find = regexp.MustCompile(strings.Join(slices.Concat(dotted, []string{hostname}, undotted), "|"))
	r.inner = regexp.MustCompile(strings.Join(append(undotted, "$^"), "|"))
}

// word finds a name that is no part of another word.
func word(name string) string {
	pattern := regexp.QuoteMeta(name)
	if wordy.MatchString(name[:1]) {
		pattern = `\b` + pattern
	}
	if wordy.MatchString(name[len(name)-1:]) {
		pattern += `\b`
	}
	return pattern
}

var wordy = regexp.MustCompile(`^\w$`)

var (
	// publicSuffixes are groups of APIs, and hosts of projects.
	publicSuffixes = []string{
		"k8s.io", "kubernetes.io", "croft.dev", "karpenter.sh", "k8s.aws", "fluxcd.io", "gatekeeper.sh", "argoproj.io",
		"projectcalico.org", "cert-manager.io", "coreos.com", "github.com", "golang.org", "kyverno.io", "kwok.sh",
		"svc", "cluster.local", "apps", "batch", "autoscaling", "policy",
	}
	// fileSuffixes are of files in stacks and messages.
	fileSuffixes = []string{".go", ".yaml", ".yml", ".json", ".md", ".txt", ".log", ".sh"}
	// paths begin the paths of fields.
	paths = []string{
		"spec.", "status.", "metadata.", "platform.", "pools.", "tenants.", "networks.", "access.", "policy.", "object.",
		"request.", "requests.", "limits.",
	}
)

// public reports whether a name with dots is nobody's host.
func public(name string) bool {
	return slices.ContainsFunc(publicSuffixes, func(s string) bool { return name == s || strings.HasSuffix(name, "."+s) }) ||
		slices.ContainsFunc(fileSuffixes, func(s string) bool { return strings.HasSuffix(name, s) }) ||
		slices.ContainsFunc(paths, func(s string) bool { return strings.HasPrefix(name, s) })
}

// plain are fields whose values are words of the API and never names.
var plain = map[string]bool{"apiVersion": true, "kind": true, "type": true, "reason": true, "resourceVersion": true, "uid": true}

// Value replaces names in all strings of a value as JSON has it, and in the keys of maps.
func (r *Redactor) Value(field string, value any) any {
	if r == nil {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, inner := range v {
			if pseudonym, ok := r.words[name]; ok {
				name = pseudonym
			} else if strings.Contains(name, ".") {
				name = r.Text(name)
			}
			all[name] = r.Value(name, inner)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, inner := range v {
			all[i] = r.Value(field, inner)
		}
		return all
	case string:
		if plain[field] {
			return v
		}
		return r.Text(v)
	default:
		return value
	}
}
