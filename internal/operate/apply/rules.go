package apply

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// CopyRules copies the rules in TenantRules to the annotations of tenants' namespaces, if
// they are missing there. Older versions of croft did not write them, and nothing else
// would write them for a tenant that was deleted and retained. Call it before the policies
// are applied, which deny without the rules.
func (a *Applier) CopyRules(ctx context.Context) error {
	var all v1alpha1.TenantRulesList
	if err := a.client.List(ctx, &all, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}); meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil // croft was never installed here
	} else if err != nil {
		return fmt.Errorf("list TenantRules: %w", err)
	}
	var namespaces corev1.NamespaceList
	if err := a.client.List(ctx, &namespaces, client.HasLabels{v1alpha1.TenantLabel}); err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	annotations := make(map[string]map[string]string, len(namespaces.Items))
	for i := range namespaces.Items {
		annotations[namespaces.Items[i].Name] = namespaces.Items[i].Annotations
	}
	var errs []error
	for i := range all.Items {
		rules := &all.Items[i]
		have, ok := annotations[rules.Namespace]
		if !ok || rules.Name != v1alpha1.TenantRulesName {
			continue
		}
		missing := map[string]any{}
		for key, value := range admissionpolicy.BuildAnnotations(rules.Spec) {
			if _, ok := have[key]; !ok {
				missing[key] = value
			}
		}
		if err := a.MarkNamespace(ctx, rules.Namespace, nil, missing); client.IgnoreNotFound(err) != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
