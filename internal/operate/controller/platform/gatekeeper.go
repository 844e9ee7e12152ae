package platform

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/gatekeeper"
)

// checkGatekeeper returns the problems of Gatekeeper's configuration. Warnings are in the
// message even if the platform is Ready.
func (c *Controller) checkGatekeeper(ctx context.Context) (reason, message string, err error) {
	installation, err := c.readInstallation(ctx)
	if err != nil {
		return "", "", fmt.Errorf("inspect Gatekeeper: %w", err)
	}
	reason = v1alpha1.ReasonPlacementReady
	var lines []string
	for _, finding := range gatekeeper.Check(installation) {
		switch {
		case finding.Reason == gatekeeper.ReasonMutationNotServed || finding.Reason == gatekeeper.ReasonTemplatesNotServed:
			reason = v1alpha1.ReasonEngineMissing
		case finding.Severity == gatekeeper.Unsafe && reason == v1alpha1.ReasonPlacementReady:
			reason = v1alpha1.ReasonEngineUnsafe
		case finding.Severity != gatekeeper.Unsafe && reason != v1alpha1.ReasonPlacementReady:
			continue // more severe problems come first
		}
		lines = append(lines, finding.String())
	}
	return reason, strings.Join(lines, "\n"), nil
}

// readInstallation reads the configuration by Gatekeeper's administrators.
func (c *Controller) readInstallation(ctx context.Context) (gatekeeper.Installation, error) {
	in := gatekeeper.Installation{}
	var err error
	if in.Served, err = c.listServedKinds(); err != nil {
		return in, err
	}
	var mutating admissionv1.MutatingWebhookConfigurationList
	var validating admissionv1.ValidatingWebhookConfigurationList
	if err := c.live.List(ctx, &mutating); err != nil {
		return in, fmt.Errorf("list MutatingWebhookConfigurations: %w", err)
	}
	if err := c.live.List(ctx, &validating); err != nil {
		return in, fmt.Errorf("list ValidatingWebhookConfigurations: %w", err)
	}
	in.Mutating, in.Validating = gatekeeper.FindWebhooks(mutating.Items, validating.Items)

	configs := &unstructured.UnstructuredList{}
	configs.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.gatekeeper.sh", Version: "v1alpha1", Kind: "ConfigList"})
	if err := c.live.List(ctx, configs); err != nil && !meta.IsNoMatchError(err) {
		return in, fmt.Errorf("list Gatekeeper's Configs: %w", err)
	}
	for i := range configs.Items {
		if configs.Items[i].GetName() != gatekeeper.ConfigName {
			continue // Gatekeeper reads no other
		}
		if in.Exclusions, err = gatekeeper.ParseExclusions(&configs.Items[i]); err != nil {
			return in, err
		}
	}
	var namespaces corev1.NamespaceList
	if err := c.client.List(ctx, &namespaces, client.HasLabels{v1alpha1.TenantLabel}); err != nil {
		return in, fmt.Errorf("list namespaces: %w", err)
	}
	for i := range namespaces.Items {
		in.Namespaces = append(in.Namespaces, gatekeeper.Namespace{Name: namespaces.Items[i].Name, Labels: namespaces.Items[i].Labels})
	}
	return in, nil
}

// listServedKinds returns the checked kinds that the cluster serves, in all versions.
func (c *Controller) listServedKinds() ([]schema.GroupVersionKind, error) {
	var all []schema.GroupVersionKind
	for _, kind := range gatekeeper.ListKinds() {
		mappings, err := c.live.RESTMapper().RESTMappings(kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", kind, err)
		}
		for _, m := range mappings {
			all = append(all, m.GroupVersionKind)
		}
	}
	return all, nil
}
