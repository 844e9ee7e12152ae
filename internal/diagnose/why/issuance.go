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
func (g *gatherer) gatherCertificate(ctx context.Context, o client.Object) {
	var rules v1alpha1.TenantRules
	if g.getObject(ctx, "tenantrules", o.GetNamespace(), v1alpha1.TenantRulesName, &rules) {
		g.Rules = &rules
	}
	c, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	all := &g.Around.Issuance
	all.Issuer = g.readIssuer(ctx, c)
	if all.Request = g.findNewestOwned(ctx, certmanager.Request, o); all.Request == nil {
		return
	}
	if all.Order = g.findNewestOwned(ctx, certmanager.Order, all.Request); all.Order != nil {
		all.Challenges = g.listOwned(ctx, certmanager.Challenge, all.Order)
	}
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

// readIssuer returns the issuer of a Certificate, or nil.
func (g *gatherer) readIssuer(ctx context.Context, c *unstructured.Unstructured) *unstructured.Unstructured {
	kind, name := parseIssuerRef(c)
	if kind.Group != certmanager.Group || name == "" {
		return nil
	}
	issuer := &unstructured.Unstructured{}
	issuer.SetGroupVersionKind(kind)
	namespace := c.GetNamespace()
	if kind == certmanager.ClusterIssuer {
		namespace = ""
	}
	if !g.getObject(ctx, strings.ToLower(kind.Kind), namespace, name, issuer) {
		return nil
	}
	return issuer
}

// listOwned reads the objects of a kind that the owner controls, the newest first.
func (g *gatherer) listOwned(ctx context.Context, kind schema.GroupVersionKind, owner client.Object) []unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	g.listObjects(ctx, strings.ToLower(kind.Kind), list, client.InNamespace(owner.GetNamespace()))
	owned := slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool { return !metav1.IsControlledBy(&o, owner) })
	slices.SortStableFunc(owned, func(a, b unstructured.Unstructured) int {
		return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
	})
	return owned
}

func (g *gatherer) findNewestOwned(ctx context.Context, kind schema.GroupVersionKind, owner client.Object) *unstructured.Unstructured {
	owned := g.listOwned(ctx, kind, owner)
	if len(owned) == 0 {
		return nil
	}
	return &owned[0]
}
