package manifest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
)

// CountedObjects are the objects that a quota counts by a name of their own. There are no
// halves of them.
var CountedObjects = sets.New[string]("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
	"persistentvolumeclaims", "services.nodeports", "services.loadbalancers")

// IsWhole says whether the API server asks for whole numbers of a resource: of
// objects, and of all with a domain that it takes for a device.
func IsWhole(name string) bool { return CountedObjects.Has(name) || IsDevice(name) }

// IsDevice says whether the API server takes a resource for one of the nodes'
// devices.
func IsDevice(name string) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, corev1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+name)) == 0
}
