package install

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/secondary"
)

// getPlugins returns the namespace of the DaemonSets that nodes wait for, and the selector of
// their pods.
func (o *Options) getPlugins() (in, selector string) {
	if o.PluginsNamespace == "" {
		return secondary.PluginsNamespace, secondary.PluginsLabels
	}
	return o.PluginsNamespace, o.PluginsLabels
}

// PluginsArgument is the prefix of the arguments that select the DaemonSets that nodes wait
// for.
const PluginsArgument = "--network-plugins"

// buildOperatorArgs returns the operator's arguments that depend on the installation.
func buildOperatorArgs(o Options) []string {
	if !o.Agent || o.PluginsNamespace == "" {
		return nil // the operator's own defaults
	}
	return []string{PluginsArgument + "-namespace=" + o.PluginsNamespace, PluginsArgument + "=" + o.PluginsLabels}
}

// buildPluginRights allows the operator to read DaemonSets and pods in one namespace, to observe
// whether Multus and whereabouts are Ready on a node. RBAC cannot limit this to some of
// them.
func buildPluginRights(in, selector string) []client.Object {
	if selector == "" {
		return nil
	}
	look := []string{"list", "watch"}
	return buildNamespaceRights(in, NodesName, name, newRule("apps", look, "daemonsets"), newRule("", look, "pods"))
}
