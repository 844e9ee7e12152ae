package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/test/sandbox"
)

const (
	// chart is the chart's directory relative to the repository's root, as in the README.
	chart = "charts/croft"
	// chartImage is an image that no test pulls.
	chartImage = "registry.example.org/croft:test"
)

// chartImageValues sets the image to chartImage.
var chartImageValues = []string{"--set", "image.repository=registry.example.org/croft", "--set", "image.tag=test"}

// runHelm runs Helm in the repository's root, with a home directory of its own.
func runHelm(t testing.TB, env []string, args ...string) outcome {
	t.Helper()
	binary, err := sandbox.FindTool("helm")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "KUBECONFIG=/dev/null")
	cmd.Env = append(cmd.Env, env...)
	return runCommand(t, cmd, "")
}

// renderChart returns the chart's objects as `helm template` renders them, with the CRDs and
// without hooks.
func renderChart(t testing.TB, args ...string) string {
	t.Helper()
	args = append(append([]string{"template", "croft", chart, "--include-crds", "--no-hooks"}, chartImageValues...), args...)
	return runHelm(t, nil, args...).expectExit(t, 0).stdout
}

// TestChartIsInstall fails if Helm writes other objects than `croft install`, or if a
// croft.yaml that is given to Helm as values declares something else than `croft apply` does.
func TestChartIsInstall(t *testing.T) {
	sandbox.Thorough(t) // `make generated` compares the chart's sources
	croft := func(t *testing.T, input string, args ...string) string {
		t.Helper()
		return runCommand(t, exec.CommandContext(t.Context(), findCroftBinary(t), args...), input).expectExit(t, 0).stdout
	}
	authentication := filepath.Join(t.TempDir(), "authentication.yaml")
	content := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n" +
		"- issuer: {url: https://idp.example.org, audiences: [croft]}\n  claimMappings: {username: {claim: sub, prefix: \"oidc:\"}}\n"
	if err := os.WriteFile(authentication, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	roles := writeTempFile(t, `{platform: {clusterName: demo, nodeClass: {kwok: {}}, roles: {deployer: {rules: [{apiGroups: [apps], resources: [deployments], verbs: [get]}]}}}}`)
	secrets := writeTempFile(t, `{platform: {clusterName: demo, nodeClass: {kwok: {}}, tenantDefaults: {secrets: {registry: {from: credentials}, ca: {}}}}, `+
		`pools: {apps: {}}, tenants: {shop: {pool: apps, secrets: {registry: {from: shop-credentials}}}, bank: {pool: apps}}}`)
	for name, same := range map[string]struct{ install, template []string }{
		"an image alone": {},
		"proxy":          {[]string{"--authentication-config", authentication}, []string{"--set-file", "proxy.authenticationConfig=" + authentication}},
		"dashboard":      {[]string{"--dashboard"}, []string{"--set", "dashboard.enabled=true"}},
		"dashboard, OpenID": {
			[]string{"--dashboard", "--dashboard-arg=--public-url=https://dashboard.example.org", "--dashboard-arg=--token-login=false", "--dashboard-egress-port=6443,5556"},
			[]string{"--set", "dashboard.enabled=true,dashboard.args={--public-url=https://dashboard.example.org,--token-login=false},dashboard.egressPorts={6443,5556}"},
		},
		"ledger": {[]string{"--ledger"}, []string{"--set", "cost.enabled=true"}},
		"ledger, prices": {
			[]string{"--ledger", "--ledger-arg=--prices=/etc/croft/ledger/prices.yaml", "--ledger-storage=5Gi", "--ledger-storage-class=fast"},
			[]string{"--set", "cost.enabled=true,cost.args={--prices=/etc/croft/ledger/prices.yaml},cost.storage.size=5Gi,cost.storage.className=fast"},
		},
		"ledger, proxy": {
			[]string{"--ledger", "--authentication-config", authentication, "--proxy-ledger", "--ledger-arg=--log-level=debug"},
			[]string{"--set-file", "proxy.authenticationConfig=" + authentication, "--set", "cost.enabled=true,proxy.ledger=true,cost.args={--log-level=debug}"},
		},
		"agent":          {[]string{"--agent"}, []string{"--set", "agent.enabled=true"}},
		"agent, journal": {[]string{"--agent", "--agent-journal"}, []string{"--set", "agent.enabled=true,agent.journal=true"}},
		"no Secrets":     {[]string{"--copy-secrets"}, []string{"--set", "copySecrets.enabled=true"}},
		"Secrets": {
			[]string{"--copy-secrets", "--secret=registry=credentials", "--secret=ca,registry=shop-credentials", "--secret=api-key=api"},
			[]string{"-f", secrets, "--set", "copySecrets.enabled=true,copySecrets.names.api-key=api"},
		},
		"verify":    {[]string{"--verify-schedule", "17 3 * * *"}, []string{"--set", "verify.schedule=17 3 * * *"}},
		"own roles": {[]string{"--role", "deployer,porter"}, []string{"-f", roles, "--set", "operator.roles={porter,deployer}"}},
	} {
		t.Run("install, "+name, func(t *testing.T) {
			installed := parseChartObjects(t, croft(t, "", append([]string{"install", "--export", "--image", chartImage}, same.install...)...))
			templated := parseChartObjects(t, renderChart(t, same.template...))
			for id, o := range installed {
				// The operator writes these when a Platform exists.
				if _, ok := o.GetLabels()[v1alpha1.WallLabel]; ok {
					delete(installed, id)
				}
			}
			for id, o := range templated {
				if o.GroupVersionKind().Group == v1alpha1.GroupVersion.Group {
					delete(templated, id)
				}
			}
			if len(installed) < 15 {
				t.Fatalf("croft install exports only %d objects", len(installed))
			}
			if diff := cmp.Diff(installed, templated); diff != "" {
				t.Errorf("croft install (-) and helm template (+):\n%s", diff)
			}
		})
	}
	for _, file := range []string{"two-tenants.yaml", "platform.yaml", "aws.yaml", "calico.yaml"} {
		t.Run("render, "+file, func(t *testing.T) {
			var declared strings.Builder
			for _, o := range parseChartObjects(t, renderChart(t, "-f", getExamplePath(file))) {
				if o.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
					continue
				}
				text, err := yaml.Marshal(o.Object)
				if err != nil {
					t.Fatal(err)
				}
				declared.WriteString("---\n" + string(text))
			}
			want, got := croft(t, "", "render", "-f", getExamplePath(file)), croft(t, declared.String(), "render", "-f", "-")
			if diff := cmp.Diff(parseChartObjects(t, want), parseChartObjects(t, got)); diff != "" {
				t.Errorf("croft render of the file (-) and of what Helm makes of it (+):\n%s", diff)
			}
		})
	}
}

// parseChartObjects returns the objects of a stream by kind, namespace and name, without the fields
// that only Helm reads.
func parseChartObjects(t testing.TB, stream string) map[string]*unstructured.Unstructured {
	t.Helper()
	documents, problems := document.Read("", []byte(stream))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, document := range documents {
		o := &unstructured.Unstructured{Object: document.Content}
		id := o.GroupVersionKind().String() + " " + o.GetNamespace() + "/" + o.GetName()
		if all[id] != nil {
			t.Errorf("%s is there twice", id)
		}
		annotations := o.GetAnnotations()
		delete(annotations, "helm.sh/resource-policy")
		if len(annotations) == 0 {
			annotations = nil
		}
		o.SetAnnotations(annotations)
		all[id] = o
	}
	return all
}

// writeParentChart returns the path of a chart with croft's chart as an optional dependency.
func writeParentChart(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "charts", "croft"), os.DirFS(filepath.Join("..", "..", "..", chart))); err != nil {
		t.Fatal(err)
	}
	content := "apiVersion: v2\nname: platform\nversion: 1.0.0\n" +
		"dependencies: [{name: croft, version: \">=0.0.0-0\", condition: croft.enabled, tags: [platform]}]\n"
	if err := os.WriteFile(filepath.Join(dir, "Chart.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestChartValues fails if Helm accepts values that have no effect, if its message does not
// name them, or if the operator's values have no effect.
func TestChartValues(t *testing.T) {
	sandbox.Thorough(t) // it needs bin/helm
	for _, file := range []string{"two-tenants.yaml", "platform.yaml", "aws.yaml", "calico.yaml"} {
		lint := runHelm(t, nil, append([]string{"lint", "--strict", chart, "-f", getExamplePath(file)}, chartImageValues...)...)
		if lint.status != 0 || !strings.Contains(lint.stdout+lint.stderr, "0 chart(s) failed") {
			t.Errorf("with %s: %s", file, lint)
		}
	}
	platform := "platform: {clusterName: demo, nodeClass: {kwok: {}}}\n"
	for values, message := range map[string]string{
		"tenats: {shop: {pool: apps}}":               "tenats",
		"tenants: {shop: {poool: apps}}":             "poool",
		"tenants: {shop: {pool: 7}}":                 "/tenants/shop/pool",
		"pools: {apps: {instances: {types: [m5]}}}":  "types",
		"pools: {apps: {limits: {cpu: 1.5}}}":        "/pools/apps/limits/cpu",
		"platform: {clustername: demo}":              "clustername",
		"platform: {clusterName: demo}":              "nodeClass",
		"platform: {placement: Kyverno}":             "/platform/placement",
		"operator: {replica: 3}":                     "replica",
		"operator: {replicas: two}":                  "/operator/replicas",
		"dashboard: {oidc: {issuerURL: a}}":          "oidc",
		"dashboard: {egressPorts: [https]}":          "/dashboard/egressPorts",
		"cost: {storage: {class: fast}}":             "class",
		platform + "secondaryNetworks: {a: {b: {}}}": "secondaryNetworks",
	} {
		refused := runHelm(t, nil, append([]string{"template", "croft", chart, "-f", writeTempFile(t, values)}, chartImageValues...)...)
		if refused.status == 0 || !strings.Contains(refused.stderr, message) {
			t.Errorf("%s: want it refused, with %q: exit status %d: %s", values, message, refused.status, refused.stderr)
		}
	}
	for _, values := range []string{"croft: {enabled: true}", "global: {team: x}", "croft: {global: {team: x}}", "tags: {platform: true}"} {
		parent := writeParentChart(t)
		file := writeTempFile(t, values)
		made := runHelm(t, nil, "template", "platform", parent, "-f", file, "--set", "croft.image.repository=registry.example.org/croft", "--set", "croft.platform.clusterName=demo", "--set-json", "croft.platform.nodeClass={\"kwok\":{}}")
		if made.status != 0 || !strings.Contains(made.stdout, "kind: Platform") {
			t.Errorf("as a dependency, with %s: %s", values, made)
		}
	}
	if refused := runHelm(t, nil, "template", "croft", chart); refused.status == 0 || !strings.Contains(refused.stderr, "image.repository: no image") {
		t.Errorf("without an image: %s", refused)
	}
	made := renderChart(t, "-f", writeTempFile(t, `
image: {digest: "sha256:01", pullPolicy: Always, pullSecrets: [{name: registry}]}
operator:
  replicas: 3
  resources: {requests: {cpu: 7m}}
  priorityClassName: ""
  podAnnotations: {example.org/a: b}
  nodeSelector: {example.org/c: d}
  tolerations: [{key: CriticalAddonsOnly, operator: Exists}]
`))
	deployment := parseChartObjects(t, made)["apps/v1, Kind=Deployment croft-system/croft"]
	want := map[string]any{}
	if err := yaml.Unmarshal([]byte(`
replicas: 3
annotations: {example.org/a: b}
nodeSelector: {example.org/c: d}
tolerations: [{key: CriticalAddonsOnly, operator: Exists}]
imagePullSecrets: [{name: registry}]
image: registry.example.org/croft@sha256:01
imagePullPolicy: Always
resources: {requests: {cpu: 7m, memory: 128Mi}, limits: {memory: 1Gi}}
`), &want); err != nil {
		t.Fatal(err)
	}
	spec := deployment.Object["spec"].(map[string]any)
	pods := spec["template"].(map[string]any)
	pod := pods["spec"].(map[string]any)
	container := pod["containers"].([]any)[0].(map[string]any)
	got := map[string]any{"replicas": float64(spec["replicas"].(int64)), "annotations": pods["metadata"].(map[string]any)["annotations"]}
	for from, fields := range map[*map[string]any][]string{
		&pod:       {"nodeSelector", "tolerations", "imagePullSecrets", "priorityClassName"},
		&container: {"image", "imagePullPolicy", "resources"},
	} {
		for _, field := range fields {
			if value, ok := (*from)[field]; ok {
				got[field] = value
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Deployment (-want +got):\n%s", diff)
	}
	inside := parseChartObjects(t, renderChart(t, "--namespace", "croft-system"))
	if _, has := inside["/v1, Kind=Namespace /croft-system"]; has {
		t.Error("a release in croft-system has the namespace, which is there before it, as an object")
	}
}
