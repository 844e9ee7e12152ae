package estate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// Connection is the set of connections between the pods of two tenants to which both tenants
// have agreed: the intersection of the callee's `callers` and the caller's `calls`.
type Connection struct {
	// Caller and Callee are the tenants. The caller's pods connect to the callee's.
	Caller, Callee string
	// Ports are ports of the callee's pods, sorted. Never empty.
	Ports []PortRange
	// CallerPods and CalleePods are labels of the two tenants' pods. Without labels, all of
	// the tenant's pods are included.
	CallerPods, CalleePods map[string]string
	// Services and Gateways are the callee's objects that routes and ListenerSets of the caller
	// may name, as NAMESPACE/NAME, sorted.
	Services, Gateways []string
	// CallerNamespaces are the caller's namespaces.
	CallerNamespaces []string
	// CalleeNamespace limits the connection to pods of this namespace of the callee, whose team
	// accepted it by the TenantCaller of this name. Both are empty for the callee's `callers`, which
	// include all of its namespaces.
	CalleeNamespace, TenantCaller string
	// Until is the earlier end of the two consents. It is zero if neither ends.
	Until metav1.Time
}

// Allows reports whether the connection includes a port.
func (c *Connection) Allows(port PortRange) bool {
	return slices.ContainsFunc(c.Ports, func(r PortRange) bool {
		return r.Protocol == port.Protocol && r.First <= port.First && port.Last <= r.Last
	})
}

// FindConnection returns the tenant's connection from a caller to all namespaces of a callee, or nil.
// One of the two is the tenant itself.
func (t *Tenant) FindConnection(caller, callee string) *Connection {
	return t.pickConnection(func(c Connection) bool {
		return c.Caller == caller && c.Callee == callee && c.CalleeNamespace == ""
	})
}

// FindAccepted returns the tenant's first connection from a caller to one namespace of a callee,
// which the team of the callee accepted, or nil.
func (t *Tenant) FindAccepted(caller, callee string) *Connection {
	return t.pickConnection(func(c Connection) bool {
		return c.Caller == caller && c.Callee == callee && c.CalleeNamespace != ""
	})
}

func (t *Tenant) pickConnection(matches func(Connection) bool) *Connection {
	i := slices.IndexFunc(t.Connections, matches)
	if i < 0 {
		return nil
	}
	return &t.Connections[i]
}

// consent is one entry of a tenant's callers or calls, or a TenantCaller.
type consent struct {
	// by gives the consent, and to is the other tenant.
	by *v1alpha1.Tenant
	to string
	// field is callers or calls.
	field string
	ports v1alpha1.ConsentPorts
	pods  map[string]v1alpha1.LabelValue
	until v1alpha1.ConsentEnd
	// services and gateways are objects of the tenant that consents to callers.
	services, gateways []v1alpha1.ConsentReference
	// object is the TenantCaller, or nil for croft.yaml.
	object *v1alpha1.TenantCaller
}

const (
	fieldCallers = "callers"
	fieldCalls   = "calls"
)

// counterparts maps the field of a consent to the field in which the other tenant agrees.
var counterparts = map[string]string{fieldCallers: fieldCalls, fieldCalls: fieldCallers}

// listConsents returns a tenant's consents: first its callers, then its calls, each by name.
func listConsents(t *v1alpha1.Tenant) []consent {
	var all []consent
	for _, name := range slices.Sorted(maps.Keys(t.Spec.Network.Callers)) {
		c := t.Spec.Network.Callers[name]
		all = append(all, consent{t, name, fieldCallers, c.Ports, c.Pods, c.Until, c.Services, c.Gateways, nil})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Spec.Network.Calls)) {
		c := t.Spec.Network.Calls[name]
		all = append(all, consent{t, name, fieldCalls, c.Ports, c.Pods, c.Until, nil, nil, nil})
	}
	return all
}

func (c consent) fieldPath() *field.Path {
	return field.NewPath("spec", "network", c.field).Key(c.to)
}

// hasEnded reports whether the consent has ended at a time. At the zero time it has not.
func (c consent) hasEnded(now time.Time) bool {
	end := c.until.Time()
	return !end.IsZero() && !now.IsZero() && !now.Before(end)
}

// findTenant returns the declared tenant of a name, or nil. A tenant that is refused for some
// other mistake counts: its mistake does not affect others. A tenant that is being deleted has
// withdrawn its consents.
func (w *checker) findTenant(name string) *v1alpha1.Tenant {
	o, ok := w.first[manifest.ID{Kind: manifest.KindTenant, Name: name}]
	if !ok || !w.Tenants[o.Index].DeletionTimestamp.IsZero() {
		return nil
	}
	return &w.Tenants[o.Index]
}

// findAnswer returns the consent of the other tenant to the same connections, or nil.
func (w *checker) findAnswer(c consent) *consent {
	other := w.findTenant(c.to)
	if other == nil {
		return nil
	}
	for _, answer := range listConsents(other) {
		if answer.to == c.by.Name && answer.field == counterparts[c.field] {
			return &answer
		}
	}
	return nil
}

// isForEarlier reports whether the consent was given to an earlier tenant of the same name.
func (w *checker) isForEarlier(c consent) bool {
	bound, other := c.by.Status.Consents[c.to], w.findTenant(c.to)
	return bound != "" && other != nil && other.UID != "" && bound != string(other.UID)
}

// bindConsents returns the UIDs of the Tenants to which a tenant has consented, by name. A UID stays
// until the tenant withdraws the consent, also after that Tenant is deleted.
func (w *checker) bindConsents(t *v1alpha1.Tenant) map[string]string {
	var bound map[string]string
	for _, c := range listConsents(t) {
		uid := t.Status.Consents[c.to]
		if other := w.findTenant(c.to); uid == "" && other != nil {
			uid = string(other.UID)
		}
		if uid == "" {
			continue
		}
		if bound == nil {
			bound = map[string]string{}
		}
		bound[c.to] = uid
	}
	return bound
}

// findCommonPorts returns the ports that both tenants name. Calls without ports name all.
func findCommonPorts(a, b consent) []PortRange {
	switch {
	case len(a.ports) == 0:
		return parsePorts(b.ports)
	case len(b.ports) == 0:
		return parsePorts(a.ports)
	default:
		return intersectPorts(parsePorts(a.ports), parsePorts(b.ports))
	}
}

// resolveConsent returns the connection that a consent opens, or the reason why it opens none.
func (w *checker) resolveConsent(c consent) (*Connection, string) {
	answer := w.findAnswer(c)
	switch {
	case w.findTenant(c.by.Name) != c.by, c.by.Name == c.to:
		return nil, ""
	case w.findTenant(c.to) == nil:
		return nil, w.explainAbsent(c.to)
	case answer == nil:
		return nil, w.explainWaiting(c)
	case w.isForEarlier(c):
		return nil, fmt.Sprintf("was given to an earlier tenant %s, which was deleted; to agree to the present one, remove the entry, apply, and write it again", c.to)
	case w.isForEarlier(*answer):
		return nil, fmt.Sprintf("tenant %s consented to an earlier tenant %s, which was deleted, and has to remove its entry and write it again", c.to, c.by.Name)
	case c.hasEnded(w.Now):
		return nil, "expired at " + formatEnd(c)
	case answer.hasEnded(w.Now):
		return nil, fmt.Sprintf("the consent of tenant %s expired at %s", c.to, formatEnd(*answer))
	}
	caller, callee := *answer, c
	if c.field == fieldCalls {
		caller, callee = c, *answer
	}
	connection := w.makeConnection(caller, callee)
	if connection == nil {
		return nil, fmt.Sprintf("no port is named by both tenants, so nothing opens; tenant %s names others in network.%s", c.to, counterparts[c.field])
	}
	return connection, ""
}

// explainWaiting returns that the other tenant of a consent has not agreed.
func (w *checker) explainWaiting(c consent) string {
	message := fmt.Sprintf("waits for tenant %s, whose network.%s does not name %s", c.to, counterparts[c.field], c.by.Name)
	if c.field == fieldCalls && w.mayAccept(w.findTenant(c.to), c.by.Name) {
		message += ", and whose team may accept it by a TenantCaller"
	}
	return message
}

// makeConnection returns the connection to which a caller and a callee consent, or nil if they have no
// common port.
func (w *checker) makeConnection(caller, callee consent) *Connection {
	ports := findCommonPorts(caller, callee)
	if len(ports) == 0 {
		return nil
	}
	connection := &Connection{
		Caller: caller.by.Name, Callee: callee.by.Name, Ports: ports,
		CallerPods: toLabels(caller.pods), CalleePods: toLabels(callee.pods),
		Services: w.resolveReferences(callee.by, callee.services), Gateways: w.resolveReferences(callee.by, callee.gateways),
		CallerNamespaces: w.listAllNamespaces(caller.by),
		Until:            metav1.NewTime(findEarlier(caller.until.Time(), callee.until.Time())),
	}
	if o := callee.object; o != nil {
		connection.CalleeNamespace, connection.TenantCaller = o.Namespace, o.Name
	}
	return connection
}

// explainAbsent returns why a tenant cannot consent.
func (w *checker) explainAbsent(name string) string {
	if _, declared := w.first[manifest.ID{Kind: manifest.KindTenant, Name: name}]; declared {
		return fmt.Sprintf("tenant %s is being deleted", name)
	}
	return w.explainMissing(manifest.KindTenant, name)
}

// resolveConnections returns the connections of a tenant, and the reasons why its other consents
// open none.
func (w *checker) resolveConnections(t *v1alpha1.Tenant) (open []Connection, pending []string) {
	for _, c := range listConsents(t) {
		connection, reason := w.resolveConsent(c)
		accepted := w.listAccepted(c)
		switch {
		case connection != nil:
			open = append(open, *connection)
		case reason != "" && len(accepted) == 0:
			pending = append(pending, fmt.Sprintf("network.%s.%s: %s", c.field, c.to, reason))
		}
		open = append(open, accepted...)
	}
	return append(open, w.acceptCallers(t).open...), pending
}

func formatEnd(c consent) string { return c.until.Time().UTC().Format(time.RFC3339) }

// findEarlier returns the earlier of two times. A zero time is no end.
func findEarlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func toLabels(pods map[string]v1alpha1.LabelValue) map[string]string {
	if len(pods) == 0 {
		return nil
	}
	all := make(map[string]string, len(pods))
	for key, value := range pods {
		all[key] = string(value)
	}
	return all
}

// checkConsents refuses consents that cannot have an effect, and reports the ones that wait for
// the other tenant. A tenant that does not exist is only a warning: two tenants that name each
// other cannot be created at once, and the deletion of one must not break the other.
func checkConsents(w *checker, t *v1alpha1.Tenant) []finding {
	var all []finding
	for _, c := range listConsents(t) {
		at := c.fieldPath()
		if c.to == t.Name {
			all = append(all, makeFinding(at, "is the tenant itself, whose pods are always connected; name another tenant, or leave it out")...)
			continue
		}
		for i, port := range c.ports {
			if _, err := parsePort(port); err != nil {
				all = append(all, makeFinding(at.Child("ports").Index(i), "%s", err)...)
			}
		}
		all = append(all, w.checkReferences(c)...)
		_, reason := w.resolveConsent(c)
		switch {
		case reason == "", len(w.listAccepted(c)) > 0:
		case c.hasEnded(w.Now):
			all = append(all, makeWarning(at.Child("until"), "this consent expired at %s; remove the entry, or write a later time", formatEnd(c))...)
		case w.findTenant(c.to) != nil && w.findAnswer(c) == nil:
			all = append(all, makeNote(at, "%s", reason)...)
		default:
			all = append(all, makeWarning(at, "%s", reason)...)
		}
	}
	return all
}
