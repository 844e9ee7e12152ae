package migrate

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/document"
)

// kinds are the kinds that are read from a cluster, with the preferred versions first.
var kinds = []struct {
	group    string
	versions []string
	kinds    []string
}{
	{"", []string{"v1"}, []string{"Namespace", "ResourceQuota", "LimitRange"}},
	{"rbac.authorization.k8s.io", []string{"v1"}, []string{"RoleBinding", "ClusterRole"}},
	{"networking.k8s.io", []string{"v1"}, []string{"NetworkPolicy"}},
	{string(v1alpha1.CalicoGroup), []string{"v3"}, []string{"NetworkPolicy", "GlobalNetworkPolicy"}},
	{string(v1alpha1.CalicoStorageGroup), []string{"v1"}, []string{"NetworkPolicy", "GlobalNetworkPolicy"}},
	{draft.ClusterPoliciesGroup, []string{"v1alpha2"}, []string{"ClusterNetworkPolicy"}},
	{draft.ClusterPoliciesGroup, []string{"v1alpha1"}, []string{"AdminNetworkPolicy", "BaselineAdminNetworkPolicy"}},
	{draft.AWSPoliciesGroup, []string{"v1alpha1"}, []string{"ClusterNetworkPolicy", "ApplicationNetworkPolicy"}},
	{"cilium.io", []string{"v2"}, []string{"CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"}},
	{"crd.antrea.io", []string{"v1beta1"}, []string{"NetworkPolicy", "ClusterNetworkPolicy"}},
	{"networking.gke.io", []string{"v1alpha1"}, []string{"FQDNNetworkPolicy"}},
	{"kyverno.io", []string{"v1"}, []string{"ClusterPolicy", "Policy"}},
	{"policies.kyverno.io", []string{"v1", "v1beta1", "v1alpha1"}, []string{"MutatingPolicy", "NamespacedMutatingPolicy"}},
	{"admissionregistration.k8s.io", []string{"v1", "v1beta1", "v1alpha1"}, []string{"MutatingAdmissionPolicy"}},
	{draft.KarpenterGroup, []string{"v1", "v1beta1"}, []string{"NodePool"}},
	{draft.KarpenterGroup, []string{"v1alpha5"}, []string{"Provisioner"}},
	{draft.AWSGroup, []string{"v1", "v1beta1"}, []string{"EC2NodeClass"}},
	{draft.AWSGroup, []string{"v1alpha1"}, []string{"AWSNodeTemplate"}},
	{draft.KwokGroup, []string{"v1alpha1"}, []string{"KWOKNodeClass"}},
	{draft.MutationsGroup, []string{"v1", "v1beta1", "v1alpha1"}, []string{"Assign", "ModifySet", "AssignMetadata"}},
	{"templates.gatekeeper.sh", []string{"v1", "v1beta1"}, []string{"ConstraintTemplate"}},
	{draft.MultusGroup, []string{"v1"}, []string{"NetworkAttachmentDefinition"}},
	{draft.CapsuleGroup, []string{"v1beta2"}, []string{"Tenant", "GlobalTenantResource", "TenantResource", "ResourcePool", "GlobalResourceQuota", "CustomQuota", "GlobalCustomQuota", "TenantOwner"}},
	{draft.HNCGroup, []string{"v1alpha2"}, []string{"HierarchyConfiguration", "SubnamespaceAnchor", "HNCConfiguration", "HierarchicalResourceQuota"}},
	{v1alpha1.GroupVersion.Group, []string{"v1alpha1"}, []string{"Platform", "Pool", "Tenant", "SecondaryNetwork", "TenantRules"}},
}

func isCalico(o *source.Object) bool { return o.Group() == string(v1alpha1.CalicoGroup) }

// ReadCluster reads a cluster. It skips kinds that the cluster does not have. Each kind that the
// caller may not list is a problem.
func ReadCluster(ctx context.Context, c client.Reader) ([]*source.Object, document.Problems, error) {
	var (
		all      []*source.Object
		problems document.Problems
	)
	list := func(group string, versions []string, kind string) error {
		objects, err := listAny(ctx, c, group, versions, kind)
		if apierrors.IsForbidden(err) {
			problems = append(problems, document.Problem{File: "cluster", Message: fmt.Sprintf(
				"you may not list %s of %q, so the result omits them: ask for the right to get and list them", kind, group)})
			return nil
		}
		all = append(all, objects...)
		return err
	}
	for _, k := range kinds {
		// If Calico's own API is served, the objects of this group are copies of its objects.
		if k.group == string(v1alpha1.CalicoStorageGroup) && slices.ContainsFunc(all, isCalico) {
			continue
		}
		for _, kind := range k.kinds {
			if err := list(k.group, k.versions, kind); err != nil {
				return nil, nil, err
			}
		}
	}
	// Only ConfigMaps that another tool copies are of interest.
	if slices.ContainsFunc(all, copiesConfigMaps) {
		if err := list("", []string{"v1"}, "ConfigMap"); err != nil {
			return nil, nil, err
		}
	}
	// The templates determine the kinds of constraints.
	for _, o := range all {
		if o.Kind != "ConstraintTemplate" {
			continue
		}
		if kind := o.At("spec", "crd", "spec", "names", "kind").Text(); kind != "" {
			if err := list(draft.ConstraintsGroup, []string{"v1beta1"}, kind); err != nil {
				return nil, nil, err
			}
		}
	}
	return all, problems, nil
}

// copiesConfigMaps reports whether a setting of HNC or of Capsule copies ConfigMaps of the cluster.
func copiesConfigMaps(o *source.Object) bool {
	switch o.Group() {
	case draft.HNCGroup:
		return slices.ContainsFunc(o.At("spec", "resources").Items(), func(r source.Field) bool { return r.At("resource").Text() == "configmaps" })
	case draft.CapsuleGroup:
		return slices.ContainsFunc(o.At("spec", "resources").Items(), func(r source.Field) bool {
			return slices.ContainsFunc(r.At("namespacedItems").Items(), func(item source.Field) bool { return item.At("kind").Text() == "ConfigMap" })
		})
	default:
		return false
	}
}

func listAny(ctx context.Context, c client.Reader, group string, versions []string, kind string) ([]*source.Object, error) {
	for _, version := range versions {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind + "List"})
		err := c.List(ctx, &list)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", kind, err)
		}
		all := make([]*source.Object, len(list.Items))
		for i := range list.Items {
			all[i] = source.NewObject(list.Items[i].Object)
		}
		return all, nil
	}
	return nil, nil
}
