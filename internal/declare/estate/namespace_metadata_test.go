package estate_test

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/addons"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// selfServiceOfOne ends the field namespace of parseWithMetadata, and lets the tenant request a namespace.
const selfServiceOfOne = "}, selfService: {namespaces: 1"

// parseWithMetadata parses an estate whose defaults and whose tenant shop have the fields.
func parseWithMetadata(defaults, own string) (*manifest.Declaration, document.Problems) {
	return manifest.Parse("croft.yaml", []byte(`
platform: {clusterName: demo, nodeClass: {kwok: {}}, tenantDefaults: {namespace: {`+defaults+`}}}
pools: {apps: {}}
tenants: {shop: {pool: apps, namespace: {`+own+`}}}
`))
}

// buildWithMetadata returns the tenant shop, or the problems.
func buildWithMetadata(t *testing.T, defaults, own string) (*estate.Tenant, string) {
	t.Helper()
	d, problems := parseWithMetadata(defaults, own)
	e, more := estate.Build(d)
	var lines []string
	for _, p := range append(problems, more...) {
		lines = append(lines, p.Error())
	}
	if e == nil || len(lines) > 0 {
		return nil, strings.Join(lines, "\n")
	}
	return e.FindTenant("shop"), ""
}

func TestNamespaceMetadata(t *testing.T) {
	type keys = map[string]string
	for name, test := range map[string]struct {
		defaults, own       string
		labels, annotations keys
	}{
		"none":                                   {"", "", nil, nil},
		"defaults":                               {"labels: {team: web}, annotations: {note: a b}", "", keys{"team": "web"}, keys{"note": "a b"}},
		"own":                                    {"", "labels: {team: web}, annotations: {note: a b}", keys{"team": "web"}, keys{"note": "a b"}},
		"merged by key":                          {"labels: {a: one, b: one}", "labels: {b: two, c: two}", keys{"a": "one", "b": "two", "c": "two"}, nil},
		"an empty value":                         {"labels: {a: one}, annotations: {a: one}", `labels: {a: ""}, annotations: {a: ""}`, keys{"a": ""}, keys{"a": ""}},
		"a label and an annotation with one key": {"labels: {a: one}", "annotations: {a: two}", keys{"a": "one"}, keys{"a": "two"}},
		"the tenant's name":                      {"labels: {headlamp.dev/project-id: $(tenant)}", "annotations: {url: https://$(tenant).example.org/$(tenant)}", keys{"headlamp.dev/project-id": "shop"}, keys{"url": "https://shop.example.org/shop"}},
		"other text with a dollar":               {"", "annotations: {note: costs $5 (net)}", nil, keys{"note": "costs $5 (net)"}},
		"keys that look like reserved ones":      {"", "labels: {mycroft.dev/a: x, example.org/istio-injection: x, istio: x}", keys{"mycroft.dev/a": "x", "example.org/istio-injection": "x", "istio": "x"}, nil},
		"as long as possible":                    {"", "labels: {a: " + strings.Repeat("a", 63) + "}, annotations: {a: " + strings.Repeat("a", 1024) + "}", keys{"a": strings.Repeat("a", 63)}, keys{"a": strings.Repeat("a", 1024)}},
	} {
		t.Run(name, func(t *testing.T) {
			tenant, problems := buildWithMetadata(t, test.defaults, test.own)
			if problems != "" {
				t.Fatal(problems)
			}
			if diff := gocmp.Diff([]keys{test.labels, test.annotations}, []keys{tenant.NamespaceLabels, tenant.NamespaceAnnotations}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInvalidNamespaceMetadata(t *testing.T) {
	const reserved = "; remove it, or choose a key of your own, such as example.org/team"
	for name, test := range map[string]struct{ defaults, own, want string }{
		"Pod Security": {"", "labels: {pod-security.kubernetes.io/enforce: privileged}",
			`tenants.shop.namespace.labels["pod-security.kubernetes.io/enforce"]: pod-security.kubernetes.io/enforce sets the Pod Security level: set podSecurity instead` + reserved},
		"croft":                       {"", "annotations: {croft.dev/rules.pools: all}", `tenants.shop.namespace.annotations["croft.dev/rules.pools"]: croft.dev/rules.pools belongs to croft`},
		"croft's tags":                {"", "labels: {tags.croft.dev/a: b}", "belongs to croft"},
		"Kubernetes":                  {"labels: {kubernetes.io/metadata.name: a}", "", `platform.tenantDefaults.namespace.labels["kubernetes.io/metadata.name"]: kubernetes.io/metadata.name belongs to Kubernetes`},
		"who manages it":              {"", "labels: {app.kubernetes.io/managed-by: Helm}", "belongs to Kubernetes"},
		"a node selector":             {"annotations: {scheduler.alpha.kubernetes.io/node-selector: pool=more}", "", "belongs to Kubernetes"},
		"a k8s.io key":                {"", "annotations: {x.k8s.io/a: b}", "belongs to Kubernetes"},
		"an x-k8s.io key":             {"", "annotations: {hnc.x-k8s.io/managed-by: b}", "belongs to Kubernetes"},
		"Istio":                       {"labels: {istio-injection: enabled}", "", "platform.tenantDefaults.namespace.labels.istio-injection: istio-injection belongs to a service mesh"},
		"Istio's revision":            {"", "labels: {istio.io/rev: canary}", "belongs to a service mesh"},
		"Istio's network":             {"", "labels: {topology.istio.io/network: a}", "belongs to a service mesh"},
		"Linkerd":                     {"", "annotations: {linkerd.io/inject: enabled}", "belongs to a service mesh"},
		"Kuma":                        {"", "labels: {kuma.io/sidecar-injection: enabled}", "belongs to a service mesh"},
		"Cilium":                      {"", "annotations: {network.cilium.io/no-track-port: '53'}", "belongs to a service mesh"},
		"Gatekeeper":                  {"", "labels: {admission.gatekeeper.sh/ignore: 'true'}", "belongs to a policy engine"},
		"Sigstore":                    {"", "labels: {policy.sigstore.dev/include: 'false'}", "belongs to a policy engine"},
		"OpenShift":                   {"", "annotations: {openshift.io/node-selector: ''}", "belongs to a tool that gives rights"},
		"Rancher":                     {"", "annotations: {field.cattle.io/projectId: a}", "belongs to a tool that gives rights"},
		"Calico":                      {"", "annotations: {cni.projectcalico.org/ipv4pools: '[]'}", "belongs to a tool that gives rights"},
		"an add-on that gives rights": {"", "annotations: {iam.amazonaws.com/permitted: .*}", `iam.amazonaws.com/permitted belongs to an add-on of the catalogue (kube2iam, kiam, see docs/reference/addons.md)` + reserved},
		"an add-on that is harmless":  {"", "labels: {goldilocks.fairwinds.com/enabled: 'true'}", "belongs to an add-on of the catalogue"},
		"a label of an add-on":        {"", "labels: {aadpodidbinding: a}", "belongs to an add-on of the catalogue (aad-pod-identity"},

		"a key with a blank":                    {"", "labels: {my team: a}", `tenants.shop.namespace.labels["my team"]: "my team" is not a key of a label or an annotation; write one such as team or example.org/team`},
		"an empty key":                          {"", "annotations: {'': a}", "is not a key of a label or an annotation"},
		"a key with two slashes":                {"", "labels: {a.org/b/c: a}", "is not a key of a label or an annotation"},
		"a long key":                            {"", "labels: {" + strings.Repeat("a", 64) + ": a}", "is not a key of a label or an annotation"},
		"a value with a blank":                  {"labels: {team: a b}", "", `platform.tenantDefaults.namespace.labels.team: "a b" is not a valid value of a label; write at most 63`},
		"a long value":                          {"", "labels: {team: " + strings.Repeat("a", 64) + "}", "is not a valid value of a label"},
		"a long annotation":                     {"", "annotations: {note: " + strings.Repeat("a", 1025) + "}", "tenants.shop.namespace.annotations.note: the value has 1025 bytes; write at most 1024"},
		"an unknown parameter":                  {"", "labels: {team: $(namespace)}", "tenants.shop.namespace.labels.team: $(namespace) is not a parameter; the only one is $(tenant)"},
		"an unknown parameter in an annotation": {"annotations: {team: a $(costCode)}", "", "$(costCode) is not a parameter"},
		"a default that is too long with the tenant's name": {"labels: {team: " + strings.Repeat("a", 60) + "$(tenant)}", "",
			"tenants.shop.namespace.labels: with the name of this tenant, the value of team in tenantDefaults is longer than 63 characters; set a shorter value here"},
		"a default annotation that is too long with the tenant's name": {"annotations: {team: " + strings.Repeat("a", 1021) + "$(tenant)}", "",
			"tenants.shop.namespace.annotations: with the name of this tenant, the value of team in tenantDefaults is longer than 1024 characters"},
		"no map": {"", "labels: [a]", "tenants.shop.namespace.labels"},

		"a reserved key to choose":    {"", "choose: {istio-injection: [enabled]}", "tenants.shop.namespace.choose.istio-injection: istio-injection belongs to a service mesh"},
		"a catalogue's key to choose": {"choose: {linkerd.io/inject: [enabled]}", "", `platform.tenantDefaults.namespace.choose["linkerd.io/inject"]: linkerd.io/inject belongs to a service mesh`},
		"Pod Security to choose":      {"", "choose: {pod-security.kubernetes.io/enforce: [privileged]}", "sets the Pod Security level"},
		"an invalid value to choose":  {"", "choose: {env: [dev, a b]}", `tenants.shop.namespace.choose.env[1]: "a b" is not a valid value of a label`},
		"a parameter to choose":       {"", "choose: {env: [$(tenant)]}", `tenants.shop.namespace.choose.env[0]: "$(tenant)" is not a valid value of a label`},
		"one value to choose":         {"", "choose: {env: dev}", "tenants.shop.namespace.choose.env"},
		"a value twice":               {"", "choose: {env: [dev, dev]}", "tenants.shop.namespace.choose.env"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, problems := buildWithMetadata(t, test.defaults, test.own); !strings.Contains(problems, test.want) {
				t.Errorf("got %q", problems)
			}
		})
	}
	if _, problems := buildWithMetadata(t, "labels: {team: "+strings.Repeat("a", 60)+"$(tenant)}", "labels: {team: a}"); problems != "" {
		t.Error("a tenant with a value of its own:", problems)
	}
}

// TestReservedKeysOfCatalogue fails if croft.yaml may set a key that an add-on reads.
func TestReservedKeysOfCatalogue(t *testing.T) {
	for _, a := range addons.All() {
		for _, prefix := range a.Prefixes {
			for _, key := range []string{strings.TrimPrefix(prefix, "*.") + "/any", strings.Replace(prefix, "*.", "sub.", 1) + "/any"} {
				if estate.ExplainReservedKey(key) == "" {
					t.Errorf("%s: %s is allowed", a.Name, key)
				}
			}
		}
		for _, names := range a.Names {
			for _, key := range names.Names {
				if len(a.Prefixes) > 0 {
					key = strings.TrimPrefix(a.Prefixes[0], "*.") + "/" + key
				}
				switch {
				case strings.HasSuffix(key, "."):
					key += "a"
				case strings.Contains(key, "/."):
					key = strings.Replace(key, "/.", "/a.", 1)
				}
				if estate.ExplainReservedKey(key) == "" {
					t.Errorf("%s: %s is allowed", a.Name, key)
				}
			}
		}
	}
	for _, l := range addons.Labels(addons.Every) {
		if estate.ExplainReservedKey(l.Key) == "" {
			t.Errorf("%s: %s is allowed", l.Addon, l.Key)
		}
	}
}

// TestChosenLabels requires that TenantNamespaces set the labels that the tenant may choose, with these
// values, and nothing else.
func TestChosenLabels(t *testing.T) {
	type keys = map[string]string
	for name, test := range map[string]struct {
		defaults, own string
		labels        keys
		chosen        keys
		ignored       string
	}{
		"none":                         {"", "", keys{"env": "dev"}, nil, ""},
		"one of the list":              {"", "choose: {env: [dev, prod]}", keys{"env": "prod", "mine": "x"}, keys{"env": "prod"}, ""},
		"one of the platform's list":   {"choose: {env: [dev, prod]}", "", keys{"env": "dev"}, keys{"env": "dev"}, ""},
		"one of the tenant's own list": {"choose: {env: [dev, prod], tier: [a]}", "choose: {env: [test]}", keys{"env": "test", "tier": "a"}, keys{"env": "test", "tier": "a"}, ""},
		"one of the replaced list":     {"choose: {env: [dev, prod]}", "choose: {env: [test]}", keys{"env": "dev"}, nil, "the label env=dev has no effect: choose one of [test]"},
		"another value":                {"", "choose: {env: [dev, prod]}", keys{"env": "DEV"}, nil, "the label env=DEV has no effect: choose one of [dev, prod]"},
		"an empty value":               {"", "choose: {env: [dev]}", keys{"env": ""}, nil, "the label env= has no effect: choose one of [dev]"},
		"an empty value of the list":   {"", "choose: {env: ['', dev]}", keys{"env": ""}, keys{"env": ""}, ""},
		"an empty list":                {"choose: {env: [dev]}", "choose: {env: []}", keys{"env": "dev"}, nil, "the label env=dev has no effect: choose one of []"},
		"no choice":                    {"", "choose: {env: [dev]}", nil, nil, ""},
		"reserved keys":                {"", "choose: {env: [dev]}", keys{"pod-security.kubernetes.io/enforce": "privileged", "croft.dev/tenant": "bank", "team": "x"}, nil, ""},
		"a label of the platform":      {"labels: {env: prod}", "choose: {env: [dev]}", keys{"env": "dev"}, keys{"env": "dev"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, problems := parseWithMetadata(test.defaults, test.own+selfServiceOfOne)
			request := v1alpha1.TenantNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-new", Labels: test.labels}}
			request.Status.Tenant = "shop"
			other := v1alpha1.TenantNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-asked", Labels: keys{"env": "dev"}}}
			d.Requests = append(d.Requests, request, other)
			e, more := estate.Build(d)
			if len(problems)+len(more) > 0 {
				t.Fatal(problems, more)
			}
			shop := e.FindTenant("shop")
			want := map[string]keys{"shop-new": test.chosen}
			if test.chosen == nil {
				want = nil
			}
			if diff := gocmp.Diff(want, shop.ChosenLabels); diff != "" {
				t.Error(diff)
			}
			if got := estate.ExplainIgnoredLabels(shop, test.labels); got != test.ignored {
				t.Errorf("got %q", got)
			}
		})
	}
}
