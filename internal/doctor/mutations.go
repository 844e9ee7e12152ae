package doctor

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/gatekeeper"
)

// mutations reads the components that change new pods.
func (g *gatherer) mutations(ctx context.Context) error {
	var err error
	if g.Native, err = apply.ServesNative(g.RESTMapper()); err != nil {
		return err
	}
	var webhooks admissionv1.MutatingWebhookConfigurationList
	if err := g.list(ctx, readWebhooks, &webhooks); err != nil {
		return err
	}
	g.Webhooks = withoutDeleted(webhooks.Items)
	if g.Native {
		if g.Mutations, err = g.mutatingPolicies(ctx); err != nil {
			return err
		}
	}
	for _, kind := range []string{"ClusterPolicyList", "PolicyList"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: kind})
		if err := g.list(ctx, readWebhooks, list); err != nil {
			return err
		}
		g.Kyverno = append(g.Kyverno, withoutDeleted(list.Items)...)
	}
	return nil
}

// mutatingPolicies reads the MutatingAdmissionPolicies, in the version that is served.
func (g *gatherer) mutatingPolicies(ctx context.Context) ([]admissionv1.MutatingAdmissionPolicy, error) {
	kind, err := apply.ServedKind(g.RESTMapper(), admissionv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy"))
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := g.list(ctx, readWebhooks, list); err != nil {
		return nil, err
	}
	all := make([]admissionv1.MutatingAdmissionPolicy, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &all[i]); err != nil {
			return nil, err
		}
	}
	return withoutDeleted(all), nil
}

// gatekeeper reads Gatekeeper's configuration, if it is the engine.
func (g *gatherer) gatekeeper(ctx context.Context) error {
	if placement(g.Snapshot) != v1alpha1.PlacementGatekeeper {
		return nil
	}
	if reason, unread := g.Unread[readWebhooks]; unread {
		g.Unread[readGatekeeper] = reason
	}
	var validating admissionv1.ValidatingWebhookConfigurationList
	if err := g.list(ctx, readGatekeeper, &validating); err != nil {
		return err
	}
	in := &g.Gatekeeper
	in.Mutating, in.Validating = gatekeeper.Webhooks(g.Webhooks, validating.Items)
	for _, kind := range gatekeeper.Kinds() {
		mappings, err := g.RESTMapper().RESTMappings(kind)
		if err := g.ask(readGatekeeper, err); err != nil {
			return err
		}
		for _, m := range mappings {
			in.Served = append(in.Served, m.GroupVersionKind)
		}
	}
	configs := &unstructured.UnstructuredList{}
	configs.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.gatekeeper.sh", Version: "v1alpha1", Kind: "ConfigList"})
	if err := g.list(ctx, readGatekeeper, configs); err != nil {
		return err
	}
	for i := range configs.Items {
		if configs.Items[i].GetName() != gatekeeper.ConfigName {
			continue // Gatekeeper ignores all others
		}
		var err error
		if in.Exclusions, err = gatekeeper.ExclusionsOf(&configs.Items[i]); err != nil {
			return err
		}
	}
	for i := range g.Namespaces {
		in.Namespaces = append(in.Namespaces, gatekeeper.Namespace{Name: g.Namespaces[i].Name, Labels: g.Namespaces[i].Labels})
	}
	return nil
}
