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
