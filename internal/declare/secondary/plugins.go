package secondary

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// PluginsNamespace is the namespace of the DaemonSets in the manifests of Multus and
	// whereabouts.
	PluginsNamespace = "kube-system"
	// PluginsLabels selects the pods of these DaemonSets. The manifests of Multus v4.2.4
	// (deployments/multus-daemonset-thick.yml, multus-daemonset.yml), the manifests of
	// whereabouts v0.9.4 (doc/crds/daemonset-install.yaml) and its chart use these labels.
	PluginsLabels = "name in (multus, whereabouts)"
)

// Plugins selects the DaemonSets that a node needs for secondary networks.
type Plugins struct {
	// Namespace is the namespace of the DaemonSets.
	Namespace string
	// Labels selects the labels of the DaemonSets' pods. The zero value selects none, so
	// that nodes wait for no plugin.
	Labels labels.Selector
}

// ParsePlugins parses a namespace and a label selector, such as PluginsLabels. With an
// empty selector, nodes wait for no plugin.
func ParsePlugins(namespace, selector string) (Plugins, error) {
	if strings.TrimSpace(selector) == "" {
		return Plugins{}, nil
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return Plugins{}, fmt.Errorf("%q is not the name of a namespace: write one such as %s", namespace, PluginsNamespace)
	}
	parsed, err := labels.Parse(selector)
	if err != nil {
		return Plugins{}, fmt.Errorf("%q is not a label selector: %w; write it as %q", selector, err, PluginsLabels)
	}
	return Plugins{Namespace: namespace, Labels: parsed}, nil
}

// IsEmpty reports whether nodes wait for no plugin.
func (p Plugins) IsEmpty() bool { return p.Labels == nil || p.Labels.Empty() }
