package install

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
)

// installedKinds are the kinds of an installation, apart from namespaces and croft's own
// kinds, in the order of their deletion: workloads go before their rights, and the
// operator's rights go before the policies that limit them.
var installedKinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ConfigMap"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
}

// everyObject returns what this version installs, with any option: other objects are of
// another version.
func everyObject(o Options) []client.Object {
	every := o
	every.Image, every.Authentication, every.Agent, every.AgentJournal, every.VerifySchedule = name, "{}", true, true, "@daily"
	return append(operatorObjects(o), operatorObjects(every)...)
}

// DiffLeftovers shows the objects of older versions that Install deletes.
func DiffLeftovers(ctx context.Context, a *apply.Applier, o Options) (apply.Differences, error) {
	return a.DiffPrune(ctx, apply.OfInstallation(), "", everyObject(o), installedKinds...)
}

// Remove deletes the operator, its rights and everything else that Install has made, by any
// version, apart from namespaces and croft's kinds.
func Remove(ctx context.Context, a *apply.Applier) ([]apply.Change, error) {
	return a.Prune(ctx, apply.OfInstallation(), "", nil, installedKinds...)
}

// Namespaces are those of an installation.
func Namespaces() []string {
	return []string{v1alpha1.AgentNamespace, v1alpha1.ElevationsNamespace, v1alpha1.SystemNamespace}
}
