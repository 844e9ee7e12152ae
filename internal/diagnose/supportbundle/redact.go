package supportbundle

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// Class is the class of a name. It is the prefix of the name's pseudonym.
type Class string

// These are the classes of names that are redacted.
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
	Contact   Class = "contact"
)

// Redactor replaces names by pseudonyms: a class and a keyed hash of the name. A name has
// the same pseudonym everywhere, and guesses of names cannot be verified without the key. A
// nil Redactor replaces nothing.
type Redactor struct {
	key   []byte
	words map[string]string // names to pseudonyms
	// oddNames are names with characters that names of objects, hosts and users do not have.
	oddNames []string
}

// NewRedactor returns a Redactor without names.
func NewRedactor(key []byte) *Redactor { return &Redactor{key: key, words: map[string]string{}} }

// kept are names that are common to clusters and are not redacted.
var kept = map[string]bool{
	"": true, "default": true, "kube-system": true, "kube-public": true, "kube-node-lease": true, "croft-system": true,
	"croft-elevations": true, "croft-secrets": true, "karpenter": true, "flux-system": true, "gatekeeper-system": true, "argocd": true, "croft": true,
	"system:masters": true, "system:authenticated": true, "*": true,
}

// Add adds names to redact. A name keeps its first class: a tenant and its namespace often
// have the same name.
func (r *Redactor) Add(class Class, names ...string) {
	if r == nil {
		return
	}
	for _, name := range names {
		name = strings.TrimPrefix(name, "*.")
		if _, ok := r.words[name]; ok || kept[name] {
			continue
		}
		r.words[name] = r.makePseudonym(class, name)
		if run.FindString(name) != name {
			r.oddNames = append(r.oddNames, name)
		}
	}
}

func (r *Redactor) makePseudonym(class Class, name string) string {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(name))
	return string(class) + "-" + hex.EncodeToString(mac.Sum(nil))[:10]
}

// Names returns the names by pseudonym. Only the creator of the bundle keeps them.
func (r *Redactor) Names() map[string]string {
	names := map[string]string{}
	for name, pseudonym := range r.words {
		names[pseudonym] = name
	}
	return names
}

var (
	// run matches words together with the characters that join the parts of a name.
	run = regexp.MustCompile(`[A-Za-z0-9_]+(?:[-.:@/]+[A-Za-z0-9_]+)*`)
	// words matches the words of a run.
	words = regexp.MustCompile(`[A-Za-z0-9_]+`)
	// hostname matches a name with dots that may be a host. It also matches other text.
	hostname = regexp.MustCompile(`^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}\b`)
)

// RedactText replaces names that are separate words, also next to a hyphen, and every host that
// does not belong to Kubernetes or to a project that croft works with. Its running time
// does not depend on the number of names.
func (r *Redactor) RedactText(text string) string {
	if r == nil {
		return text
	}
	for _, name := range r.oddNames {
		text = strings.ReplaceAll(text, name, r.words[name])
	}
	return run.ReplaceAllStringFunc(text, r.replaceRun)
}

// longestName is the maximum number of words in a name.
const longestName = 24

// replaceRun replaces the names in a run of words: at each word the longest name that begins
// there.
func (r *Redactor) replaceRun(text string) string {
	var out strings.Builder
	bounds := words.FindAllStringIndex(text, -1)
	for i, done := 0, 0; i < len(bounds); {
		from := bounds[i][0]
		out.WriteString(text[done:from])
		host := hostname.FindString(text[from:])
		if isPublic(host) {
			host = ""
		}
		next, pseudonym := i+1, ""
		for j := min(len(bounds), i+longestName); j > i; j-- {
			name := text[from:bounds[j-1][1]]
			if len(name) < len(host) {
				break
			}
			word, ok := r.words[name]
			if !ok && name == host {
				word, ok = r.makePseudonym(Host, host), true
				r.words[host] = word
			}
			if ok {
				next, pseudonym = j, word
				break
			}
		}
		done = bounds[next-1][1]
		if pseudonym == "" {
			pseudonym = text[from:done]
		}
		out.WriteString(pseudonym)
		i = next
	}
	return out.String()
}

var (
	// publicSuffixes are groups of APIs, and hosts of projects.
	publicSuffixes = []string{
		"k8s.io", "kubernetes.io", "croft.dev", "karpenter.sh", "k8s.aws", "fluxcd.io", "gatekeeper.sh", "argoproj.io",
		"projectcalico.org", "cert-manager.io", "coreos.com", "github.com", "golang.org", "kyverno.io", "kwok.sh",
		"svc", "cluster.local", "apps", "batch", "autoscaling", "policy", "docker.io", "ghcr.io", "quay.io", "gcr.io",
	}
	// fileSuffixes are suffixes of files in stack traces and messages.
	fileSuffixes = []string{".go", ".yaml", ".yml", ".json", ".md", ".txt", ".log", ".sh"}
	// paths are prefixes of field paths.
	paths = []string{
		"spec.", "status.", "metadata.", "platform.", "pools.", "tenants.", "networks.", "access.", "policy.", "object.",
		"request.", "requests.", "limits.", "resources.", "variables.",
	}
)

// instanceType matches an instance type of AWS, such as t3a.large.
var instanceType = regexp.MustCompile(`^[a-z]+\d+[a-z-]*\.(?:nano|micro|small|medium|\d*x?large|metal)$`)

// isPublic reports whether a name with dots is no host that must be redacted.
func isPublic(name string) bool {
	return name == "" || instanceType.MatchString(name) ||
		slices.ContainsFunc(publicSuffixes, func(s string) bool { return name == s || strings.HasSuffix(name, "."+s) }) ||
		slices.ContainsFunc(fileSuffixes, func(s string) bool { return strings.HasSuffix(name, s) }) ||
		slices.ContainsFunc(paths, func(s string) bool { return strings.HasPrefix(name, s) })
}

// plain are fields whose values are words of the API and never names.
var plain = map[string]bool{"apiVersion": true, "kind": true, "type": true, "reason": true, "resourceVersion": true, "uid": true}

// contacts are fields of a Tenant's spec with free text. Their whole values are replaced, since the
// text may contain people's names and addresses.
var contacts = map[string]bool{"owner": true, "contact": true, "description": true}

// isContact reports whether a field is one of contacts. Other objects have fields with the name owner
// or description, too; only a Tenant's spec also has pools.
func isContact(field string, object map[string]any) bool {
	_, hasPool := object["pool"]
	_, hasPools := object["pools"]
	return contacts[field] && (hasPool || hasPools || field == "contact")
}

// RedactValue replaces names in all strings of a value decoded from JSON, and in the keys of
// maps.
func (r *Redactor) RedactValue(field string, value any) any {
	if r == nil {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, inner := range v {
			if text, ok := inner.(string); ok && isContact(name, v) {
				all[name] = r.makePseudonym(Contact, text)
				continue
			}
			if pseudonym, ok := r.words[name]; ok {
				name = pseudonym
			} else if strings.Contains(name, ".") {
				name = r.RedactText(name)
			}
			all[name] = r.RedactValue(name, inner)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, inner := range v {
			all[i] = r.RedactValue(field, inner)
		}
		return all
	case string:
		if plain[field] {
			return v
		}
		return r.RedactText(v)
	default:
		return value
	}
}
