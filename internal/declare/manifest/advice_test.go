package manifest_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/test/sandbox"
)

// parseAndBuild parses and builds one file named croft.yaml.
func parseAndBuild(content string) document.Problems {
	d, problems := manifest.Parse("croft.yaml", []byte(content))
	_, more := estate.Build(d)
	return append(problems, more...).Sorted()
}

// advised are the phrases in which a message proposes a value. The first group is the value, as
// YAML.
var advised = []*regexp.Regexp{
	regexp.MustCompile(`put it in quotes: (".*")$`),
	regexp.MustCompile(`must be a list; write (\[.*\])$`),
	regexp.MustCompile(`or written (\S+)$`),
	regexp.MustCompile(`write (\d+), not `),
	regexp.MustCompile(`write (true|false), not `),
	regexp.MustCompile(`write (-?\d+) without quotes`),
	regexp.MustCompile(`did you mean (\S+)\?$`),
}

const leaveOut = "leave it out"

// elsewhere are the phrases about a well-formed value that requires a change in another place,
// and about text that was a number before and is not a name.
var elsewhere = []string{
	"becomes part of a name; write lower-case",
	"is not a valid value of a label",
	"cannot be declared here; the kinds are",
	"; declare it, or name another",
	", or choose another default",
	"sets role or instanceProfile",
	"needs a grace period",
	"set exactly one of group and user",
	"set exactly one of git and oci",
	"the pool has no secondaryNetworks to wait for",
	"set monthly and currency, whose rest priceInResponse shows",
}

// wrong are values of every type, most of which are invalid in any field.
var wrong = []string{`true`, `0`, `5`, `-3`, `1.5`, `"text"`, `"yes"`, `"5"`, `"1.5"`, `""`, `"a b"`, `[]`, `[5]`, `[text]`, `{}`, `{a: b}`}

// fewerValues is the number of wrong values that a field gets in `make test`. Adjacent fields
// get different values.
const fewerValues = 4

// TestAdviceIsAccepted writes wrong values into every field of every kind and follows the
// messages: the field must then be valid, and no other field may become invalid.
func TestAdviceIsAccepted(t *testing.T) {
	all, err := manifest.Schemas()
	if err != nil {
		t.Fatal(err)
	}
	given, fields, least := 0, 0, 300
	if !sandbox.All() {
		least /= fewerValues
	}
	for _, kind := range manifest.Kinds {
		spec := all[kind].GetStructure().Properties["spec"]
		for _, path := range listFieldPaths(&spec, []string{"spec"}) {
			fields++
			for i, value := range wrong {
				if !sandbox.All() && (fields+i)%fewerValues != 0 {
					continue
				}
				given += followAdvice(t, kind, path, value)
			}
		}
	}
	t.Logf("followed advice %d times", given)
	if given < least {
		t.Errorf("advice was followed only %d times: do the messages give it in other words?", given)
	}
}

// followAdvice returns the number of messages with advice.
func followAdvice(t *testing.T, kind string, path []string, value string) int {
	t.Helper()
	before := checkField(t, kind, path, parseValue(t, value))
	given := 0
	for _, p := range before {
		advice, out, ok := parseAdvice(t, p.Message)
		if manifest.PlainPath(p.Field) != strings.Join(path, ".") || !ok {
			continue
		}
		given++
		var after document.Problems
		known := before
		switch last := len(path) - 1; {
		case !out:
			after = checkField(t, kind, path, advice)
			// Rules on the parents of a value of the wrong type are not evaluated.
			known = append(slices.Clone(before), checkField(t, kind, path, nil)...)
		case path[last] == "0":
			after = checkField(t, kind, path[:last], []any{})
		default:
			after = checkField(t, kind, path, nil)
		}
		for _, q := range after {
			already := slices.ContainsFunc(known, func(p document.Problem) bool { return p.Field == q.Field && p.Message == q.Message })
			if slices.ContainsFunc(elsewhere, func(part string) bool { return strings.Contains(q.Message, part) }) {
				continue
			}
			if strings.HasPrefix(manifest.PlainPath(q.Field), manifest.PlainPath(p.Field)) || !already && strings.HasPrefix(manifest.PlainPath(p.Field), manifest.PlainPath(q.Field)) {
				t.Errorf("%s with %s: %q\nand then: %s: %q", p.Field, value, p.Message, q.Field, q.Message)
			}
		}
	}
	return given
}

func parseAdvice(t *testing.T, message string) (value any, out, ok bool) {
	t.Helper()
	for _, pattern := range advised {
		if match := pattern.FindStringSubmatch(message); match != nil {
			return parseValue(t, match[1]), false, true
		}
	}
	return nil, true, strings.Contains(message, leaveOut)
}

func parseValue(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// checkField returns the problems of an object in which one field is set.
func checkField(t *testing.T, kind string, path []string, value any) document.Problems {
	t.Helper()
	base := map[string]map[string]any{
		manifest.KindPlatform: {"clusterName": "demo", "nodeClass": map[string]any{"kwok": map[string]any{}}},
		manifest.KindPool:     {},
		manifest.KindTenant:   {"pool": "jobs"},
		manifest.KindNetwork:  {"zones": []any{map[string]any{"zone": "a", "subnet": "s", "cidr": "10.0.0.0/24", "podCIDR": "10.0.0.0/25"}}},
	}
	names := map[string]string{manifest.KindPlatform: "default", manifest.KindPool: "jobs", manifest.KindTenant: "shop", manifest.KindNetwork: "telco"}
	var documents []string
	for _, k := range manifest.Kinds {
		object := map[string]any{"apiVersion": "croft.dev/v1alpha1", "kind": k, "metadata": map[string]any{"name": names[k]}, "spec": base[k]}
		if k == kind {
			makeRoom(object, path)
			setPath(object, path, value)
		}
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(data))
	}
	problems := parseAndBuild(strings.Join(documents, "\n---\n"))
	return problems.ForObject(kind, names[kind])
}

// makeRoom removes fields that exclude a field, and adds fields that it requires.
func makeRoom(object map[string]any, path []string) {
	switch at := strings.Join(path, "."); {
	case strings.HasPrefix(at, "spec.nodeClass.aws.blockDeviceMappings.0.ebs."):
		object["spec"].(map[string]any)["nodeClass"] = map[string]any{}
		setPath(object, []string{"spec", "nodeClass", "aws", "blockDeviceMappings", "0", "ebs", "volumeSize"}, "20Gi")
	case strings.HasPrefix(at, "spec.nodeClass."):
		object["spec"].(map[string]any)["nodeClass"] = map[string]any{}
	case strings.HasPrefix(at, "spec.network.calico"):
		setPath(object, []string{"spec", "network", "dialect"}, "Calico")
	case at == "spec.pools" || at == "spec.pools.0":
		delete(object["spec"].(map[string]any), "pool")
	}
}

// setPath sets a value at a path. The step 0 is the index of a list.
func setPath(at map[string]any, path []string, value any) {
	for i, step := range path[:len(path)-1] {
		if step == "0" {
			continue
		}
		next, _ := at[step].(map[string]any)
		if items, ok := at[step].([]any); ok {
			next, _ = items[0].(map[string]any)
		}
		if next == nil {
			next = map[string]any{}
		}
		switch {
		case path[i+1] == "0" && len(path) == i+2:
			at[step] = []any{value}
			return
		case path[i+1] == "0":
			at[step] = []any{next}
		default:
			at[step] = next
		}
		at = next
	}
	if last := path[len(path)-1]; value == nil {
		delete(at, last)
	} else {
		at[last] = value
	}
}

// listFieldPaths returns the paths of all fields, and of items and entries in them.
func listFieldPaths(s *structural.Structural, path []string) [][]string {
	var all [][]string
	add := func(s *structural.Structural, step string) {
		at := append(slices.Clone(path), step)
		all = append(all, at)
		all = append(all, listFieldPaths(s, at)...)
	}
	for _, name := range manifest.FieldsOf(s) {
		property := s.Properties[name]
		add(&property, name)
	}
	if s.Items != nil {
		add(s.Items, "0")
	}
	if more := s.AdditionalProperties; more != nil && more.Structural != nil {
		for _, key := range listValidKeys(more.Structural, path[len(path)-1]) {
			add(more.Structural, key)
		}
	}
	return all
}

// listValidKeys returns valid keys for a mapping: a pool's limits and quotas, containers' limits,
// or any other mapping.
func listValidKeys(values *structural.Structural, name string) []string {
	switch {
	case strings.HasPrefix(name, "eviction"):
		return []string{"memory.available"}
	case !values.XIntOrString:
		return []string{"a"}
	case name == "limits" || name == "quota":
		return []string{"cpu", "pods"}
	default:
		return []string{"cpu"}
	}
}

func TestMessagesOfTypes(t *testing.T) {
	for input, want := range map[string]string{
		"tenants: {shop: {pool: jobs, policy: {doNotDisrupt: \"yes\"}}}":                     `tenants.shop.policy.doNotDisrupt: must be true or false; write true, not the text "yes"`,
		"tenants: {shop: {pool: jobs, policy: {shareWith: [{group: a, user: b}]}}}":          `tenants.shop.policy.shareWith[0]: set exactly one of group, user and serviceAccount`,
		"tenants: {shop: {pool: jobs, policy: {shareWith: [{serviceAccount: prometheus}]}}}": `tenants.shop.policy.shareWith[0].serviceAccount: "prometheus" must be NAMESPACE/NAME, such as monitoring/prometheus, or NAMESPACE/*`,
		"tenants: {shop: {pool: jobs, policy: {cloudIdentities: ['arn:*:role/x']}}}":         `tenants.shop.policy.cloudIdentities[0]: "arn:*:role/x" must be an identity, or the beginning of identities with a trailing "*", such as arn:aws:iam::111122223333:role/shop-*`,
		"tenants: {shop: {pool: jobs, policy: {clusterIPs: [10.0.0.0/8]}}}":                  `tenants.shop.policy.clusterIPs[0]: "10.0.0.0/8" must be an IP address, such as 10.100.7.7, or "*" for any`,
		"tenants: {shop: {pool: jobs, policy: {doNotDisrupt: maybe}}}":                       `tenants.shop.policy.doNotDisrupt: must be true or false, not the text "maybe"`,
		"tenants: {shop: {pool: jobs, quota: {pods: 1.5}}}":                                  `tenants.shop.quota.pods: pods is counted in whole numbers; write 2, not 1.5`,
		"tenants: {shop: {pool: jobs, quota: {cpu: 1.5}}}":                                   `tenants.shop.quota.cpu: the number 1.5 must be in quotes, or written 1500m`,
		"tenants: {shop: {pool: jobs, namespaces: 5}}":                                       `tenants.shop.namespaces: must be a list; write ["5"]`,
		"tenants: {shop: {pool: ''}}":                                                        `tenants.shop.pool: must not be empty; set a value`,
		"pools: {jobs: {budgets: [{nodes: 3}]}}\ntenants: {shop: {pool: jobs}}":              `pools.jobs.budgets[0].nodes: must be text; put it in quotes: "3"`,
	} {
		if !strings.HasPrefix(input, "pools") {
			input = "pools: {jobs: {}}\n" + input
		}
		problems := parseAndBuild(manifest.Base + input)
		if len(problems) == 0 || !strings.Contains(fmt.Sprint(problems), want) {
			t.Errorf("%s\nwant %s\ngot  %s", input, want, problems)
		}
	}
	problems := parseAndBuild("platform: {clusterName: '', nodeClass: {kwok: {}}}\n")
	manifest.Expect(t, problems, "croft.yaml:1: platform.clusterName: must not be empty; set a value")
}
