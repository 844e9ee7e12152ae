package migrate_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/internal/adoption/migrate"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/document"
)

// declaration is a placement in the input: an object places pods of a namespace on a pool.
type declaration struct {
	by, namespace, pool string
	// partly means that it concerns only some pods of the namespace.
	partly bool
}

// TestNoPlacementIsLost migrates random inputs that declare placements in every notation, for
// namespaces that are selected in every way. It expects each placement in croft.yaml or in a
// problem, and no other namespace on a pool. The seed identifies a failing input.
func TestNoPlacementIsLost(t *testing.T) {
	for seed := range uint64(400) {
		g := generator{rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // the same inputs each time
		input, declared := g.generatePlacements()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			objects, problems := source.Parse("read.yaml", []byte(input))
			r := migrate.Migrate(objects, problems, demo)
			expectAccounted(t, objects, r)
			expectPlacements(t, r, declared)
			if t.Failed() {
				t.Log(input + r.Markdown())
			}
		})
	}
}

// TestNoPlacementOfDocumentsIsLost removes each object in turn from the published set-ups: the
// placements of the others must be in croft.yaml, or in a problem.
func TestNoPlacementOfDocumentsIsLost(t *testing.T) {
	for _, document := range []string{"000", "001", "002"} {
		dir := filepath.Join("testdata", "documents", document)
		all, _ := readAll(t, dir)
		for i := range all {
			t.Run(fmt.Sprintf("%s without %s", document, all[i].ID()), func(t *testing.T) {
				objects, problems := readAll(t, dir)
				objects = slices.Delete(objects, i, i+1)
				var declared []declaration
				for _, o := range objects {
					value := o.At("spec", "parameters", "assign", "value")
					pools := slices.Collect(maps.Values(value.TextMap()))
					for _, toleration := range value.Items() {
						pools = append(pools, toleration.At("value").Text())
					}
					for _, pool := range pools {
						for _, namespace := range o.At("spec", "match", "namespaces").Texts() {
							declared = append(declared, declaration{by: o.ID(), namespace: namespace, pool: pool})
						}
					}
				}
				expectPlacements(t, migrate.Migrate(objects, problems, draft.Options{}), declared)
			})
		}
	}
}

// expectPlacements fails for a placement that is neither in croft.yaml nor in a problem, and for a
// placement in croft.yaml that was not declared.
func expectPlacements(t *testing.T, r *migrate.Result, declared []declaration) {
	t.Helper()
	for _, d := range declared {
		spec, ok := r.File.Tenants[d.namespace]
		if ok && (spec.Pool == d.pool || slices.Contains(spec.Pools, d.pool)) {
			continue
		}
		if !slices.ContainsFunc(r.Problems, func(p document.Problem) bool {
			return p.Path == d.by || strings.HasPrefix(p.Path, d.by+": ") || strings.Contains(p.Message, "omits tenant "+d.namespace+" until")
		}) {
			t.Errorf("no problem that pods of %s no longer run on %s, where %s places them", d.namespace, d.pool, d.by)
		}
	}
	for name, spec := range r.File.Tenants {
		for _, pool := range append(slices.Clone(spec.Pools), spec.Pool) {
			if pool != "" && !slices.ContainsFunc(declared, func(d declaration) bool {
				return d.namespace == name && d.pool == pool && !d.partly
			}) && !hasValuesTenant(r, name) {
				t.Errorf("tenant %s is on pool %s, where nothing puts all of its pods", name, pool)
			}
		}
	}
}

// hasValuesTenant reports whether a values file declares a tenant.
func hasValuesTenant(r *migrate.Result, tenant string) bool {
	return slices.ContainsFunc(r.Findings, func(f source.Finding) bool {
		return f.Object == "values" && strings.HasPrefix(f.Field, "tenants."+tenant)
	})
}

// generatePlacements generates an input and its placements.
func (g generator) generatePlacements() (string, []declaration) {
	var b strings.Builder
	key := pickOne(g, "node-pool", "team", "example.org/pool")
	pools := []string{"red", "green", "blue"}[:1+g.IntN(3)]
	for _, name := range pools {
		b.WriteString(g.generateNodePool(name, key))
	}
	namespaces := []string{"team-a", "team-b", "team-c", "other"}
	var declared []declaration
	marks := map[string][]string{}
	for i := range 1 + g.IntN(3) {
		some := slices.DeleteFunc(slices.Clone(namespaces), func(string) bool { return g.chooseBool() })
		if len(some) == 0 {
			some = []string{"team-a"}
		}
		match, mark := g.generateMatch(i, namespaces, &some)
		for _, n := range some {
			marks[n] = append(marks[n], mark)
		}
		kind, pool := "Assign", pickOne(g, pools...)
		location, parameters := g.generatePlacement(key, pool)
		if strings.Contains(parameters, "fromList") {
			kind = "ModifySet"
		}
		partly := g.IntN(4) == 0
		if partly {
			match += pickOne(g, ", labelSelector: {matchLabels: {app: web}}", ", name: \"web-*\"")
		}
		name := fmt.Sprintf("m%d", i)
		if prefix := "spec.template."; strings.HasPrefix(location, prefix) {
			b.WriteString(buildMutatorFor("apps", "Deployment", kind, name, match, location, parameters))
		} else {
			b.WriteString(buildMutator(kind, name, match, location, parameters))
		}
		for _, n := range some {
			declared = append(declared, declaration{kind + "/" + name, n, pool, partly})
		}
	}
	for _, n := range namespaces {
		b.WriteString(buildNamespace(n, strings.Join(slices.DeleteFunc(marks[n], func(m string) bool { return m == "" }), ", ")))
	}
	return b.String(), declared
}

// generateNodePool generates a NodePool that is dedicated in one of many ways, or not dedicated.
func (g generator) generateNodePool(name, key string) string {
	label := pickOne(g, key+": "+name, key+": "+name+", size: big")
	requirement := ""
	if g.IntN(4) == 0 {
		label, requirement = "", "requirements: [{key: "+key+", operator: In, values: ["+name+"]}]\n"
	}
	return buildPool(name, label, requirement+pickOne(g,
		"taints: [{key: "+key+", value: "+name+", effect: NoSchedule}]",
		"taints: [{key: "+key+", value: "+name+", effect: NoSchedule}, {key: gpu, effect: NoSchedule}]",
		"taints: [{key: dedicated, value: "+name+", effect: NoSchedule}]",
		"taints: [{key: "+name+", effect: NoSchedule}]",
		"expireAfter: Never"))
}

// generateMatch selects some of the namespaces: by names, patterns, labels or exclusion. mark is
// the label that the selected namespaces then need.
func (g generator) generateMatch(i int, all []string, some *[]string) (match, mark string) {
	list := func(names []string) string { return "[" + strings.Join(names, ", ") + "]" }
	switch g.IntN(5) {
	case 0:
		mark = fmt.Sprintf("mark-%d: \"yes\"", i)
		return "namespaceSelector: {matchLabels: {" + mark + "}}", mark
	case 1:
		excluded := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(*some, n) })
		return "scope: Namespaced, excludedNamespaces: " + list(append(excluded, "kube-system")), ""
	case 2:
		*some = []string{"team-a", "team-b"}
		return "namespaces: [\"team-*\"], excludedNamespaces: [\"*-c\"]", ""
	case 3:
		mark = fmt.Sprintf("mark-%d: \"no\"", i)
		excluded := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(*some, n) })
		return fmt.Sprintf("namespaces: %s, namespaceSelector: {matchExpressions: [{key: mark-%d, operator: Exists}]}", list(append(excluded, *some...)), i), mark
	default:
		return "namespaces: " + list(*some), ""
	}
}

// generatePlacement returns a location and the parameters that place pods on a pool.
func (g generator) generatePlacement(key, pool string) (location, parameters string) {
	term := "[{matchExpressions: [{key: " + key + ", operator: In, values: [" + pool + "]}]}]"
	switch spec := pickOne(g, "spec.", "spec.template.spec."); g.IntN(6) {
	case 0:
		return spec + "nodeSelector", "{assign: {value: {" + key + ": " + pool + "}}}"
	case 1:
		return spec + `nodeSelector."` + key + `"`, "{assign: {value: " + pool + "}}"
	case 2:
		return spec + `nodeSelector."karpenter.sh/nodepool"`, "{assign: {value: " + pool + "}}"
	case 3:
		return spec + required, "{assign: {value: " + term + "}}"
	case 4:
		return spec + "affinity.nodeAffinity", "{assign: {value: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " + term + "}}}}"
	default:
		return spec + "tolerations", "{values: {fromList: [{key: " + key + ", value: " + pool + ", effect: NoSchedule}]}}"
	}
}
