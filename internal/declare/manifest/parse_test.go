package manifest

import (
	"strconv"
	"strings"
	"testing"
)

func TestParseRefuses(t *testing.T) {
	for _, test := range listUnreadableFiles() {
		t.Run(test.name, func(t *testing.T) {
			_, problems := Parse("croft.yaml", []byte(test.content))
			expectProblems(t, problems, test.want...)
		})
	}
	for _, test := range invalidByThemselves {
		t.Run(test.name, func(t *testing.T) {
			_, problems := Parse("croft.yaml", []byte(base+test.content))
			expectProblems(t, problems, test.want...)
		})
	}
}

// listUnreadableFiles returns files that are invalid as a whole.
func listUnreadableFiles() []badInput {
	return []badInput{
		{"empty", "", []string{"croft.yaml: the file is empty; write a platform, its pools and its tenants"}},
		{"only comments", "# nothing\n---\n# here\n", []string{"croft.yaml: the file is empty; write a platform, its pools and its tenants"}},
		{"not YAML", "platform:\n  clusterName: demo\n nodeClass: [", []string{"croft.yaml:2: not YAML: did not find expected key"}},
		{"tabs", "platform:\n\tclusterName: demo\n", []string{"croft.yaml:2: not YAML: found character that cannot start any token; YAML is indented with spaces, never with tabs"}},
		{"not UTF-8", "a: \xff\xff", []string{"croft.yaml: not YAML: invalid leading UTF-8 octet"}},
		{"a list", "- a\n- b\n", []string{`croft.yaml:1: a document must be a mapping, such as "platform: {...}", not a list`}},
		{"a text", "hello", []string{`croft.yaml:1: a document must be a mapping, such as "platform: {...}", not the text "hello"`}},
		{"20 MB", strings.Repeat("# twenty bytes long.\n", 1_000_000), []string{"croft.yaml: the file has 20.0 MiB, and croft reads no more than 10 MiB; is this the right file?"}},
		{"another kind", "\napiVersion: apps/v1\nkind: Deployment\n", []string{"croft.yaml:2: croft reads Platform, Pool, Tenant and SecondaryNetwork of croft.dev/v1alpha1, not Deployment of apps/v1"}},
		{"another version", "apiVersion: croft.dev/v2\nkind: Tenant\n", []string{"croft.yaml:1: croft reads Platform, Pool, Tenant and SecondaryNetwork of croft.dev/v1alpha1, not Tenant of croft.dev/v2"}},
		{"no version", "kind: Tenant\n", []string{"croft.yaml:1: croft reads Platform, Pool, Tenant and SecondaryNetwork of croft.dev/v1alpha1, not Tenant of nothing"}},
		{"a kind that is none", "kind: {a: b}\napiVersion: croft.dev/v1alpha1\n", []string{"croft.yaml:1: croft reads Platform, Pool, Tenant and SecondaryNetwork of croft.dev/v1alpha1, not {a: b} of croft.dev/v1alpha1"}},
		{"croft's own kind", "kind: TenantRules\napiVersion: croft.dev/v1alpha1\n", []string{"croft.yaml:1: croft reads Platform, Pool, Tenant and SecondaryNetwork of croft.dev/v1alpha1, not TenantRules of croft.dev/v1alpha1"}},
		{"an alias bomb", buildAliasBomb(), []string{"croft.yaml:1: the aliases in this document expand to more than 1000000 values; write the values without aliases"}},
		{"a merge bomb", buildMergeBomb(), []string{"croft.yaml:1: the aliases in this document expand to more than 1000000 values; write the values without aliases"}},
		{"an endless alias", "pools: &a\n  jobs: *a\n", []string{
			"croft.yaml:2: pools.jobs: the alias *a refers to itself; write the values without this alias"}},
		{"an unknown alias", "pools: *a\n", []string{"croft.yaml: not YAML: unknown anchor 'a' referenced"}},
	}
}

// invalidByThemselves are objects that violate their own schema, after base.
var invalidByThemselves = []badInput{
	{"an unknown section", "tenant: {}\n", []string{
		"croft.yaml:7: tenant: there is no such field; did you mean tenants?"}},
	{"a section that is a list", "tenants: [shop]\n", []string{
		"croft.yaml:7: tenants: must be a mapping from names to their settings, not a list"}},
	{"an unknown field with one like it", "pools:\n  jobs:\n    emtpyTTL: 10m\n", []string{
		"croft.yaml:9: pools.jobs.emtpyTTL: there is no such field; did you mean emptyTTL?"}},
	{"an unknown field with none like it", "pools:\n  jobs:\n    instances: {zones: [a]}\n", []string{
		"croft.yaml:9: pools.jobs.instances.zones: there is no such field; the fields are architectures, capacityTypes, instanceTypes and requirements"}},
	{"an unknown field where there is none", "pools:\n  jobs:\n    nodeClass: {kwok: {size: 1}}\n", []string{
		"croft.yaml:9: pools.jobs.nodeClass.kwok.size: there is no such field; nothing can be set here"}},
	{"a duplicate key", "pools:\n  jobs: {}\n  apps: {}\n  jobs: {}\n", []string{
		"croft.yaml:10: pools.jobs: is set twice, first on line 8; keep one of them"}},
	{"a key that is none", "pools:\n  ? [a]\n  : {}\n  null: {}\n", []string{
		"croft.yaml:8: pools: a key must be a plain word",
		"croft.yaml:10: pools: there is no key before the ':'; a key with the name null or ~ must be in quotes"}},
	{"a tag", "pools:\n  jobs: {costCode: !secret abc}\n", []string{
		"croft.yaml:8: pools.jobs.costCode: croft does not support the YAML tag !secret; leave it out"}},
	{"a merge of something else", "pools:\n  <<: 5\n  <<: [6]\n  jobs: {}\n", []string{
		"croft.yaml:8: pools: << takes a mapping or a list of mappings",
		"croft.yaml:9: pools: << takes a mapping or a list of mappings"}},
	{"a pool that is a text", "pools:\n  jobs: large\n", []string{
		`croft.yaml:8: pools.jobs: must be a mapping, such as {key: value}, not the text "large"`}},
	{"a duration without a unit", "pools:\n  jobs:\n    emptyTTL: 10\n", []string{
		"croft.yaml:9: pools.jobs.emptyTTL: the number 10 is not allowed; write a duration with its unit, such as 30s, 10m or 168h, or Never"}},
	{"a duration below zero", "pools:\n  jobs:\n    emptyTTL: -5m\n", []string{
		`croft.yaml:9: pools.jobs.emptyTTL: "-5m" must be a duration with its unit, such as 30s, 10m or 168h, or Never`}},
	{"a bad quantity", "pools:\n  jobs:\n    limits:\n      cpu: 1oo\n      memory: 0.5\n      nvidia.com/gpu: 1e1.5\n      pods: [1]\n", []string{
		`croft.yaml:10: pools.jobs.limits.cpu: "1oo" is not a quantity; write one such as 500m, 2 or 4Gi`,
		`croft.yaml:11: pools.jobs.limits.memory: the number 0.5 must be in quotes, or written 500m`,
		`croft.yaml:12: pools.jobs.limits["nvidia.com/gpu"]: "1e1.5" is not a quantity; write one such as 500m, 2 or 4Gi`,
		`croft.yaml:13: pools.jobs.limits.pods: "[1]" is not a quantity; write one such as 500m, 2 or 4Gi`}},
	{"kwok and aws", "pools:\n  jobs:\n    nodeClass: {kwok: {}, aws: {role: nodes}}\n", []string{
		"croft.yaml:9: pools.jobs.nodeClass: set exactly one of kwok, aws and ref"}},
	{"values of other types", "pools:\n  jobs:\n    costCode: 1234\n    weight: heavy\n    consolidation: [a]\n    tags: {a: {b: c}}\n    budgets: 10%\n    secondaryNetworks: {a: b}\n", []string{
		`croft.yaml:9: pools.jobs.costCode: must be text; put it in quotes: "1234"`,
		`croft.yaml:10: pools.jobs.weight: must be a whole number, not the text "heavy"`,
		`croft.yaml:11: pools.jobs.consolidation: a list is not allowed; write WhenEmpty or WhenEmptyOrUnderutilized`,
		`croft.yaml:12: pools.jobs.tags.a: must be text, not a mapping`,
		`croft.yaml:13: pools.jobs.budgets: must be a list, such as [{nodes: …}], not the text "10%"`,
		`croft.yaml:14: pools.jobs.secondaryNetworks: must be a list, such as [a, b], not a mapping`}},
	{"values out of bounds", "pools:\n  jobs:\n    weight: 500\n    instances: {instanceTypes: [], capacityTypes: [spott, cheap, spot, spot]}\n    secondaryNetworks: [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o]\n", []string{
		"croft.yaml:9: pools.jobs.weight: must be from 1 to 100, not 500",
		"croft.yaml:10: pools.jobs.instances.capacityTypes: has 4 entries; write at most 3",
		`croft.yaml:10: pools.jobs.instances.capacityTypes[0]: "spott" is not one of on-demand, spot and reserved; did you mean spot?`,
		`croft.yaml:10: pools.jobs.instances.capacityTypes[1]: "cheap" is not allowed; write on-demand, spot or reserved`,
		"croft.yaml:10: pools.jobs.instances.capacityTypes[3]: is twice in the list; leave out one spot",
		"croft.yaml:10: pools.jobs.instances.instanceTypes: must not be empty; leave it out, or set a value",
		"croft.yaml:11: pools.jobs.secondaryNetworks: has 15 entries; write at most 14"}},
	{"rules of the schema", "pools:\n  jobs:\n    costCode: -x\n    budgets: [{nodes: 10%, schedule: \"* * * * *\"}]\n    instances:\n      requirements: [{key: a, operator: In}, {operator: Gt, values: [x]}]\n", []string{
		"croft.yaml:9: pools.jobs.costCode: becomes a label: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
		"croft.yaml:10: pools.jobs.budgets[0]: schedule and duration go together",
		"croft.yaml:12: pools.jobs.instances.requirements[0]: In, NotIn, Gt and Lt need values; Exists and DoesNotExist take none",
		"croft.yaml:12: pools.jobs.instances.requirements[1].key: is required, but missing"}},
	{"a tenant without a pool", "tenants:\n  shop:\n", []string{
		"croft.yaml:8: tenants.shop: set exactly one of pool and pools"}},
	{"not a DNS label", "tenants:\n  My_Shop: {pool: jobs}\n", []string{
		"croft.yaml:8: tenants.My_Shop: a tenant's name becomes a namespace and a domain: at most 63 lower-case letters, digits and '-'"}},
	{"a name with dots", "tenants:\n  my.shop: {pool: jobs}\n", []string{
		`croft.yaml:8: tenants["my.shop"]: a tenant's name becomes a namespace and a domain: at most 63 lower-case letters, digits and '-'`}},
	{"too long a name", "tenants:\n  " + strings.Repeat("a", 64) + ": {pool: jobs}\n", []string{
		"croft.yaml:8: tenants." + strings.Repeat("a", 64) + ": a tenant's name becomes a namespace and a domain: at most 63 lower-case letters, digits and '-'"}},
	{"too long a value", "tenants:\n  shop: {pool: " + strings.Repeat("a", 64) + "}\n", []string{
		"croft.yaml:8: tenants.shop.pool: has 64 characters; write at most 63"}},
	{"not a domain", "pools: {jobs: }\ntenants:\n  shop: {pool: jobs, domains: [shop, Shop.example.org, \"*.org\", \"a.*.org\"]}\n", []string{
		`croft.yaml:9: tenants.shop.domains[0]: "shop" must be a domain in lower case, such as shop.example.org or *.shop.example.org`,
		`croft.yaml:9: tenants.shop.domains[1]: "Shop.example.org" must be a domain in lower case, such as shop.example.org or *.shop.example.org`,
		`croft.yaml:9: tenants.shop.domains[2]: "*.org" must be a domain in lower case, such as shop.example.org or *.shop.example.org`,
		`croft.yaml:9: tenants.shop.domains[3]: "a.*.org" must be a domain in lower case, such as shop.example.org or *.shop.example.org`}},
	{"access for everybody", "pools: {jobs: }\ntenants:\n  shop: {pool: jobs, access: [{group: \"system:authenticated\", role: viewer}, {group: a, user: b, role: viewer}]}\n", []string{
		"croft.yaml:9: tenants.shop.access[0].group: groups that begin with system: belong to Kubernetes, and their members are not the people of one team: name a group of your identity provider",
		"croft.yaml:9: tenants.shop.access[1]: set exactly one of group and user"}},
	{"pods outside of their network", "secondaryNetworks:\n  data: {zones: [{zone: a, subnet: s, cidr: 10.0.0.0/24, podCIDR: 10.1.0.0/26, gateway: 10.0.0.999}]}\n", []string{
		"croft.yaml:8: secondaryNetworks.data.zones[0]: podCIDR must lie within cidr",
		`croft.yaml:8: secondaryNetworks.data.zones[0].gateway: "10.0.0.999" must be an IP address, such as 10.0.4.1`}},
	{"metadata", "---\napiVersion: croft.dev/v1alpha1\nkind: Tenant\nmetadata:\n  name: shop\n  lables: {a: b}\n  namespace: x\n  labels: {a: 1}\nspec: {pools: jobs}\n", []string{
		"croft.yaml:12: Tenant/shop: metadata.lables: there is no such field; did you mean labels?",
		"croft.yaml:13: Tenant/shop: metadata.namespace: there is no such field; the fields are annotations, labels and name",
		"croft.yaml:14: Tenant/shop: metadata.labels: must be a mapping from text to text; put numbers and true or false in quotes",
		"croft.yaml:15: Tenant/shop: spec.pools: must be a list; write [jobs]"}},
	{"no name", "---\napiVersion: croft.dev/v1alpha1\nkind: Tenant\nmetadata: {}\nspec: {pool: jobs, pools: [jobs]}\n---\napiVersion: croft.dev/v1alpha1\nkind: Pool\n", []string{
		"croft.yaml:10: Tenant: metadata.name: every object needs a name; a name of digits must be in quotes",
		"croft.yaml:11: Tenant: spec: set exactly one of pool and pools",
		"croft.yaml:13: Pool: metadata: must be a mapping with the object's name, such as {name: shop}"}},
	{"a platform by another name", "---\napiVersion: croft.dev/v1alpha1\nkind: Platform\nmetadata: {name: main}\nspec: {clusterName: a, nodeClass: {kwok: {}}}\n", []string{
		"croft.yaml:8: Platform/main: a cluster has one Platform, named default: set metadata.name to default"}},
}

func buildAliasBomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for _, line := range []string{"1 0", "2 1", "3 2", "4 3", "5 4", "6 5", "7 6", "8 7", "9 8"} {
		to, from, _ := strings.Cut(line, " ")
		b.WriteString("a" + to + ": &a" + to + " [" + strings.TrimSuffix(strings.Repeat("*a"+from+", ", 10), ", ") + "]\n")
	}
	return b.String()
}

func buildMergeBomb() string {
	var b strings.Builder
	b.WriteString("base: &base\n")
	for i := range 2000 {
		b.WriteString("  k" + strconv.Itoa(i) + ": 1\n")
	}
	b.WriteString("pools:\n")
	for i := range 2000 {
		b.WriteString("  p" + strconv.Itoa(i) + ": {<<: *base}\n")
	}
	return b.String()
}

func TestScalars(t *testing.T) {
	d := parseValid(t, base+`
pools:
  123: {weight: 0x10, tags: {a: 2024-01-01, b: yes, c: .inf}, limits: {cpu: 100, memory: 1e3}}
`)
	pool := d.Pools[0]
	if pool.Name != "123" || *pool.Spec.Weight != 16 || pool.Spec.Tags["a"] != "2024-01-01" || pool.Spec.Tags["b"] != "yes" || pool.Spec.Tags["c"] != ".inf" {
		t.Errorf("got %s, %+v", pool.Name, pool.Spec)
	}
}
