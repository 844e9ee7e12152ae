package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/wall/network"
)

// gatherAgreements reads the policies for connections between tenants.
func (g *gatherer) gatherAgreements(ctx context.Context) {
	for _, kind := range apply.AgreementKinds {
		if _, err := g.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		g.ReadList(ctx, readAgreements, list, client.HasLabels{v1alpha1.ConsentLabel, v1alpha1.TenantLabel},
			client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
		for _, o := range list.Items {
			o.SetGroupVersionKind(kind)
			g.Agreements = append(g.Agreements, o)
		}
	}
}

// checkConnections reports connections between tenants that are open although they have ended, or
// although the two tenants do not both agree. The operator may have been down at their end.
func checkConnections(s *Snapshot) []Finding {
	if s.Estate == nil {
		return nil
	}
	reported := map[[2]string]bool{}
	var all []Finding
	for i := range s.Agreements {
		o := &s.Agreements[i]
		tenant, other := o.Labels[v1alpha1.TenantLabel], o.Labels[v1alpha1.ConsentLabel]
		message := s.explainOpen(tenant, other, o.Annotations[v1alpha1.UntilAnnotation])
		if message == "" || o.DeletionTimestamp != nil || reported[[2]string{tenant, other}] {
			continue
		}
		reported[[2]string{tenant, other}] = true
		reference := o.Kind + " " + o.Name
		if o.Namespace != "" {
			reference = o.Kind + " " + o.Namespace + "/" + o.Name
		}
		all = append(all, Finding{
			Severity: Problem, Object: "Tenant/" + tenant,
			Message: fmt.Sprintf("%s, but %s still allows it", message, reference),
			Fix:     s.describeClosing(tenant),
		})
	}
	return all
}

// explainOpen returns why a connection should be closed, or "". until is the end in the annotation
// of its policy.
func (s *Snapshot) explainOpen(tenant, other, until string) string {
	if end, err := time.Parse(time.RFC3339, until); err == nil && s.Now.Sub(end) > network.ClosingTime {
		return fmt.Sprintf("the connection between %s and %s ended at %s", tenant, other, end.UTC().Format(time.RFC3339))
	}
	t := s.Estate.FindTenant(tenant)
	if t == nil || s.Deleting["Tenant/"+tenant] || s.Deleting["Tenant/"+other] || hasAgreed(t, other) {
		return ""
	}
	return fmt.Sprintf("%s and %s do not both agree to a connection", tenant, other)
}

// hasAgreed reports whether the tenant has a connection with another, in any direction, also to a single
// namespace.
func hasAgreed(t *estate.Tenant, other string) bool {
	return slices.ContainsFunc(t.Connections, func(c estate.Connection) bool { return c.Caller == other || c.Callee == other })
}

// describeClosing returns the way to close a connection.
func (s *Snapshot) describeClosing(tenant string) string {
	if s.Estate.FindTenant(tenant) == nil {
		return "correct the Tenant, whose objects stay unchanged until it is valid: see the check platform"
	}
	if s.Rendered {
		return "render the file again, apply it, and delete the policy, which it no longer contains"
	}
	return s.describeWallsFix()
}
