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
func (g *gatherer) gatherMutations(ctx context.Context) error {
	var err error
	if g.Native, err = apply.ServesNative(g.RESTMapper()); err != nil {
		return err
	}
	var webhooks admissionv1.MutatingWebhookConfigurationList
	if err := g.listObjects(ctx, readWebhooks, &webhooks); err != nil {
		return err
	}
	g.Webhooks = dropDeleted(webhooks.Items)
	if g.Native {
		if g.Mutations, err = g.listMutatingPolicies(ctx); err != nil {
			return err
		}
	}
	for _, kind := range []string{"ClusterPolicyList", "PolicyList"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: kind})
		if err := g.listObjects(ctx, readWebhooks, list); err != nil {
			return err
		}
		g.Kyverno = append(g.Kyverno, dropDeleted(list.Items)...)
	}
	return nil
}

// listMutatingPolicies reads the MutatingAdmissionPolicies, in the version that is served.
func (g *gatherer) listMutatingPolicies(ctx context.Context) ([]admissionv1.MutatingAdmissionPolicy, error) {
	kind, err := apply.ServedKind(g.RESTMapper(), admissionv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy"))
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := g.listObjects(ctx, readWebhooks, list); err != nil {
		return nil, err
	}
	all := make([]admissionv1.MutatingAdmissionPolicy, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &all[i]); err != nil {
			return nil, err
		}
	}
	return dropDeleted(all), nil
}

// gatherGatekeeper reads Gatekeeper's configuration, if it is the engine.
func (g *gatherer) gatherGatekeeper(ctx context.Context) error {
	if getPlacement(g.Snapshot) != v1alpha1.PlacementGatekeeper {
		return nil
	}
	if reason, unread := g.Unreadable[readWebhooks]; unread {
		g.Unreadable[readGatekeeper] = reason
	}
	var validating admissionv1.ValidatingWebhookConfigurationList
	if err := g.listObjects(ctx, readGatekeeper, &validating); err != nil {
		return err
	}
	in := &g.Gatekeeper
	in.Mutating, in.Validating = gatekeeper.FindWebhooks(g.Webhooks, validating.Items)
	for _, kind := range gatekeeper.ListKinds() {
		mappings, err := g.RESTMapper().RESTMappings(kind)
		if err := g.recordUnread(readGatekeeper, err); err != nil {
			return err
		}
		for _, m := range mappings {
			in.Served = append(in.Served, m.GroupVersionKind)
		}
	}
	configs := &unstructured.UnstructuredList{}
	configs.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.gatekeeper.sh", Version: "v1alpha1", Kind: "ConfigList"})
	if err := g.listObjects(ctx, readGatekeeper, configs); err != nil {
		return err
	}
	for i := range configs.Items {
		if configs.Items[i].GetName() != gatekeeper.ConfigName {
			continue // Gatekeeper ignores all others
		}
		var err error
		if in.Exclusions, err = gatekeeper.ParseExclusions(&configs.Items[i]); err != nil {
			return err
		}
	}
	for i := range g.Namespaces {
		in.Namespaces = append(in.Namespaces, gatekeeper.Namespace{Name: g.Namespaces[i].Name, Labels: g.Namespaces[i].Labels})
	}
	return nil
}
