package install

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	rbac := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	meta := metav1.ObjectMeta{Namespace: in, Name: NodesName}
	look := []string{"list", "watch"}
	return []client.Object{
		&rbacv1.Role{
			TypeMeta: rbac("Role"), ObjectMeta: meta,
			Rules: []rbacv1.PolicyRule{newRule("apps", look, "daemonsets"), newRule("", look, "pods")},
		},
		&rbacv1.RoleBinding{
			TypeMeta: rbac("RoleBinding"), ObjectMeta: meta,
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: NodesName},
		},
	}
}
