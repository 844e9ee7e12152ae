package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall/network"
)

// consents are the connections to which the cluster's tenants consent.
type consents struct {
	tenants map[string]*v1alpha1.TenantSpec
	// callers are the TenantCallers of each tenant, with the decisions about them.
	callers map[string][]estate.CallerDecision
	// agreed are the connections to which both tenants have agreed.
	agreed []attack.Agreement
}

// readConsents reads the consents. Users who may not read the declared objects, and clusters
// without them, get none.
func readConsents(ctx context.Context, c client.Reader) consents {
	live, err := readDeclaration(ctx, c)
	if err != nil {
		return consents{}
	}
	return findConsents(live)
}

// findConsents returns the consents in a declaration.
func findConsents(live *manifest.Declaration) consents {
	found := consents{tenants: map[string]*v1alpha1.TenantSpec{}, callers: map[string][]estate.CallerDecision{}}
	for i := range live.Tenants {
		found.tenants[live.Tenants[i].Name] = &live.Tenants[i].Spec
	}
	if e, _ := estate.Build(live); e != nil {
		found.agreed = network.ListAgreements(&e.Platform)
		for _, t := range e.Tenants {
			found.callers[t.Name] = t.Callers
		}
	}
	return found
}

// listAgreed returns the connections from one tenant to another to which both have agreed.
func (c *consents) listAgreed(from, to string) []attack.Agreement {
	var all []attack.Agreement
	for _, a := range c.agreed {
		if a.From == from && a.To == to {
			all = append(all, a)
		}
	}
	return all
}

// consentSide is one tenant's consent to connections from one tenant to another.
type consentSide struct {
	Tenant string `json:"tenant"`
	// Field is the field or the TenantCaller that gives the consent. Consent describes it, and is empty
	// without a consent.
	Field   string `json:"field"`
	Consent string `json:"consent,omitempty"`
}

// listSides returns both sides of the connections from one tenant to another, or none if neither
// consents.
func (c *consents) listSides(caller, callee string) []consentSide {
	sides := []consentSide{{Tenant: caller, Field: "network.calls." + callee}, {Tenant: callee, Field: "network.callers." + caller}}
	if t := c.tenants[caller]; t != nil {
		if call, ok := t.Network.Calls[callee]; ok {
			sides[0].Consent = describeConsent(call.Ports, call.Pods, nil, nil, call.Until)
		}
	}
	if t := c.tenants[callee]; t != nil {
		if call, ok := t.Network.Callers[caller]; ok {
			sides[1].Consent = describeConsent(call.Ports, call.Pods, call.Services, call.Gateways, call.Until)
		}
	}
	var accepted []consentSide
	for i := range c.callers[callee] {
		if d := &c.callers[callee][i]; d.Spec.Tenant == caller {
			accepted = append(accepted, consentSide{callee, "TenantCaller " + d.Namespace + "/" + d.Name, describeCaller(d)})
		}
	}
	switch {
	case len(accepted) > 0 && sides[1].Consent == "":
		return append(sides[:1], accepted...)
	case len(accepted) == 0 && sides[0].Consent == "" && sides[1].Consent == "":
		return nil
	default:
		return append(sides, accepted...)
	}
}

// describeCaller describes the consent of a TenantCaller. A consent that is ignored opens nothing.
func describeCaller(d *estate.CallerDecision) string {
	if d.Refused != "" {
		return "ignored: " + d.Message
	}
	return describeConsent(d.Spec.Ports, d.Spec.Pods, nil, nil, d.Spec.Until)
}

func describeConsent(
	ports v1alpha1.ConsentPorts, pods map[string]v1alpha1.LabelValue, services, gateways []v1alpha1.ConsentReference, until v1alpha1.ConsentEnd,
) string {
	parts := []string{"every port"}
	if len(ports) > 0 {
		parts = []string{"ports " + strings.Join(formatPorts(ports), ", ")}
	}
	if len(pods) > 0 {
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(pods)) {
			labels = append(labels, key+"="+string(pods[key]))
		}
		parts = append(parts, "pods "+strings.Join(labels, ","))
	}
	for _, named := range []struct {
		word       string
		references []v1alpha1.ConsentReference
	}{{"Services of routes", services}, {"Gateways", gateways}} {
		if len(named.references) > 0 {
			parts = append(parts, named.word+" "+strings.Join(formatReferences(named.references), ", "))
		}
	}
	if end := until.Time(); !end.IsZero() {
		word := "until "
		if !time.Now().Before(end) {
			word = "ended at "
		}
		parts = append(parts, word+end.Format(time.RFC3339))
	}
	return strings.Join(parts, "; ")
}

func formatReferences(references []v1alpha1.ConsentReference) []string {
	all := make([]string, len(references))
	for i, reference := range references {
		all[i] = string(reference)
	}
	return all
}

func formatPorts(ports []intstr.IntOrString) []string {
	all := make([]string, len(ports))
	for i := range ports {
		all[i] = ports[i].String()
	}
	return all
}

// printSides prints who consents to the connections from one tenant to another.
func (a *app) printSides(sides []consentSide) {
	for _, s := range sides {
		consent := s.Consent
		if consent == "" {
			consent = "no consent"
		}
		printSafely(a.out, "  %s of tenant %s: %s\n", s.Field, s.Tenant, consent)
	}
}

// printAgreements lists the connections between tenants to which both have agreed, each with both
// sides.
func (a *app) printAgreements(c *consents) {
	if len(c.agreed) == 0 {
		return
	}
	printSafely(a.out, "\nconnections to which both tenants agreed:\n")
	for i, agreed := range c.agreed {
		var ports []string
		for _, p := range agreed.Ports {
			ports = append(ports, formatAgreedPorts(p))
		}
		to := agreed.To
		if agreed.ToNamespace != "" {
			to += ", namespace " + agreed.ToNamespace
		}
		printSafely(a.out, "%s to %s: %s\n", agreed.From, to, strings.Join(ports, ", "))
		// The sides of a pair of tenants follow the last of its connections.
		if last := i+1 == len(c.agreed) || c.agreed[i+1].From != agreed.From || c.agreed[i+1].To != agreed.To; last {
			a.printSides(c.listSides(agreed.From, agreed.To))
		}
	}
}

func formatAgreedPorts(p attack.Ports) string {
	if p.First == p.Last {
		return fmt.Sprintf("%d/%s", p.First, p.Protocol)
	}
	return fmt.Sprintf("%d-%d/%s", p.First, p.Last, p.Protocol)
}
