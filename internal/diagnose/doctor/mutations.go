package doctor

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/rules/gatekeeper"
)

// gatherMutations reads the components that change new pods.
func (g *gatherer) gatherMutations(ctx context.Context) {
	var err error
	g.Native, err = apply.ServesNative(g.RESTMapper())
	g.Fail(err)
	var webhooks admissionv1.MutatingWebhookConfigurationList
	g.ReadList(ctx, readWebhooks, &webhooks)
	g.Webhooks = dropDeleted(webhooks.Items)
	if g.Native {
		g.Mutations = g.listMutatingPolicies(ctx)
	}
	for _, kind := range []string{"ClusterPolicyList", "PolicyList"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: kind})
		g.ReadList(ctx, readWebhooks, list)
		g.Kyverno = append(g.Kyverno, dropDeleted(list.Items)...)
	}
}

// listMutatingPolicies reads the MutatingAdmissionPolicies, in the version that is served.
func (g *gatherer) listMutatingPolicies(ctx context.Context) []admissionv1.MutatingAdmissionPolicy {
	kind, err := apply.ServedKind(g.RESTMapper(), admissionv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy"))
	g.Fail(err)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	g.ReadList(ctx, readWebhooks, list)
	all := make([]admissionv1.MutatingAdmissionPolicy, len(list.Items))
	for i := range list.Items {
		g.Fail(runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &all[i]))
	}
	return dropDeleted(all)
}

// gatherGatekeeper reads Gatekeeper's configuration, if it is the engine.
func (g *gatherer) gatherGatekeeper(ctx context.Context) {
	if getPlacement(g.Snapshot) != v1alpha1.PlacementGatekeeper {
		return
	}
	if reason, unread := g.Unreadable[readWebhooks]; unread {
		g.Unreadable[readGatekeeper] = reason
	}
	var validating admissionv1.ValidatingWebhookConfigurationList
	g.ReadList(ctx, readGatekeeper, &validating)
	installation := &g.Gatekeeper
	installation.Mutating, installation.Validating = gatekeeper.FindWebhooks(g.Webhooks, validating.Items)
	for _, kind := range gatekeeper.ListKinds() {
		mappings, err := g.RESTMapper().RESTMappings(kind)
		g.Record(readGatekeeper, err)
		for _, m := range mappings {
			installation.Served = append(installation.Served, m.GroupVersionKind)
		}
	}
	configs := &unstructured.UnstructuredList{}
	configs.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.gatekeeper.sh", Version: "v1alpha1", Kind: "ConfigList"})
	g.ReadList(ctx, readGatekeeper, configs)
	for i := range configs.Items {
		if configs.Items[i].GetName() != gatekeeper.ConfigName {
			continue // Gatekeeper ignores all others
		}
		var err error
		installation.Exclusions, err = gatekeeper.ParseExclusions(&configs.Items[i])
		g.Fail(err)
	}
	for i := range g.Namespaces {
		installation.Namespaces = append(installation.Namespaces, gatekeeper.Namespace{Name: g.Namespaces[i].Name, Labels: g.Namespaces[i].Labels})
	}
}
