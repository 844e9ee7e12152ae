package trial_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/prove/trial"
)

const workloads = "../../test/e2e/testdata/workloads"

func readEstate(t testing.TB, file string) *estate.Estate {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d, problems := manifest.Parse(file, data)
	e, more := estate.Build(d)
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	return e
}

func readManifests(t testing.TB, file string) []trial.Manifest {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := trial.ReadManifests(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func runTrial(t testing.TB, by *trial.Trial, manifests []trial.Manifest) *trial.Report {
	t.Helper()
	report, err := by.Try(t.Context(), manifests)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// newTrial returns a trial by the operator of a team of the workloads.
func newTrial(t testing.TB, tenant string) *trial.Trial {
	t.Helper()
	e := readEstate(t, filepath.Join(workloads, "croft.yaml"))
	by, err := trial.New(e, e.FindTenant(tenant), trial.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return by
}

// TestWorkloads tries workloads of real teams. TestWorkloads of package e2e runs the same in a
// cluster.
func TestWorkloads(t *testing.T) {
	tried := 0
	e := readEstate(t, filepath.Join(workloads, "croft.yaml"))
	for _, tenant := range e.Tenants {
		files, err := filepath.Glob(filepath.Join(workloads, string(tenant.PodSecurity), "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		team, err := trial.New(e, tenant, trial.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			_, account, own := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "@")
			t.Run(filepath.Base(file), func(t *testing.T) {
				by := team
				if own {
					by = team.WithServiceAccount(account)
				} else {
					tried++
				}
				for _, r := range runTrial(t, by, readManifests(t, file)).Results {
					if r.Verdict != trial.Admitted && r.Verdict != trial.Changed {
						t.Errorf("%s:%d: %s %s is %s: %v%v", r.File, r.Line, r.Object, r.CreatedFrom, r.Verdict, r.Refusals, r.Warnings)
					}
				}
			})
		}
	}
	if tried < 45 {
		t.Errorf("%d workloads were tried, and there are 45 at least", tried)
	}
}

const several = `
# Comments before an object are not part of it.
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: nginx}]
---
apiVersion: v1
kind: Service
metadata: {name: out}
spec:
  ports: [{port: 80}]
  type: NodePort
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere, namespace: kube-system}}
- apiVersion: networking.k8s.io/v1
  kind: Ingress
  metadata:
    name: web
    annotations:
      example.org/harmless: "yes"
  spec:
    rules:
    - host: shop.tenants.example.org
    - host: other.example.org
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
--- # templates
kind: CronJob
apiVersion: batch/v1
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: good
            image: busybox
          - name: bad
            image: busybox
            securityContext:
              privileged: true
          nodeName: node-1
--- {apiVersion: v1, kind: Secret, metadata: {name: token}, type: kubernetes.io/service-account-token}
`

func TestTry(t *testing.T) {
	read, err := trial.ReadManifests("web.yaml", []byte(several))
	if err != nil {
		t.Fatal(err)
	}
	all := runTrial(t, newTrial(t, "shop"), read).Results
	type want struct {
		object, of string
		line       int
		verdict    trial.Verdict
		by, rule   string
		at         int
	}
	wants := []want{
		{"Deployment/web", "", 3, trial.Admitted, "", "", 0},
		{"Pod", "Deployment/web", 8, trial.Changed, "", "", 0},
		{"Service/out", "", 13, trial.Refused, "croft-services", "service-type", 18},
		{"ConfigMap/settings", "", 23, trial.Admitted, "", "", 0},
		{"ConfigMap/elsewhere", "", 24, trial.Refused, "RBAC", "", 24},
		{"Ingress/web", "", 25, trial.Refused, "croft-ingresses", "hosts", 34},
		{"CronJob/nightly", "", 37, trial.Warned, "PodSecurity", "", 53},
		{"Pod", "CronJob/nightly", 44, trial.Refused, "PodSecurity", "", 53},
		{"Secret/token", "", 55, trial.Refused, "croft-accounts", "token-secret", 55},
	}
	if len(all) != len(wants) {
		t.Fatalf("%d results: %+v", len(all), all)
	}
	for i, w := range wants {
		r := all[i]
		got := want{r.Object, r.CreatedFrom, r.Line, r.Verdict, "", "", 0}
		for _, reason := range slices.Concat(r.Refusals, r.Warnings)[:min(1, len(r.Refusals)+len(r.Warnings))] {
			got.by, got.rule, got.at = reason.Source, reason.Rule, reason.Line
		}
		if got != w {
			t.Errorf("result %d is %+v, want %+v: %+v%+v", i, got, w, r.Refusals, r.Warnings)
		}
	}
	if !slices.ContainsFunc(all[1].Changes, func(c trial.Change) bool { return strings.HasPrefix(c.Path, "spec.nodeSelector") }) {
		t.Errorf("the pod is not placed: %+v", all[1].Changes)
	}
	if !slices.ContainsFunc(all[7].Refusals, func(r trial.Reason) bool { return r.Rule == "node-name" && r.Line == 54 }) {
		t.Errorf("the line of spec.nodeName is not named: %+v", all[7].Refusals)
	}
}

// TestSeveralBrokenRules expects a message for each of several rules that an object breaks, at the line of its field: the
// API server reports only the first one.
func TestSeveralBrokenRules(t *testing.T) {
	for object, want := range map[string]map[string]int{
		"apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  nodeName: node-1\n  tolerations: [{operator: Exists}]\n  containers: [{name: web, image: nginx}]\n": {
			"node-name": 5, "tolerations": 6},
		"apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  type: NodePort\n  externalIPs: [192.0.2.1]\n  ports: [{port: 80}]\n": {
			"service-type": 5, "external-ips": 6},
		"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec:\n  defaultBackend: {service: {name: web, port: {number: 80}}}\n  rules: [{host: other.example.org}]\n": {
			"default-backend": 5, "hosts": 6},
	} {
		read, err := trial.ReadManifests("x.yaml", []byte(object))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, r := range runTrial(t, newTrial(t, "shop"), read).Results[0].Refusals {
			got[r.Rule] = r.Line
		}
		if !maps.Equal(got, want) {
			t.Errorf("rules by line: %v, want %v of\n%s", got, want, object)
		}
	}
}

// TestDefaultClasses expects the classes among the changes, and no fields that the API server computes from them.
func TestDefaultClasses(t *testing.T) {
	e := readEstate(t, filepath.Join(workloads, "croft.yaml"))
	shop := e.FindTenant("shop")
	may := &shop.Allowances
	may.PriorityClasses, may.PriorityClass = []string{"batch"}, &v1alpha1.PodPriorityClass{Default: "batch"}
	may.RuntimeClasses, may.RuntimeClass = []string{"gvisor"}, &v1alpha1.PodRuntimeClass{Default: "gvisor"}
	by, err := trial.New(e, shop, trial.Options{})
	if err != nil {
		t.Fatal(err)
	}
	read, err := trial.ReadManifests("web.yaml", []byte(several))
	if err != nil {
		t.Fatal(err)
	}
	changes := map[string]string{}
	for _, c := range runTrial(t, by, read).Results[1].Changes {
		changes[c.Path] = c.After
	}
	if changes["spec.priorityClassName"] != "batch" || changes["spec.runtimeClassName"] != "gvisor" {
		t.Errorf("the pod has no default classes: %v", changes)
	}
	for _, path := range []string{"spec.priority", "spec.preemptionPolicy"} {
		if _, ok := changes[path]; ok {
			t.Errorf("%s is a change: %v", path, changes)
		}
	}
}

// TestTokensOnRequest expects pods to be refused whose service account mounts a token that they do not request.
func TestTokensOnRequest(t *testing.T) {
	e := readEstate(t, filepath.Join(workloads, "croft.yaml"))
	shop := e.FindTenant("shop")
	shop.Allowances.ServiceAccountToken = "OnRequest"
	by, err := trial.New(e, shop, trial.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const accounts = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: quiet}, automountServiceAccountToken: false}\n---\n" +
		// The later manifest of an account counts.
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: loud}, automountServiceAccountToken: false}\n---\n" +
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: loud}}\n---\n"
	for spec, want := range map[string]string{
		"":                                    "service-account-token",
		"serviceAccountName: loud":            "service-account-token",
		"serviceAccountName: quiet":           "",
		"automountServiceAccountToken: true":  "",
		"automountServiceAccountToken: false": "",
		"serviceAccountName: quiet, automountServiceAccountToken: true": "",
	} {
		read, err := trial.ReadManifests("x.yaml", []byte(accounts+"{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, image: nginx}], "+spec+"}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		report := runTrial(t, by, read)
		got := ""
		for _, r := range report.Results[3].Refusals {
			got += r.Rule
		}
		if got != want {
			t.Errorf("{%s} is refused by %q, want %q", spec, got, want)
		}
		if unknown := strings.Join(report.Unknown, "\n"); strings.Count(unknown, "decline their token") != 1 {
			t.Errorf("the unknown facts are:\n%s", unknown)
		}
	}
}

// TestUnknownIsListedOnce expects each limit of the trial to be listed once, for any number of
// objects.
func TestUnknownIsListedOnce(t *testing.T) {
	const certificate = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: %d}\n---\n"
	read, err := trial.ReadManifests("x.yaml", []byte(strings.ReplaceAll(certificate, "%d", "a")+strings.ReplaceAll(certificate, "%d", "b")))
	if err != nil {
		t.Fatal(err)
	}
	unknown := strings.Join(runTrial(t, newTrial(t, "shop"), read).Unknown, "\n")
	if strings.Count(unknown, "Certificate.cert-manager.io") != 1 || strings.Count(unknown, "quota") != 1 {
		t.Errorf("the unknown facts are:\n%s", unknown)
	}
}

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		"{\"apiVersion\": \"v1\",\n\"kind\": \"Pod\", \"metadata\": {\"name\": \"a\"}}\n\n{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"b\"}}": "1 a, 4 b",
		"{apiVersion: v1, kind: Pod, metadata: {name: a}}\n--- {apiVersion: v1, kind: Pod, metadata: {name: b}}":                                                        "1 a, 2 b",
		"---\n# only a comment\n---\n---\n\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n":                                                                           "6 a",
		"apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n":                                                                   "4 a, 5 b",
		"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - {apiVersion: v1, kind: Pod, metadata: {name: a}}":                            "7 a",
		"apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}":                                                                                                       "1 ",
	} {
		all, err := trial.ReadManifests("x.yaml", []byte(text))
		var got []string
		for _, m := range all {
			got = append(got, fmt.Sprintf("%d %s", m.Line, m.Object.GetName()))
		}
		if names := strings.Join(got, ", "); err != nil || names != want {
			t.Errorf("%q: %s, %v, want %s", text, names, err, want)
		}
	}
}

// TestReadRefuses expects one message for invalid input, with the line of the error.
func TestReadRefuses(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\n"
	for text, want := range map[string]string{
		"a: [":                      "x.yaml:1: this is not YAML",
		"# nothing\n---\nkind: Pod": "x.yaml:3: this is not a Kubernetes object",
		pod + "metadata: {name: a}\n---\n" + pod + "metadata:\n  name: a\n bad": "x.yaml:8: this is not YAML",
		pod + "metadata: {name: {{ .Values.name }}}":                            "x.yaml:3: this is not YAML: ",
		"- a\n- b":                    "x.yaml:1: this is a list",
		"just text":                   "x.yaml:1: this is not a Kubernetes object: write apiVersion",
		pod + "spec: {}":              "x.yaml:1: Pod has no metadata.name",
		pod + "metadata:\n  name: 12": "x.yaml:4: Pod has no metadata.name, or its name is not a string",
		pod + "metadata: {name: a}\nspec:\n  nodeName: 7": "x.yaml:5: Pod/a: spec.nodeName: the type is number, and must be string",
		"apiVersion: v1\nkind: List\nitems:\n- a":         "x.yaml:4: items[0] of the List is not an object",
		"{\"apiVersion\": \"v1\",\n\"kind\": }":           "x.yaml:1: this is not a Kubernetes object",
	} {
		_, err := trial.ReadManifests("x.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestResources fails if a pod is accepted that exceeds a LimitRange, a quota or the pool's
// nodes.
func TestResources(t *testing.T) {
	const base = "platform: {clusterName: demo, nodeClass: {kwok: {}}}\npools: {apps: {instances: {capacityTypes: [on-demand], instanceTypes: [m5.large]}}}\n"
	pod := func(spec string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {" + spec + "}\n"
	}
	deployment := func(spec string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {" + spec + "}}}\n"
	}
	for name, c := range map[string]struct {
		tenant, manifest string
		verdict          trial.Verdict
		by, message      string
	}{
		"a quota of limits, none set": {"quota: {limits.cpu: 8, limits.memory: 16Gi}", pod("containers: [{name: a, image: nginx}]"),
			trial.Refused, "ResourceQuota", "must specify limits.cpu for: a; limits.memory for: a"},
		"by a Deployment's pods": {"quota: {limits.cpu: 8}", deployment("containers: [{name: a, image: nginx}]"),
			trial.Refused, "ResourceQuota", "must specify limits.cpu for: a"},
		"an init container alone lacks it": {"quota: {limits.cpu: 8}", pod("initContainers: [{name: i, image: nginx}], containers: [{name: a, image: nginx, resources: {limits: {cpu: 1}}}]"),
			trial.Refused, "ResourceQuota", "must specify limits.cpu for: i"},
		"limits by default": {"quota: {limits.cpu: 8}, limits: {default: {cpu: 1}}", pod("containers: [{name: a, image: nginx}]"), trial.Changed, "", ""},
		"more than the maximum": {"limits: {max: {cpu: 2}}", pod("containers: [{name: a, image: nginx, resources: {limits: {cpu: 3}}}]"),
			trial.Refused, "LimitRanger", "maximum cpu usage per Container is 2, but limit is 3"},
		"less than the minimum": {"limits: {min: {memory: 1Gi}}", pod("containers: [{name: a, image: nginx, resources: {requests: {memory: 10Mi}}}]"),
			trial.Refused, "LimitRanger", "minimum memory usage per Container is 1Gi, but request is 10Mi"},
		"no such instance type": {"", pod("nodeSelector: {node.kubernetes.io/instance-type: c5.large}, containers: [{name: a, image: nginx}]"),
			trial.Warned, "Karpenter", "nodes have [m5.large] in pool apps: the pod would stay Pending"},
		"no such instance type, by a Deployment's pods": {"", deployment("nodeSelector: {node.kubernetes.io/instance-type: c5.large}, containers: [{name: a, image: nginx}]"),
			trial.Warned, "Karpenter", "nodes have [m5.large]"},
		"a label that no node has": {"", pod("nodeSelector: {disk: ssd}, containers: [{name: a, image: nginx}]"), trial.Warned, "Karpenter", "no node has the label disk"},
	} {
		t.Run(name, func(t *testing.T) {
			d, problems := manifest.Parse("croft.yaml", []byte(base+"tenants: {shop: {pool: apps, access: [{group: devs, role: operator}], "+c.tenant+"}}\n"))
			e, more := estate.Build(d)
			if len(problems)+len(more) > 0 {
				t.Fatal(problems, more)
			}
			by, err := trial.New(e, e.FindTenant("shop"), trial.Options{})
			if err != nil {
				t.Fatal(err)
			}
			read, err := trial.ReadManifests("pod.yaml", []byte(c.manifest))
			if err != nil {
				t.Fatal(err)
			}
			results := runTrial(t, by, read).Results
			last := results[len(results)-1]
			if last.Verdict != c.verdict {
				t.Fatalf("%s, want %s: %v %v", last.Verdict, c.verdict, last.Refusals, last.Warnings)
			}
			if reasons := slices.Concat(last.Refusals, last.Warnings); c.by != "" &&
				!slices.ContainsFunc(reasons, func(r trial.Reason) bool { return r.Source == c.by && strings.Contains(r.Message, c.message) }) {
				t.Errorf("want %q by %s, got %v", c.message, c.by, reasons)
			}
		})
	}
}

// TestUnknownKinds fails if a kind that no role names is refused without an explanation.
func TestUnknownKinds(t *testing.T) {
	for kind, want := range map[string]string{
		"{apiVersion: apps/v1, kind: Deploymnet, metadata: {name: a}}":                       "there is no kind Deploymnet in apps/v1: correct apiVersion or kind",
		"{apiVersion: extensions/v1beta1, kind: Deployments, metadata: {name: a}}":           "there is no kind Deployments in extensions/v1beta1",
		"{apiVersion: kafka.strimzi.io/v1, kind: Kafka, metadata: {name: a}}":                "tenants may write kinds of add-ons that platform.addons names",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}": "",
	} {
		read, err := trial.ReadManifests("a.yaml", []byte(kind))
		if err != nil {
			t.Fatal(err)
		}
		results := runTrial(t, newTrial(t, "shop"), read).Results
		if len(results[0].Refusals) == 0 {
			t.Errorf("%s is %s", kind, results[0].Verdict)
			continue
		}
		message := results[0].Refusals[0].Message
		if want == "" && strings.Contains(message, "platform.addons") || !strings.Contains(message, want) {
			t.Errorf("%s: %s, want %q", kind, message, want)
		}
	}
}
