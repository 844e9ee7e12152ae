package estate

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// MaxCallersPerTenant is the maximum number of TenantCallers of one tenant for the same other tenant:
// the oldest count. Each adds a rule to a network policy in the other tenant's namespaces, which
// a team must not be able to fill.
const MaxCallersPerTenant = 16

// anyTenant in callersFrom stands for all tenants.
const anyTenant = "*"

// CallerDecision is the decision about one TenantCaller.
type CallerDecision struct {
	Namespace, Name string
	// UID and Generation are the version of the object that was read.
	UID        types.UID
	Generation int64
	Spec       v1alpha1.TenantCallerSpec
	// Giver and Receiver are the UIDs of the two Tenants for the object's status.
	Giver, Receiver string
	// Refused is the reason for which the object is ignored, as in its condition Accepted, or "".
	Refused string
	// Message explains why the object is ignored, or why it opens no connection. It is empty while the
	// connection is open. The team reads it, so it does not reveal whether another tenant exists.
	Message string
	// End is the end of the consent, if it has not ended.
	End metav1.Time
}

// acceptance is the result for all TenantCallers of a tenant.
type acceptance struct {
	decisions []CallerDecision
	open      []Connection
}

// indexCallers returns the TenantCallers by namespace. An object that is being deleted is a withdrawn
// consent, even while a finalizer keeps it.
func indexCallers(d *manifest.Declaration) map[string][]*v1alpha1.TenantCaller {
	all := map[string][]*v1alpha1.TenantCaller{}
	for i := range d.Callers {
		if o := &d.Callers[i]; o.DeletionTimestamp.IsZero() {
			all[o.Namespace] = append(all[o.Namespace], o)
		}
	}
	return all
}

// listCallersFrom returns the tenants from which a team may accept connections.
func (w *checker) listCallersFrom(t *v1alpha1.Tenant) []string {
	return firstSet(t.Spec.Network.CallersFrom, w.platform.TenantDefaults.CallersFrom)
}

// mayAccept reports whether the team of a tenant may accept connections from another tenant.
func (w *checker) mayAccept(t *v1alpha1.Tenant, caller string) bool {
	from := w.listCallersFrom(t)
	return slices.Contains(from, caller) || slices.Contains(from, anyTenant)
}

// acceptCallers decides on the TenantCallers in a tenant's namespaces, from the oldest to the youngest.
func (w *checker) acceptCallers(t *v1alpha1.Tenant) acceptance {
	if len(w.callers) == 0 {
		return acceptance{}
	}
	if known, ok := w.accepted[t]; ok {
		return known
	}
	var objects []*v1alpha1.TenantCaller
	for _, namespace := range w.listAllNamespaces(t) {
		objects = append(objects, w.callers[namespace]...)
	}
	slices.SortFunc(objects, func(a, b *v1alpha1.TenantCaller) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var result acceptance
	counts := map[string]int{}
	for _, o := range objects {
		decision, connection := w.decideCaller(t, o, counts)
		result.decisions = append(result.decisions, decision)
		if connection != nil {
			result.open = append(result.open, *connection)
		}
	}
	w.accepted[t] = result
	return result
}

// decideCaller decides on a TenantCaller of a tenant, and returns the connection that it opens, or nil.
// counts are the numbers of earlier TenantCallers by the tenant that they name.
func (w *checker) decideCaller(t *v1alpha1.Tenant, o *v1alpha1.TenantCaller, counts map[string]int) (CallerDecision, *Connection) {
	c := consent{by: t, to: o.Spec.Tenant, field: fieldCallers, ports: o.Spec.Ports, pods: o.Spec.Pods, until: o.Spec.Until, object: o}
	d := CallerDecision{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, Generation: o.Generation, Spec: o.Spec,
		Giver: cmp.Or(o.Status.Giver, string(t.UID)), Receiver: o.Status.Receiver,
	}
	if other := w.findTenant(c.to); d.Receiver == "" && other != nil {
		d.Receiver = string(other.UID)
	}
	if !c.hasEnded(w.Now) {
		d.End = metav1.NewTime(c.until.Time())
	}
	if d.Refused, d.Message = w.explainRefused(c); d.Refused != "" {
		return d, nil
	}
	if c.hasEnded(w.Now) {
		d.Message = "expired at " + formatEnd(c) + ": write a later spec.until, or delete the TenantCaller"
		return d, nil
	}
	counts[c.to]++
	if counts[c.to] > MaxCallersPerTenant {
		d.Refused = v1alpha1.ReasonLimitReached
		d.Message = fmt.Sprintf("the tenant already has %d older TenantCallers for tenant %s: delete one of them, or name several ports in one", MaxCallersPerTenant, c.to)
		return d, nil
	}
	connection, why := w.joinCaller(c)
	d.Message = why
	return d, connection
}

// explainRefused returns why a TenantCaller is ignored: the reason for its condition, and a message. Both
// are empty if it counts.
func (w *checker) explainRefused(c consent) (reason, why string) {
	if c.to == c.by.Name {
		return v1alpha1.ReasonNotAllowed, "spec.tenant: is the tenant itself, whose pods are always connected: delete the TenantCaller"
	}
	if !w.mayAccept(c.by, c.to) {
		return v1alpha1.ReasonNotAllowed, fmt.Sprintf("spec.tenant: teams of tenant %s may not accept connections from tenant %s: a platform admin allows it by network.callersFrom", c.by.Name, c.to)
	}
	for i, port := range c.ports {
		if _, err := parsePort(port); err != nil {
			return v1alpha1.ReasonInvalid, fmt.Sprintf("spec.ports[%d]: %s", i, err)
		}
	}
	if giver := c.object.Status.Giver; giver != "" && c.by.UID != "" && giver != string(c.by.UID) {
		return v1alpha1.ReasonRefused, "was created for an earlier tenant of this namespace: delete it, and create it again to agree for the present one"
	}
	other, receiver := w.findTenant(c.to), c.object.Status.Receiver
	if receiver != "" && other != nil && other.UID != "" && receiver != string(other.UID) {
		return v1alpha1.ReasonRefused, fmt.Sprintf("was created for an earlier tenant %s, which was deleted: delete it, and create it again to agree to the present one", c.to)
	}
	return "", ""
}

// joinCaller returns the connection that a valid TenantCaller opens, or the reason why it opens none.
func (w *checker) joinCaller(c consent) (*Connection, string) {
	answer := w.findAnswer(c)
	switch {
	case w.findTenant(c.by.Name) != c.by:
		return nil, "its tenant is being deleted"
	case answer == nil || w.isForEarlier(*answer):
		// The same message for a tenant that does not exist.
		return nil, fmt.Sprintf("waits for tenant %s, whose network.calls does not name %s", c.to, c.by.Name)
	case answer.hasEnded(w.Now):
		return nil, fmt.Sprintf("the consent of tenant %s expired at %s", c.to, formatEnd(*answer))
	case c.object.Status.Giver == "" || c.object.Status.Receiver == "":
		// Until the UIDs are recorded, the consent could pass to a later tenant of the same name.
		return nil, "waits until the operator has recorded the two tenants in the status"
	}
	connection := w.makeConnection(*answer, c)
	if connection == nil {
		return nil, fmt.Sprintf("no port is named by both tenants, so nothing opens: tenant %s names others in network.calls", c.to)
	}
	return connection, ""
}

// listAccepted returns the connections that the other tenant's TenantCallers open for an entry of calls.
func (w *checker) listAccepted(c consent) []Connection {
	other := w.findTenant(c.to)
	if c.field != fieldCalls || other == nil {
		return nil
	}
	var all []Connection
	for _, connection := range w.acceptCallers(other).open {
		if connection.Caller == c.by.Name {
			all = append(all, connection)
		}
	}
	return all
}

// checkCallersFrom warns of tenants that do not exist, and refuses the tenant itself.
func checkCallersFrom(w *checker, t *v1alpha1.Tenant) []finding {
	at := field.NewPath("spec", "network", "callersFrom")
	for i, name := range t.Spec.Network.CallersFrom {
		if name == t.Name {
			return makeFinding(at.Index(i), "is the tenant itself, whose pods are always connected; name another tenant, or leave it out")
		}
	}
	return w.checkTenantNames(at, t.Spec.Network.CallersFrom)
}

// checkDefaultCallersFrom warns of tenants in the Platform's defaults that do not exist.
func checkDefaultCallersFrom(w *checker) {
	for i := range w.Platforms {
		at := field.NewPath("spec", "tenantDefaults", "callersFrom")
		w.recordFindings(w.objects[manifest.KindPlatform][i], w.checkTenantNames(at, w.Platforms[i].Spec.TenantDefaults.CallersFrom))
	}
}

// checkTenantNames warns of names that no declared tenant has.
func (w *checker) checkTenantNames(at *field.Path, names []string) []finding {
	var all []finding
	for i, name := range names {
		if name == anyTenant || w.findTenant(name) != nil {
			continue
		}
		if reason := w.explainAbsent(name); reason != "" {
			all = append(all, makeWarning(at.Index(i), "%s", reason)...)
		}
	}
	return all
}
