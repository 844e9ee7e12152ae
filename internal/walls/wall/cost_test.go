package wall_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

// Limits on the cost of policies, in the API server's units. The API server stops a policy at
// 10,000,000 and a single expression at 1,000,000.
const (
	// mostForLargest is the maximum cost for the largest object within all bounds, in a
	// tenant whose rules are as long as the API allows.
	mostForLargest = 5_000_000
	// mostForLong is the maximum extra cost of a long list over a short one.
	mostForLong = 1200
)

// entries is the number of entries that a bounded list gets in this test. It is greater than
// every bound.
const entries = 2500

// getUnboundedCount returns the number of entries that all other lists get: so many that an
// iteration costs more than mostForLong. The time to evaluate them grows with their number, so
// `make test` uses fewer.
func getUnboundedCount() int {
	if sandbox.All() {
		return entries
	}
	return 1300
}

// samples has an object of each kind that policies match, with every list and map of the
// kind. The objects of Kubernetes are filled in from their Go types.
var samples = map[string]any{
	"pods":                     &corev1.Pod{},
	"pods/ephemeralcontainers": &corev1.Pod{},
	"pods/resize":              &corev1.Pod{},
	"services":                 &corev1.Service{},
	"secrets":                  &corev1.Secret{},
	"configmaps":               &corev1.ConfigMap{},
	"endpoints":                &corev1.Endpoints{}, //nolint:staticcheck // tenants may try to write it
	"endpointslices":           &discoveryv1.EndpointSlice{},
	"namespaces":               &corev1.Namespace{},
	"namespaces/status":        &corev1.Namespace{},
	"namespaces/finalize":      &corev1.Namespace{},
	"persistentvolumeclaims":   &corev1.PersistentVolumeClaim{},
	"poddisruptionbudgets":     &policyv1.PodDisruptionBudget{},
	"ingresses":                &networkingv1.Ingress{},
	"networkpolicies":          &networkingv1.NetworkPolicy{},
	"rolebindings":             &rbacv1.RoleBinding{},
	"deployments":              &appsv1.Deployment{},
	"statefulsets":             &appsv1.StatefulSet{},
	"daemonsets":               &appsv1.DaemonSet{},
	"replicasets":              &appsv1.ReplicaSet{},
	"replicationcontrollers":   &corev1.ReplicationController{},
	"podtemplates":             &corev1.PodTemplate{},
	"jobs":                     &batchv1.Job{},
	"cronjobs":                 &batchv1.CronJob{},
	"resourcequotas":           &corev1.ResourceQuota{},
	"serviceaccounts":          &corev1.ServiceAccount{},
	"serviceaccounts/token":    &authenticationv1.TokenRequest{},
	"roles":                    &rbacv1.Role{},
	"events":                   &corev1.Event{},
	"horizontalpodautoscalers": &autoscalingv2.HorizontalPodAutoscaler{},
	"resourceclaims":           &resourcev1.ResourceClaim{},
	"resourceclaimtemplates":   &resourcev1.ResourceClaimTemplate{},
	"limitranges":              &corev1.LimitRange{},
	"tenantrules":              &v1alpha1.TenantRules{},
	"elevations":               &v1alpha1.Elevation{},
	"tenantnamespaces":         &v1alpha1.TenantNamespace{},
	"bindings":                 &corev1.Binding{},
	"pods/binding":             &corev1.Binding{},
	"pods/eviction":            &policyv1.Eviction{},
	"*":                        &corev1.ConfigMap{},
	"*/scale":                  &autoscalingv1.Scale{},
	"pods/*":                   &policyv1.Eviction{},
	"networkpolicies.crd.projectcalico.org": `{spec: {order: 100, tier: default, types: [Ingress], selector: all(),
		ingress: [{action: Allow, source: {nets: [10.0.0.0/8], notNets: [10.1.0.0/16], ports: [53]}, destination: {nets: [10.0.0.0/8], ports: [53]}}],
		egress: [{action: Allow, protocol: UDP, source: {nets: [10.0.0.0/8]}, destination: {nets: [0.0.0.0/0], notNets: [169.254.169.254/32], ports: [53]}, metadata: {annotations: {a: b}}}]}}`,
	"httproutes": `{spec: {hostnames: [h.shop.example.org], parentRefs: [{name: a}], rules: [{matches: [{headers: [{name: a}], queryParams: [{name: a}]}], filters: [{type: a}], backendRefs: [{name: a, filters: [{type: a}]}]}]}}`,
	"gateways": `{spec: {gatewayClassName: a, addresses: [{value: a}], listeners: [{name: a, hostname: h.shop.example.org,
		allowedRoutes: {kinds: [{kind: a}], namespaces: {from: Selector, selector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [a]}]}}},
		tls: {certificateRefs: [{name: a, namespace: shop}], options: {a: b}}}], infrastructure: {labels: {a: b}, annotations: {a: b}}}}`,
	"referencegrants": `{spec: {from: [{group: a, kind: a, namespace: shop}], to: [{group: a, kind: a}]}}`,
	"certificates": `{spec: {issuerRef: {name: a}, dnsNames: [h.shop.example.org], commonName: a, ipAddresses: [10.0.0.1], uris: [a], emailAddresses: [a], otherNames: [{oid: a}], usages: [a], subject: {organizations: [a]}, secretTemplate: {annotations: {a: b}, labels: {a: b}},
		additionalOutputFormats: [{type: a}]}}`,
	"kustomizations":                 `{spec: {sourceRef: {kind: a, name: a}, dependsOn: [{name: a}], healthChecks: [{kind: a}], images: [{name: a}], patches: [{patch: a}], components: [a], postBuild: {substitute: {a: b}, substituteFrom: [{kind: a}]}}}`,
	"helmreleases":                   `{spec: {chart: {spec: {chart: a, sourceRef: {name: a}, valuesFiles: [a]}}, dependsOn: [{name: a}], values: {a: {b: [c]}}, valuesFrom: [{kind: a}], postRenderers: [{kustomize: {patches: [{patch: a}]}}]}}`,
	"issuers":                        `{spec: {acme: {server: a, solvers: [{selector: {dnsNames: [a], matchLabels: {a: b}}, http01: {ingress: {podTemplate: {metadata: {annotations: {a: b}}}}}}]}, vault: {server: a}, ca: {secretName: a, ocspServers: [a], crlDistributionPoints: [a]}}}`,
	"network-attachment-definitions": `{spec: {config: "{}"}}`,
	"capacitybuffers":                `{spec: {podTemplateRef: {name: a}, limits: {a: b}}}`,
	"applications":                   `{spec: {project: a, sources: [{repoURL: a}], syncPolicy: {syncOptions: [a]}, info: [{name: a}]}, operation: {info: [{name: a}], sync: {resources: [{kind: a}]}}}`,
	"gitrepositories":                `{spec: {url: a, provider: aws, include: [{repository: {name: a}}], sparseCheckout: [a]}}`,
}

const (
	hostnames = "the Gateway API's definition allows 16 hostnames"
	listeners = "the Gateway API's definition allows 64 listeners"
)

// boundedByKubernetes has the resources whose lists the API server bounds before it evaluates
// policies. A key is a resource, for all policies, or POLICY/RESOURCE.
var boundedByKubernetes = map[string]string{
	"croft-routes/httproutes": hostnames, "croft-routes/grpcroutes": hostnames, "croft-routes/tlsroutes": hostnames,
	"croft-routes/tcproutes": hostnames, "croft-routes/udproutes": hostnames,
	"croft-gateways/gateways": listeners, "croft-gateways/listenersets": listeners,
	"croft-references/referencegrants": "the Gateway API's definition allows 16 entries in from",
	"resourceclaims":                   "Kubernetes allows 32 requests, with 8 alternatives each (DeviceRequestsMaxSize, FirstAvailableDeviceRequestMaxSize)",
	"resourceclaimtemplates":           "Kubernetes allows 32 requests, with 8 alternatives each (DeviceRequestsMaxSize, FirstAvailableDeviceRequestMaxSize)",
}

func init() {
	for name, like := range map[string]string{
		"networkpolicies.projectcalico.org": "networkpolicies.crd.projectcalico.org",
		"grpcroutes":                        "httproutes", "tlsroutes": "httproutes", "tcproutes": "httproutes", "udproutes": "httproutes",
		"listenersets": "gateways",
		"helmcharts":   "gitrepositories", "provisioningrequests": "capacitybuffers", "workloads": "capacitybuffers", "podgroups": "capacitybuffers",
		"applicationsets": "applications", "appprojects": "applications",
		"ocirepositories": "gitrepositories", "helmrepositories": "gitrepositories", "buckets": "gitrepositories",
	} {
		samples[name] = samples[like]
	}
}

// newSample returns an object of the resource with one entry in each list and map.
func newSample(t *testing.T, group, resource string) *unstructured.Unstructured {
	t.Helper()
	sample, ok := samples[resource+"."+group]
	if !ok {
		sample, ok = samples[resource]
	}
	if !ok {
		t.Fatalf("a policy looks at %s of group %q, of which samples has none: add one with all of its lists", resource, group)
	}
	u := &unstructured.Unstructured{}
	var err error
	if text, isText := sample.(string); isText {
		err = yaml.Unmarshal([]byte(text), &u.Object)
	} else {
		v := reflect.New(reflect.TypeOf(sample).Elem())
		populateValue(v.Elem(), 0)
		u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(v.Interface())
	}
	if err != nil {
		t.Fatal(err)
	}
	addMetadata(u)
	return u
}

// addMetadata sets the metadata that all samples share.
func addMetadata(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetAPIVersion("v1")
	u.SetKind("Sample")
	u.Object["metadata"] = map[string]any{
		"name": "sample", "namespace": "shop", "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"a": "b"},
		"finalizers": []any{"foregroundDeletion"}, "ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "a", "name": "a", "uid": "a"}},
	}
	return u
}

// populateValue adds one entry to every list and map.
func populateValue(v reflect.Value, depth int) {
	if depth > 14 || !v.CanSet() {
		return
	}
	if _, special := v.Interface().(interface{ MarshalJSON() ([]byte, error) }); special {
		return
	}
	if v.CanAddr() {
		if _, special := v.Addr().Interface().(json.Marshaler); special {
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		populateValue(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			populateValue(v.Field(i), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		populateValue(v.Index(0), depth+1)
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String {
			entry := reflect.New(v.Type().Elem()).Elem()
			populateValue(entry, depth+1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("a").Convert(v.Type().Key()), entry)
		}
	case reflect.String:
		v.SetString("a")
	default:
	}
}

// listPaths returns the paths of all lists in an object, and of all maps with arbitrary keys.
// Such a map has the single key "a".
func listPaths(value any, path []string) [][]string {
	var all [][]string
	switch value := value.(type) {
	case []any:
		all = append(all, path)
		for _, v := range value {
			all = append(all, listPaths(v, append(slices.Clone(path), "[]"))...)
		}
	case map[string]any:
		if _, free := value["a"]; free && len(value) == 1 {
			return append(all, path)
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			all = append(all, listPaths(value[key], append(slices.Clone(path), key))...)
		}
	}
	return all
}

// lengthenAt returns the object with the given number of entries at the path. If sparse is
// set, the copy has only the fields on the path.
func lengthenAt(value any, path []string, entries int, sparse bool) any {
	if len(path) == 0 {
		switch value := value.(type) {
		case []any:
			long := make([]any, entries)
			for i := range long {
				long[i] = value[0]
				if _, isText := value[0].(string); isText {
					long[i] = "a" + strconv.Itoa(i)
				}
			}
			return long
		case map[string]any:
			long := make(map[string]any, entries)
			for i := range entries {
				long["a"+strconv.Itoa(i)] = value["a"]
			}
			return long
		}
	}
	if path[0] == "[]" {
		list := value.([]any)
		return append([]any{lengthenAt(list[0], path[1:], entries, sparse)}, list[1:]...)
	}
	was, now := value.(map[string]any), map[string]any{}
	for key, v := range was {
		if key == path[0] {
			now[key] = lengthenAt(v, path[1:], entries, sparse)
		} else if _, deep := v.(map[string]any); !sparse || !deep && !isList(v) || key == "metadata" || key == "spec" && path[0] == "metadata" {
			now[key] = v
		}
	}
	return now
}

func isList(v any) bool { _, is := v.([]any); return is }

// scopedPolicy is a policy with its scope.
type scopedPolicy struct {
	*policyEvaluator
	policy client.Object
	at     []schema.GroupVersionResource
	sub    []string
}

// listPolicies returns all policies of a platform with their scopes.
func listPolicies(t *testing.T, p *estate.Platform) []scopedPolicy {
	t.Helper()
	var all []scopedPolicy
	for _, o := range wall.PlatformObjects(p) {
		var match *admissionv1.MatchResources
		switch o := o.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			match = o.Spec.MatchConstraints
		case *admissionv1.MutatingAdmissionPolicy:
			match = o.Spec.MatchConstraints
		default:
			continue
		}
		l := scopedPolicy{policyEvaluator: newPolicyEvaluator(t, o), policy: o}
		for _, r := range match.ResourceRules {
			for _, resource := range r.Resources {
				name, sub, _ := strings.Cut(resource, "/")
				l.at, l.sub = append(l.at, schema.GroupVersionResource{Group: r.APIGroups[0], Version: "v1", Resource: name}), append(l.sub, sub)
			}
		}
		all = append(all, l)
	}
	return all
}

func newCalicoPlatform(t *testing.T) *estate.Platform {
	t.Helper()
	e := loadEstate(t, "../../../examples/two-tenants.yaml")
	p := e.Platform
	p.Network.Dialect, p.Network.Calico = v1alpha1.DialectCalico, &v1alpha1.CalicoNetwork{TenantPolicies: true}
	return &p
}

// newLongRules returns the rules of a tenant, as long as the API allows. The values that the
// samples need are the last in each list.
func newLongRules(egress v1alpha1.Egress) *v1alpha1.TenantRules {
	many := func(n int, format, last string) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = strings.ReplaceAll(format, "%d", strconv.Itoa(i))
		}
		all[n-1] = last
		return all
	}
	rules := &v1alpha1.TenantRules{Spec: v1alpha1.TenantRulesSpec{
		Tenant: "shop", Pools: many(16, "pool-%d", "shop"), Namespaces: many(64, "shop-%d", "shop"), PlatformNamespaces: many(64, "platform-%d", "ingress"), Egress: egress,
		AllowCIDRs: many(64, "192.168.%d.0/24", "0.0.0.0/0"), Domains: many(258, "*.d%d.example.org", "*.shop.example.org"),
		Subjects: many(96, "Group:g%d", "Group:devs"),
	}}
	rules.Spec.PolicySettings = v1alpha1.PolicySettings{
		ServiceTypes: []corev1.ServiceType{"ClusterIP"}, Registries: many(64, "registry-%d.example.org", "registry.example.org/shop"),
		ImagePullPolicies: []corev1.PullPolicy{"Always"}, PriorityClasses: many(64, "p%d", "p"), RuntimeClasses: many(64, "r%d", "r"), StorageClasses: many(64, "s%d", "s"),
		IngressClasses: many(64, "i%d", "i"), GatewayClasses: many(64, "g%d", "g"), CSIDrivers: many(64, "c%d", "c"), MaxTerminationGracePeriodSeconds: ptr.To[int64](3600),
		Issuers: many(32, "ClusterIssuer/i%d", "ClusterIssuer/a"), IssuerTypes: []string{"selfSigned", "ca"}, SourceHosts: many(32, "*.h%d.example.org", "github.com"),
		DeviceClasses: many(32, "d%d", "d"), VolumeTypes: []v1alpha1.VolumeType{"nfs"}, VolumeAttributesClasses: many(32, "v%d", "v"), MaxVolumeSize: ptr.To(resource.MustParse("1Ti")),
		CloudIdentities: many(32, "arn:aws:iam::111122223333:role/r%d-*", "a"), ClusterIPs: many(64, "10.0.0.%d", "10.0.1.1"),
		LoadBalancerClasses:       many(4, "example.com/l%d", "example.com/l"),
		MaxTokenExpirationSeconds: ptr.To[int64](86400), Trial: []string{},
		Annotations: many(24, "example.net/a-%d=b", "example.net/"), UnknownAnnotations: v1alpha1.UnknownWarn,
	}
	// No sample needs a certain value in the other lists.
	for field, list := range reflect.ValueOf(&rules.Spec.PolicySettings).Elem().Fields() {
		if field.Type == reflect.TypeFor[[]string]() && list.IsNil() {
			list.Set(reflect.ValueOf(many(64, field.Name+"-%d.example.org", field.Name)))
		}
	}
	return rules
}

func (l scopedPolicy) newRequest(i int, object, old *unstructured.Unstructured) request {
	r := request{operation: admission.Create, resource: l.at[i], subresource: l.sub[i], object: object}
	if old != nil {
		r.operation, r.old = admission.Update, old
	}
	return r
}

// listBoundedPaths returns the paths of each policy's bounds, by the policy's name.
func listBoundedPaths(p *estate.Platform) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, v := range wall.ListBoundedPolicies(p) {
		all[v.Name] = map[string]bool{}
		for _, b := range v.Bounds {
			path := strings.ReplaceAll(b.Path, "[]", ".[]")
			for _, at := range []string{"", "spec.template.", "spec.jobTemplate.spec.template.", "template."} {
				all[v.Name][at+path] = true
			}
		}
	}
	return all
}

// TestLongListCost gives each list of each matched kind more entries than any bound allows. If
// the policy iterates over the list nevertheless, its cost exceeds the limit.
func TestLongListCost(t *testing.T) {
	rules := newLongRules(v1alpha1.EgressOpen)
	platform := newCalicoPlatform(t)
	bounded := listBoundedPaths(platform)
	for _, l := range listPolicies(t, platform) {
		kinds := map[reflect.Type]bool{}
		for i, at := range l.at {
			resource := strings.TrimSuffix(at.Resource+"/"+l.sub[i], "/")
			if kind := reflect.TypeOf(samples[resource]); kind != nil && kind.Kind() == reflect.Pointer {
				if kinds[kind] {
					continue
				}
				kinds[kind] = true
			}
			t.Run(l.policy.GetObjectKind().GroupVersionKind().Kind+"/"+l.name+"/"+resource, func(t *testing.T) {
				for _, kind := range []string{resource, l.name + "/" + resource} {
					if why, ok := boundedByKubernetes[kind]; ok {
						t.Skip(why)
					}
				}
				short := newSample(t, at.Group, resource)
				var others [][]string
				for _, path := range listPaths(short.Object, nil) {
					if path[0] == "status" {
						continue
					}
					if !bounded[l.name][strings.Join(path, ".")] {
						others = append(others, path)
						continue
					}
					for _, sparse := range listSparseness() {
						long := lengthenAt(short.Object, path, entries, sparse)
						l.compareCost(t, i, strings.Join(path, "."), long, shortenAt(long, path), rules)
					}
				}
				long := any(short.Object)
				for _, path := range others {
					long = lengthenAt(long, path, getUnboundedCount(), false)
				}
				if l.compareCost(t, i, "some list", long, short.Object, rules) {
					for _, path := range others {
						l.compareCost(t, i, strings.Join(path, "."), lengthenAt(short.Object, path, getUnboundedCount(), false), short.Object, rules)
					}
				}
			})
		}
	}
}

// listSparseness returns the values of sparse to try. `make test` tries objects with only the
// path to their long list. `make test-all` also tries objects with all other fields, which
// doubles the cost.
func listSparseness() []bool {
	if sandbox.All() {
		return []bool{true, false}
	}
	return []bool{true}
}

// compareCost fails if it costs more to write a long list, to leave it unchanged or to shorten
// it than to write a short one.
func (l scopedPolicy) compareCost(t *testing.T, i int, path string, long, short any, rules *v1alpha1.TenantRules) (failed bool) {
	t.Helper()
	object := func(content any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: content.(map[string]any)}
	}
	usual := max(l.evaluateRequest(t, l.newRequest(i, object(short), nil), rules).cost, l.policyEvaluator.evaluateRequest(t, l.newRequest(i, object(short), object(short)), rules).cost)
	for how, pair := range map[string][2]*unstructured.Unstructured{
		"write": {object(long), nil}, "leave as it was": {object(long), object(long)},
		"lengthen": {object(long), object(short)}, "shorten": {object(short), object(long)},
	} {
		if more := l.evaluateRequest(t, l.newRequest(i, pair[0], pair[1]), rules).cost - usual; more > mostForLong {
			t.Errorf("%s: to %s a long list costs %d more: no Bound is for it, or it is iterated over before the Bound is checked", path, how, more)
			failed = true
		}
	}
	return failed
}

// shortenAt returns the object with one entry at the path.
func shortenAt(value any, path []string) any {
	switch v := value.(type) {
	case []any:
		if len(path) == 0 {
			return v[:1]
		}
		return []any{shortenAt(v[0], path[1:])}
	case map[string]any:
		if len(path) == 0 {
			for key, entry := range v {
				return map[string]any{key: entry}
			}
		}
		now := maps.Clone(v)
		now[path[0]] = shortenAt(v[path[0]], path[1:])
		return now
	}
	return value
}

// fillBound adds count entries at a bound's path: all of them to the first list, or, if spread is
// set, distributed over all lists.
func fillBound(t *testing.T, object map[string]any, b admissionpolicy.Bound, path string, count int, spread bool) {
	t.Helper()
	holders, rest := []map[string]any{object}, path
	for {
		outer, inside, nested := strings.Cut(rest, "[].")
		if !nested {
			break
		}
		var next []map[string]any
		for _, h := range holders {
			for _, entry := range getList(findHolder(h, outer, false), outer) {
				next = append(next, entry.(map[string]any))
			}
		}
		holders, rest = next, inside
	}
	for i := range count {
		var entry any
		if err := json.Unmarshal([]byte(strings.ReplaceAll(b.Sample, "%d", strconv.Itoa(i))), &entry); err != nil {
			t.Fatalf("%s: %s: %v", path, b.Sample, err)
		}
		h := holders[0]
		if spread {
			h = holders[i%len(holders)]
		}
		h = findHolder(h, rest, true)
		field := rest[strings.LastIndex(rest, ".")+1:]
		if field == "annotations" || field == "labels" || field == "limits" {
			marks, ok := h[field].(map[string]any)
			if !ok {
				marks = map[string]any{}
				h[field] = marks
			}
			for key, value := range entry.(map[string]any) {
				if was, there := marks[key]; there {
					value = was.(string) + "," + value.(string)
				}
				marks[key] = value
			}
			continue
		}
		h[field] = append(getList(h, field), entry)
	}
}

// findHolder returns the map that contains the last field of a path.
func findHolder(object map[string]any, path string, create bool) map[string]any {
	fields := strings.Split(path, ".")
	for _, field := range fields[:len(fields)-1] {
		inner, ok := object[field].(map[string]any)
		if !ok {
			inner = map[string]any{}
			if create {
				object[field] = inner
			}
		}
		object = inner
	}
	return object
}

func getList(object map[string]any, path string) []any {
	all, _ := object[path[strings.LastIndex(path, ".")+1:]].([]any)
	return all
}

// getBoundPath returns the path of a bounded field in an object.
func getBoundPath(v admissionpolicy.Validating, b admissionpolicy.Bound) string {
	if v.Name != admissionpolicy.PodTemplatesPolicy || b.Path == admissionpolicy.ClaimTemplatesPath {
		return b.Path
	}
	return "spec.template." + b.Path
}

// newLargestObject returns an object with as many entries as the bounds allow.
func newLargestObject(t *testing.T, v admissionpolicy.Validating, spread bool) *unstructured.Unstructured {
	t.Helper()
	return newFilledObject(t, v, func(i int) int { return getMaximum(v, i) }, spread)
}

// newObjectBeyond returns an object with one entry more than the given bound allows, and few
// entries elsewhere: the bounds are checked first, regardless of the other fields.
func newObjectBeyond(t *testing.T, v admissionpolicy.Validating, bound int) *unstructured.Unstructured {
	t.Helper()
	return newFilledObject(t, v, func(i int) int {
		if i == bound {
			return getMaximum(v, i) + 1
		}
		return 1
	}, false)
}

// getMaximum returns the number of entries that fill a bound.
func getMaximum(v admissionpolicy.Validating, i int) int {
	b := v.Bounds[i]
	// The annotation that contains a list counts as an annotation, too.
	if slices.ContainsFunc(v.Bounds[i+1:], func(other admissionpolicy.Bound) bool { return other.Path == b.Path }) {
		return b.Max - 1
	}
	return b.Max
}

// newFilledObject returns an object with count(bound) entries for each bound.
func newFilledObject(t *testing.T, v admissionpolicy.Validating, count func(bound int) int, spread bool) *unstructured.Unstructured {
	t.Helper()
	u := addMetadata(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"type": "ClusterIP", "gatewayClassName": "g", "issuerRef": map[string]any{"name": "a"}, "podSelector": map[string]any{}}}})
	u.SetAnnotations(nil)
	u.SetLabels(nil)
	u.SetFinalizers(nil)
	u.SetOwnerReferences(nil)
	findHolder(u.Object, getBoundPath(v, admissionpolicy.Bound{Path: "spec.a"}), true)
	for i, b := range v.Bounds {
		fillBound(t, u.Object, b, getBoundPath(v, b), count(i), spread)
	}
	return u
}

// TestLargestObject evaluates every policy on the largest objects that its bounds allow. It
// fails if a bound does not refuse one entry more.
func TestLargestObject(t *testing.T) {
	platform := newCalicoPlatform(t)
	policies := listPolicies(t, platform)
	open, restricted, none := newLongRules(v1alpha1.EgressOpen), newLongRules(v1alpha1.EgressRestricted), newLongRules(v1alpha1.EgressRestricted)
	none.Spec.Domains, none.Spec.Registries, none.Spec.AllowCIDRs = []string{}, []string{}, []string{}
	var report []string
	for _, v := range wall.ListBoundedPolicies(platform) {
		var dearest int64
		for _, l := range policies {
			if l.name != v.Name {
				continue
			}
			_, validating := l.policy.(*admissionv1.ValidatingAdmissionPolicy)
			kinds := map[any]bool{}
			for i, kind := range l.at {
				sample := samples[kind.Resource]
				if kinds[sample] || v.Name == admissionpolicy.PodTemplatesPolicy && kind.Resource != "deployments" {
					continue // the same sample as another kind
				}
				// For most policies the cost depends neither on the kind nor on the list that
				// is filled, so `make test` tries the first kind alone.
				if len(kinds) > 0 && !sandbox.All() {
					continue
				}
				kinds[sample] = true
				spread, first := newLargestObject(t, v, true), newLargestObject(t, v, false)
				type try struct {
					object, old *unstructured.Unstructured
					rules       *v1alpha1.TenantRules
				}
				tries := []try{{spread, spread, none}, {spread, nil, open}}
				if sandbox.All() {
					tries = append(tries, try{first, nil, restricted})
				}
				for _, c := range tries {
					got := l.evaluateRequest(t, l.newRequest(i, c.object, c.old), c.rules)
					if len(got.errs) > 0 || slices.ContainsFunc(got.refusals, func(m string) bool { return strings.Contains(m, "["+admissionpolicy.BoundsRule+"] ") }) {
						t.Errorf("%s, %s: the largest object is not judged: %v %v", v.Name, kind.Resource, got.errs, got.refusals)
					}
					if got.cost > mostForLargest {
						t.Errorf("%s, %s: the largest object costs %d", v.Name, kind.Resource, got.cost)
					}
					dearest = max(dearest, got.cost)
				}
				if !validating {
					continue
				}
				for over, b := range v.Bounds {
					got := l.evaluateRequest(t, l.newRequest(i, newObjectBeyond(t, v, over), nil), none)
					if !got.isRefusedBy(admissionpolicy.BoundsRule) || !strings.Contains(got.refusals[0], b.Path+": "+strconv.Itoa(b.Max+1)) {
						t.Errorf("%s, %s: %d entries in %s are one too many, and this is what came: %v %v", v.Name, kind.Resource, b.Max+1, b.Path, got.errs, got.refusals)
					}
				}
			}
		}
		report = append(report, fmt.Sprintf("%s %d", v.Name, dearest))
	}
	t.Log(strings.Join(report, "; "))
}
