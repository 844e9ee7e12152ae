package why

import (
	"cmp"
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/certmanager"
)

// Issuance contains the objects with which cert-manager issues a Certificate. Missing
// objects are nil. Only ACME issuers have Orders and Challenges.
type Issuance struct {
	Issuer *unstructured.Unstructured
	// Request is the newest CertificateRequest of the Certificate, and Order the newest
	// Order of the Request.
	Request, Order *unstructured.Unstructured
	Challenges     []unstructured.Unstructured
}

// gatherCertificate reads the issuer of a Certificate, and the objects that it owns.
func (g *gatherer) gatherCertificate(ctx context.Context, o client.Object) error {
	var rules v1alpha1.TenantRules
	found, err := g.getObject(ctx, "tenantrules", o.GetNamespace(), v1alpha1.TenantRulesName, &rules)
	if err != nil {
		return err
	}
	if found {
		g.Rules = &rules
	}
	c, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	all := &g.Around.Issuance
	if all.Issuer, err = g.gatherIssuer(ctx, c); err != nil {
		return err
	}
	if all.Request, err = g.findNewestOwned(ctx, certmanager.Request, o); err != nil || all.Request == nil {
		return err
	}
	if all.Order, err = g.findNewestOwned(ctx, certmanager.Order, all.Request); err != nil || all.Order == nil {
		return err
	}
	all.Challenges, err = g.listOwned(ctx, certmanager.Challenge, all.Order)
	return err
}

// parseIssuerRef returns the reference to the issuer of a Certificate.
func parseIssuerRef(c *unstructured.Unstructured) (kind schema.GroupVersionKind, name string) {
	text := func(field string) string {
		s, _, _ := unstructured.NestedString(c.Object, "spec", "issuerRef", field)
		return s
	}
	kind = schema.GroupVersionKind{Group: cmp.Or(text("group"), certmanager.Group), Version: "v1", Kind: cmp.Or(text("kind"), "Issuer")}
	return kind, text("name")
}

func (g *gatherer) gatherIssuer(ctx context.Context, c *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind, name := parseIssuerRef(c)
	if kind.Group != certmanager.Group || name == "" {
		return nil, nil
	}
	issuer := &unstructured.Unstructured{}
	issuer.SetGroupVersionKind(kind)
	namespace := c.GetNamespace()
	if kind == certmanager.ClusterIssuer {
		namespace = ""
	}
	found, err := g.getObject(ctx, strings.ToLower(kind.Kind), namespace, name, issuer)
	if !found {
		return nil, err
	}
	return issuer, err
}

// listOwned reads the objects of a kind that the owner controls, the newest first.
func (g *gatherer) listOwned(ctx context.Context, kind schema.GroupVersionKind, owner client.Object) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := g.listObjects(ctx, strings.ToLower(kind.Kind), list, client.InNamespace(owner.GetNamespace())); err != nil {
		return nil, err
	}
	owned := slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool { return !metav1.IsControlledBy(&o, owner) })
	slices.SortStableFunc(owned, func(a, b unstructured.Unstructured) int {
		return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
	})
	return owned, nil
}

func (g *gatherer) findNewestOwned(ctx context.Context, kind schema.GroupVersionKind, owner client.Object) (*unstructured.Unstructured, error) {
	owned, err := g.listOwned(ctx, kind, owner)
	if err != nil || len(owned) == 0 {
		return nil, err
	}
	return &owned[0], nil
}
