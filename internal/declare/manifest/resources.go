package manifest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
)

// CountedObjects are the objects that a quota counts by a short name. Their amounts are whole
// numbers.
var CountedObjects = sets.New[string]("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
	"persistentvolumeclaims", "services.nodeports", "services.loadbalancers")

// IsWhole reports whether the API server requires whole numbers for a resource: for objects,
// and for all resources with a domain that it takes for a device.
func IsWhole(name string) bool { return CountedObjects.Has(name) || IsDevice(name) }

// IsDevice reports whether the API server takes a resource for a device of nodes.
func IsDevice(name string) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, corev1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+name)) == 0
}
