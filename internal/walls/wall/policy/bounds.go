package policy

import (
	"fmt"
	"slices"
	"strings"

	"croft.dev/croft/internal/rules/addons"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// mostMarks is the maximum number of an object's labels, and of its annotations.
const mostMarks = 250

const fewMarks = "objects have tens of them; " +
	"every controller that croft knows can read longer configuration from another place"

// listAnnotationBounds returns the bounds of annotations that add-ons read: see buildEarlyVariables.
func listAnnotationBounds() []admissionpolicy.Bound {
	return []admissionpolicy.Bound{
		{
			Path:   "metadata.annotations",
			Max:    mostMarks,
			Reason: fewMarks,
			Advice: "remove those that nothing reads",
			Sample: `{"example.org/note-%d": "x"}`,
		},
		{
			Path:   "metadata.annotations",
			Max:    mostHosts,
			Unit:   "hosts and other names in annotations",
			Reason: manyHosts,
			Size:   `(variables.plain ? 0 : ` + countListedNames("variables.annotations") + `)`,
			Sample: `{"external-dns.alpha.kubernetes.io/hostname": "h%d.shop.example.org"}`,
		},
	}
}

// listInfrastructureBounds returns the bounds of annotations that an object passes on.
func listInfrastructureBounds() []admissionpolicy.Bound {
	return []admissionpolicy.Bound{
		{
			Path:   "spec.infrastructure.annotations",
			Max:    64,
			Reason: "the Gateway API itself allows 8",
			Advice: "remove those that nothing reads",
			Size:   `variables.infrastructure.size()`,
			Sample: `{"example.org/note-%d": "x"}`,
		},
		{
			Path:   "spec.infrastructure.annotations",
			Max:    64,
			Unit:   "hosts and other names in annotations",
			Reason: manyHosts,
			Size: `(variables.infrastructure.size() == 0 ? 0 : ` +
				countListedNames("variables.infrastructure") + `)`,
			Sample: `{"external-dns.alpha.kubernetes.io/hostname": "h%d.shop.example.org"}`,
		},
	}
}

// countListedNames returns an expression for the number of names in annotations whose values are
// lists of names.
func countListedNames(annotations string) string {
	return replaceWords(`ANNOTATIONS.transformList(k, v,
		KEY in variables.listing || k.split("/")[0] + "/" in variables.listing,
		v.split(",").size()).sum()`, "ANNOTATIONS", annotations, "KEY", normalizeKey("k"))
}

// buildEarlyVariables returns the variables that listAnnotationBounds and granted read. The variable
// annotations has the object's annotations. Most objects have only annotations that are
// harmless with any value: a single pass finds that, and nothing else is evaluated.
func buildEarlyVariables(harmless []string, tables ...map[string]string) []admissionpolicy.Variable {
	var keys []string
	for _, table := range tables {
		for key, code := range table {
			class, _, _ := strings.Cut(code, ":")
			if slices.Contains(listing, addons.Class(class)) {
				keys = append(keys, fmt.Sprintf("%q: 0", key))
			}
		}
	}
	slices.Sort(keys)
	plain := `variables.annotations.all(k, k.split("/")[0] in ` + formatSet(harmless) + `)`
	return []admissionpolicy.Variable{
		buildWildcards(),
		{Name: "plain", Expression: plain},
		{Name: "listing", Expression: "{" + strings.Join(slices.Compact(keys), ", ") + "}"},
	}
}

// listing has the classes whose values are lists.
var listing = []addons.Class{
	addons.OneOf, addons.Hosts, addons.Object, addons.Namespaces, addons.Prefixed, addons.Networks,
}

const (
	// mostHosts is the maximum number of hosts. Multiplied by the 256 domains of a tenant it
	// reaches the API server's limit for one expression.
	mostHosts = 250
	manyHosts = "an object with more can be split by host without any change for its clients"
)

var ingressBounds = []admissionpolicy.Bound{
	{Path: "spec.rules", Max: mostHosts, Reason: manyHosts, Sample: `{"host": "h%d.shop.example.org"}`},
	{
		Path:   "spec.rules[].http.paths",
		Max:    1000,
		Reason: "the controller's configuration, which all tenants share, has a section for each",
		Sample: `{"path": "/%d", "pathType": "Prefix"}`,
	},
	{Path: "spec.tls", Max: 100, Reason: "load balancers serve up to some tens of certificates", Sample: `{}`},
	{Path: "spec.tls[].hosts", Max: mostHosts, Reason: manyHosts, Sample: `"h%d.shop.example.org"`},
}

var certificateBounds = []admissionpolicy.Bound{
	{
		Path:   "spec.dnsNames",
		Max:    mostHosts,
		Reason: "public authorities certify up to 100 names at once",
		Advice: "write several Certificates",
		Sample: `"h%d.shop.example.org"`,
	},
	{
		Path:   "spec.secretTemplate.labels",
		Max:    50,
		Reason: fewMarks,
		Advice: "remove those that nothing reads",
		Sample: `{"example.org/l-%d": "x"}`,
	},
	{
		Path:   "spec.secretTemplate.annotations",
		Max:    50,
		Reason: fewMarks,
		Advice: "remove those that nothing reads",
		Sample: `{"example.org/a-%d": "x"}`,
	},
}

// serviceBounds limit the lists by which the configuration of a Service grows in each node's
// kube-proxy and in a load balancer.
var serviceBounds = []admissionpolicy.Bound{
	{
		Path:   "spec.clusterIPs",
		Max:    10,
		Reason: "Kubernetes itself allows one of each family",
		Advice: "remove the field",
		Sample: `"10.0.0.%d"`,
	},
	{
		Path:   "spec.externalIPs",
		Max:    50,
		Reason: "only a Service from before may have any",
		Advice: "remove the field",
		Sample: `"203.0.113.7"`,
	},
	{
		Path:   "spec.ports",
		Max:    200,
		Reason: "every node has rules for each port; load balancers have up to 50",
		Advice: "write several Services",
		Sample: `{"name": "p%d", "port": %d}`,
	},
	{
		Path:   "spec.loadBalancerSourceRanges",
		Max:    500,
		Reason: "every node has a rule for each; the firewalls of clouds have up to some hundreds",
		Advice: "write wider ranges",
		Sample: `"10.1.0.0/16"`,
	},
}

var subjectBounds = []admissionpolicy.Bound{
	{
		Path:   "subjects",
		Max:    500,
		Reason: "more people than that are a group",
		Advice: "bind a group, or write several RoleBindings",
		Sample: `{"kind": "User", "name": "dev-%d"}`,
	},
}

const (
	mostFinalizers = 50
	mostOwners     = 50
)

var finalizerBounds = []admissionpolicy.Bound{
	{
		Path:   "metadata.finalizers",
		Max:    mostFinalizers,
		Reason: "every controller has one, and an object has few controllers",
		Advice: "remove finalizers of deleted controllers",
		Sample: `"example.org/f-%d"`,
	},
	{
		Path:   "metadata.ownerReferences",
		Max:    mostOwners,
		Reason: "an object has one controller",
		Advice: "name fewer owners",
		Sample: `{"apiVersion": "v1", "kind": "ConfigMap", "name": "o%d", "uid": "o%d"}`,
	},
}

// markBounds are the bounds of a namespace's labels and annotations.
var markBounds = []admissionpolicy.Bound{
	{
		Path:   "metadata.labels",
		Max:    mostMarks,
		Reason: fewMarks,
		Advice: "remove those that nothing reads",
		Sample: `{"croft.dev/l-%d": "x"}`,
	},
	{
		Path:   "metadata.annotations",
		Max:    mostMarks,
		Reason: fewMarks,
		Advice: "remove those that nothing reads",
		Sample: `{"croft.dev/a-%d": "x"}`,
	},
}

var issuerBounds = []admissionpolicy.Bound{
	{
		Path:   "spec.acme.solvers",
		Max:    100,
		Reason: "cert-manager looks for one that fits, in order",
		Advice: "write several Issuers",
		Sample: `{"http01": {}}`,
	},
}

var roleBounds = []admissionpolicy.Bound{
	{
		Path:   "metadata.labels",
		Max:    mostMarks,
		Reason: fewMarks,
		Advice: "remove those that nothing reads",
		Sample: `{"example.org/l-%d": "x"}`,
	},
}

// fluxBounds are the bounds of the objects that Flux applies.
var fluxBounds = []admissionpolicy.Bound{
	{
		Path:   "spec.dependsOn",
		Max:    500,
		Reason: "it waits for each of them",
		Advice: "depend on fewer",
		Sample: `{"name": "d%d"}`,
	},
	{
		Path:   "spec.healthChecks",
		Max:    500,
		Reason: "the controller gets each of them",
		Advice: "check fewer",
		Sample: `{"kind": "Deployment", "name": "d%d"}`,
	},
}

// podBounds are the bounds of a pod's lists that rules iterate over. No rule reads a pod's
// environment, ports and probes.
var podBounds = []admissionpolicy.Bound{
	{
		Path:        "spec.containers",
		Max:         mostContainers,
		Reason:      fewContainers,
		Advice:      "run several pods",
		UsedByPatch: true,
		Sample:      `{"name": "c%d", "image": "registry.example.org/shop/app:%d", "imagePullPolicy": "Always"}`,
	},
	{
		Path:        "spec.initContainers",
		Max:         mostContainers,
		Reason:      fewContainers,
		Advice:      "run several steps in one container",
		UsedByPatch: true,
		Sample:      `{"name": "i%d", "image": "registry.example.org/shop/app:%d", "imagePullPolicy": "Always"}`,
	},
	{
		Path:        "spec.ephemeralContainers",
		Max:         mostContainers,
		Reason:      fewContainers,
		Advice:      "recreate the pod",
		UsedByPatch: true,
		Sample:      `{"name": "e%d", "image": "registry.example.org/shop/app:%d", "imagePullPolicy": "Always"}`,
	},
	{
		Path:   "metadata.labels",
		Max:    mostMarks,
		Reason: fewMarks,
		Advice: "remove those that nothing reads",
		Sample: `{"example.org/l-%d": "x"}`,
	},
	{
		Path:     "spec.containers[].resources.limits",
		Max:      1000,
		FastPath: `variables.usual`,
		Reason:   fewLimits,
		Advice:   "limit fewer resources",
		Sample:   `{"example.org/r%d": "1"}`,
	},
	{
		Path:     "spec.initContainers[].resources.limits",
		Max:      1000,
		FastPath: `variables.usual`,
		Reason:   fewLimits,
		Advice:   "limit fewer resources",
		Sample:   `{"example.org/r%d": "1"}`,
	},
	{
		Path:        "spec.volumes",
		Max:         200,
		Reason:      "nodes attach some tens of disks to all of their pods",
		Advice:      "use a projected volume for several ConfigMaps and Secrets",
		UsedByPatch: true,
		Sample:      `{"name": "v%d", "csi": {"driver": "d%d.example.org"}}`,
	},
}

const (
	mostContainers = 100
	fewLimits      = "a container has some resources to limit"
	fewContainers  = "pipelines, which have the most, have some tens"
)
