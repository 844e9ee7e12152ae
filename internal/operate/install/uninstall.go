package install

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
)

// installedKinds are the kinds of an installation, except namespaces and CRDs, in the order
// of their deletion: workloads before their rights, and the operator's rights before the
// policies that limit them.
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

// buildAllObjects returns all objects that this version installs with any option. Other objects
// belong to another version.
func buildAllObjects(o Options) []client.Object {
	every := o
	every.Image, every.Authentication, every.VerifySchedule = name, "{}", "@daily"
	every.Dashboard, every.Ledger, every.Agent, every.AgentJournal, every.CopySecrets = true, true, true, true, true
	return append(buildOperatorObjects(o), buildOperatorObjects(every)...)
}

// DiffLeftovers returns the deletions of older versions' objects that Install would make.
func DiffLeftovers(ctx context.Context, a *apply.Applier, o Options) (apply.Differences, error) {
	return a.DiffPrune(ctx, apply.OfInstallation(), "", buildAllObjects(o), installedKinds...)
}

// Remove deletes the operator, its rights and all other objects that any version of Install
// has created, except namespaces and CRDs.
func Remove(ctx context.Context, a *apply.Applier) ([]apply.Change, error) {
	return a.Prune(ctx, apply.OfInstallation(), "", nil, installedKinds...)
}

// Namespaces returns the namespaces of an installation, except v1alpha1.SecretsNamespace: its Secrets belong
// to the platform.
func Namespaces() []string {
	return []string{v1alpha1.AgentNamespace, v1alpha1.ElevationsNamespace, v1alpha1.SystemNamespace}
}
