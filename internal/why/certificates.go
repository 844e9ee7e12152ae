package why

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/catalog"
	"croft.dev/croft/internal/certmanager"
)

// ofCertificate explains a Certificate, from the issuer to the challenges.
func ofCertificate(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: "is not issued"}
	c, ok := s.Object.(*unstructured.Unstructured)
	if !ok {
		return conclude(story)
	}
	ready, issuing := conditionOf(c, "Ready"), conditionOf(c, "Issuing")
	if ready.status == string(metav1.ConditionTrue) {
		if issuing.status != string(metav1.ConditionTrue) && issuing.reason != "Failed" {
			story.Summary = "is issued, and nothing is wrong"
			return conclude(story)
		}
		story.Summary = "is issued, but not renewed"
	}
	story.Steps = append(issuerSteps(s, c), requestSteps(s)...)
	story.Steps = append(story.Steps, challengeSteps(s, c)...)
	object := s.Target.String()
	switch {
	case issuing.reason == "Failed":
		story.Steps = append(story.Steps, judged(LinkCertificate, object, issuing.message, rowCertificateFailed))
	case ready.kind == "":
		story.Steps = append(story.Steps, waiting(LinkCertificate, object, "cert-manager has not looked at it yet: is it running?"))
	default:
		story.Steps = append(story.Steps, waiting(LinkCertificate, object, cmp.Or(issuing.message, ready.message)))
	}
	return conclude(story)
}

const (
	rowCertificateIssuer    = "certificate-issuer"
	rowCertificateChallenge = "certificate-challenge"
	rowCertificateFailed    = "certificate-failed"
)

// conditionOf returns a condition of an object, or an empty condition if it is missing.
func conditionOf(o *unstructured.Unstructured, kind string) condition {
	if c := find(conditionsOf(o), func(c *condition) bool { return c.kind == kind }); c != nil {
		return *c
	}
	return condition{}
}

// issuerSteps evaluates the issuer. It returns none for issuers that are not
// cert-manager's.
func issuerSteps(s *Snapshot, c *unstructured.Unstructured) []Step {
	kind, name := issuerOf(c)
	if kind.Group != certmanager.Group {
		return nil
	}
	word := strings.ToLower(kind.Kind)
	object, issuer := word+"/"+name, s.Around.Issuance.Issuer
	if issuer == nil {
		if s.hidden(word) {
			return []Step{askAdmin(LinkIssuer, object, "croft why "+s.Target.String()+flag(s.Target))}
		}
		return []Step{judged(LinkIssuer, object, "there is no "+kind.Kind+" "+name, rowCertificateIssuer)}
	}
	switch ready := conditionOf(issuer, "Ready"); ready.status {
	case string(metav1.ConditionTrue):
		return []Step{good(LinkIssuer, object, "it is ready")}
	case string(metav1.ConditionFalse):
		return []Step{judged(LinkIssuer, object, ready.String(), rowCertificateIssuer)}
	default:
		return []Step{waiting(LinkIssuer, object, "cert-manager has not registered it yet: is it running?")}
	}
}

// requestSteps evaluates the CertificateRequest and the Order.
func requestSteps(s *Snapshot) []Step {
	request, order := s.Around.Issuance.Request, s.Around.Issuance.Order
	if request == nil {
		if s.hidden("certificaterequest") {
			return []Step{askAdmin(LinkRequest, s.Target.String(), "croft why "+s.Target.String()+flag(s.Target))}
		}
		return []Step{waiting(LinkRequest, s.Target.String(), "it has no CertificateRequest")}
	}
	object := "certificaterequest/" + request.GetName()
	var steps []Step
	ready := conditionOf(request, "Ready")
	switch {
	case conditionOf(request, "Denied").status == string(metav1.ConditionTrue), ready.reason == "Failed", ready.reason == "Denied":
		steps = append(steps, judged(LinkRequest, object, ready.String(), rowCertificateFailed))
	case ready.status == string(metav1.ConditionTrue):
		steps = append(steps, good(LinkRequest, object, "it is issued"))
	default:
		steps = append(steps, waiting(LinkRequest, object, cmp.Or(ready.message, "it waits for its approval")))
	}
	if order == nil {
		return steps
	}
	object = "order/" + order.GetName()
	switch state, reason := stateOf(order); state {
	case "valid", "ready":
		return append(steps, good(LinkOrder, object, "it is "+state))
	case "invalid", "errored", "expired":
		return append(steps, judged(LinkOrder, object, join(state, reason), rowCertificateFailed))
	default:
		return append(steps, waiting(LinkOrder, object, join(cmp.Or(state, "pending"), reason)))
	}
}

// stateOf returns the state of an Order or a Challenge, or "" before cert-manager has set
// it.
func stateOf(o *unstructured.Unstructured) (state, reason string) {
	state, _, _ = unstructured.NestedString(o.Object, "status", "state")
	reason, _, _ = unstructured.NestedString(o.Object, "status", "reason")
	return state, reason
}

func join(state, reason string) string { return strings.TrimSuffix(state+": "+reason, ": ") }

// challengeSteps evaluates the Challenges. If the caller may not read them, it reports a
// refused Service if every solver of the issuer creates one.
func challengeSteps(s *Snapshot, c *unstructured.Unstructured) []Step {
	if issuer := s.Around.Issuance.Issuer; issuer != nil && (s.hidden("order") || s.hidden("challenge")) {
		var refused string
		for _, solver := range certmanager.Solvers(issuer) {
			if refused = s.refusedService(solver); refused == "" {
				break
			}
		}
		if refused != "" {
			return []Step{s.solverRefused(c, s.Target.String(), refused, "")}
		}
	}
	if s.hidden("order") || s.hidden("challenge") {
		return []Step{askAdmin(LinkChallenge, s.Target.String(), "croft why "+s.Target.String()+flag(s.Target))}
	}
	var steps []Step
	for i := range s.Around.Issuance.Challenges {
		steps = append(steps, challengeStep(s, c, &s.Around.Issuance.Challenges[i]))
	}
	return steps
}

func challengeStep(s *Snapshot, c, challenge *unstructured.Unstructured) Step {
	object := "challenge/" + challenge.GetName()
	host, _, _ := unstructured.NestedString(challenge.Object, "spec", "dnsName")
	presented, _, _ := unstructured.NestedBool(challenge.Object, "status", "presented")
	solver, _, _ := unstructured.NestedMap(challenge.Object, "spec", "solver")
	state, reason := stateOf(challenge)
	seen := host + ": " + join(cmp.Or(state, "pending"), reason)
	if step := bad(LinkAdmission, object, seen); reason != "" && step.Finding != nil && state != "valid" {
		if refused := s.refusedService(solver); refused != "" && step.Finding.ID == catalog.PolicyRefusedID {
			return s.solverRefused(c, object, refused, reason)
		}
		return step
	}
	switch {
	case state == "valid":
		return good(LinkChallenge, object, host+" is verified")
	case !presented && s.refusedService(solver) != "":
		return s.solverRefused(c, object, s.refusedService(solver), reason)
	case state == "invalid" || state == "errored" || state == "expired", !presented && reason != "":
		return judged(LinkChallenge, object, seen, rowCertificateChallenge)
	case reason != "":
		step := judged(LinkChallenge, object, seen, rowCertificateChallenge)
		step.Verdict = Waiting
		return step
	default:
		return waiting(LinkChallenge, object, seen)
	}
}

// refusedService returns the type of a solver's Service if the tenant may not use it.
func (s *Snapshot) refusedService(solver map[string]any) string {
	serviceType := certmanager.SolverService(solver)
	if s.Rules == nil || slices.Contains(s.Rules.Spec.ServiceTypes, corev1.ServiceType(serviceType)) {
		return ""
	}
	return serviceType
}

// solverRefused reports a refused Service, and names the issuer to change.
func (s *Snapshot) solverRefused(c *unstructured.Unstructured, object, serviceType, reason string) Step {
	kind, name := issuerOf(c)
	step := judged(LinkAdmission, object, join("its solver's Service is of type "+serviceType+", which the rule service-type refuses", reason), "solver-service")
	if f := step.Finding; f != nil {
		f.Cure = "set `spec.acme.solvers[].http01.ingress.serviceType: ClusterIP` (or that of `gatewayHTTPRoute`) in " + kind.Kind + " " + name +
			"; where the ingress controller needs NodePorts, a platform admin allows them by `policy.serviceTypes` of the Tenant"
		f.Run = "kubectl get " + strings.ToLower(kind.Kind) + " " + name + " -o yaml"
		if kind != certmanager.ClusterIssuer {
			f.Who, f.Run = catalog.Team, f.Run+flag(s.Target)
		}
	}
	return step
}
