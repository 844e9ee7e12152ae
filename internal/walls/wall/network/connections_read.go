package network

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

// OpenConnection is a connection between two tenants that a policy in the cluster allows.
type OpenConnection struct {
	// Caller and Callee are the tenants. The caller's pods connect to the callee's.
	Caller, Callee string
	// End is the time at which the operator closes it, or the zero time.
	End time.Time
}

// ClosingTime is the time in which an operator that runs, or starts, closes a connection that has ended.
const ClosingTime = 5 * time.Second

// HasExpired reports whether the connection should be closed by now.
func (c OpenConnection) HasExpired(now time.Time) bool {
	return !c.End.IsZero() && now.Sub(c.End) > ClosingTime
}

// ReadConnection reads the connection that a policy allows from the metadata that croft writes. ok is
// false for all other objects.
func ReadConnection(policy metav1.Object) (c OpenConnection, ok bool) {
	tenant, other := policy.GetLabels()[v1alpha1.TenantLabel], policy.GetLabels()[v1alpha1.ConsentLabel]
	if tenant == "" || other == "" {
		return OpenConnection{}, false
	}
	c = OpenConnection{Caller: other, Callee: tenant}
	if strings.HasPrefix(strings.TrimPrefix(policy.GetName(), tierPrefix), CallPolicy+"-") {
		c.Caller, c.Callee = tenant, other
	}
	if end, err := time.Parse(time.RFC3339, policy.GetAnnotations()[v1alpha1.UntilAnnotation]); err == nil {
		c.End = end
	}
	return c, true
}
