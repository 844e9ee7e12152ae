package why

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/observe/certmanager"
)

// explainCertificate explains a Certificate, from the issuer to the challenges.
func explainCertificate(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: "is not issued"}
	c, ok := s.Object.(*unstructured.Unstructured)
	if !ok {
		return conclude(story)
	}
	ready, issuing := findCondition(c, "Ready"), findCondition(c, "Issuing")
	if ready.status == string(metav1.ConditionTrue) {
		if issuing.status != string(metav1.ConditionTrue) && issuing.reason != "Failed" {
			story.Summary = "is issued, and nothing is wrong"
			return conclude(story)
		}
		story.Summary = "is issued, but not renewed"
	}
	story.Steps = append(evaluateIssuer(s, c), evaluateRequest(s)...)
	story.Steps = append(story.Steps, evaluateChallenges(s, c)...)
	object := s.Target.String()
	switch {
	case issuing.reason == "Failed":
		story.Steps = append(story.Steps, newCatalogStep(LinkCertificate, object, issuing.message, rowCertificateFailed))
	case ready.kind == "":
		story.Steps = append(story.Steps, newWaitingStep(LinkCertificate, object, "cert-manager has not processed it yet: does it run?"))
	default:
		story.Steps = append(story.Steps, newWaitingStep(LinkCertificate, object, cmp.Or(issuing.message, ready.message)))
	}
	return conclude(story)
}

const (
	rowCertificateIssuer    = "certificate-issuer"
	rowCertificateChallenge = "certificate-challenge"
	rowCertificateFailed    = "certificate-failed"
)

// findCondition returns a condition of an object, or an empty condition if it is missing.
func findCondition(o *unstructured.Unstructured, kind string) condition {
	if c := findFirst(listConditions(o), func(c *condition) bool { return c.kind == kind }); c != nil {
		return *c
	}
	return condition{}
}

// evaluateIssuer evaluates the issuer. It returns none for issuers that are not
// cert-manager's.
func evaluateIssuer(s *Snapshot, c *unstructured.Unstructured) []Step {
	kind, name := parseIssuerRef(c)
	if kind.Group != certmanager.Group {
		return nil
	}
	word := strings.ToLower(kind.Kind)
	object, issuer := word+"/"+name, s.Around.Issuance.Issuer
	if issuer == nil {
		if s.isHidden(word) {
			return []Step{newHiddenStep(LinkIssuer, object, "croft why "+s.Target.String()+formatNamespaceFlag(s.Target))}
		}
		return []Step{newCatalogStep(LinkIssuer, object, "there is no "+kind.Kind+" "+name, rowCertificateIssuer)}
	}
	switch ready := findCondition(issuer, "Ready"); ready.status {
	case string(metav1.ConditionTrue):
		return []Step{newGoodStep(LinkIssuer, object, "it is ready")}
	case string(metav1.ConditionFalse):
		return []Step{newCatalogStep(LinkIssuer, object, ready.String(), rowCertificateIssuer)}
	default:
		return []Step{newWaitingStep(LinkIssuer, object, "cert-manager has not registered it yet: does it run?")}
	}
}

// evaluateRequest evaluates the CertificateRequest and the Order.
func evaluateRequest(s *Snapshot) []Step {
	request, order := s.Around.Issuance.Request, s.Around.Issuance.Order
	if request == nil {
		if s.isHidden("certificaterequest") {
			return []Step{newHiddenStep(LinkRequest, s.Target.String(), "croft why "+s.Target.String()+formatNamespaceFlag(s.Target))}
		}
		return []Step{newWaitingStep(LinkRequest, s.Target.String(), "it has no CertificateRequest")}
	}
	object := "certificaterequest/" + request.GetName()
	var steps []Step
	ready := findCondition(request, "Ready")
	switch {
	case findCondition(request, "Denied").status == string(metav1.ConditionTrue), ready.reason == "Failed", ready.reason == "Denied":
		steps = append(steps, newCatalogStep(LinkRequest, object, ready.String(), rowCertificateFailed))
	case ready.status == string(metav1.ConditionTrue):
		steps = append(steps, newGoodStep(LinkRequest, object, "it is issued"))
	default:
		steps = append(steps, newWaitingStep(LinkRequest, object, cmp.Or(ready.message, "it waits for its approval")))
	}
	if order == nil {
		return steps
	}
	object = "order/" + order.GetName()
	switch state, reason := readState(order); state {
	case "valid", "ready":
		return append(steps, newGoodStep(LinkOrder, object, "it is "+state))
	case "invalid", "errored", "expired":
		return append(steps, newCatalogStep(LinkOrder, object, joinReason(state, reason), rowCertificateFailed))
	default:
		return append(steps, newWaitingStep(LinkOrder, object, joinReason(cmp.Or(state, "pending"), reason)))
	}
}

// readState returns the state of an Order or a Challenge, or "" before cert-manager has set
// it.
func readState(o *unstructured.Unstructured) (state, reason string) {
	state, _, _ = unstructured.NestedString(o.Object, "status", "state")
	reason, _, _ = unstructured.NestedString(o.Object, "status", "reason")
	return state, reason
}

func joinReason(state, reason string) string { return strings.TrimSuffix(state+": "+reason, ": ") }

// evaluateChallenges evaluates the Challenges. If the caller may not read them, it reports a
// refused Service if every solver of the issuer creates one.
func evaluateChallenges(s *Snapshot, c *unstructured.Unstructured) []Step {
	if issuer := s.Around.Issuance.Issuer; issuer != nil && (s.isHidden("order") || s.isHidden("challenge")) {
		var refused string
		for _, solver := range certmanager.ListSolvers(issuer) {
			if refused = s.findRefusedService(solver); refused == "" {
				break
			}
		}
		if refused != "" {
			return []Step{s.explainRefusedSolver(c, s.Target.String(), refused, "")}
		}
	}
	if s.isHidden("order") || s.isHidden("challenge") {
		return []Step{newHiddenStep(LinkChallenge, s.Target.String(), "croft why "+s.Target.String()+formatNamespaceFlag(s.Target))}
	}
	var steps []Step
	for i := range s.Around.Issuance.Challenges {
		steps = append(steps, evaluateChallenge(s, c, &s.Around.Issuance.Challenges[i]))
	}
	return steps
}

func evaluateChallenge(s *Snapshot, c, challenge *unstructured.Unstructured) Step {
	object := "challenge/" + challenge.GetName()
	host, _, _ := unstructured.NestedString(challenge.Object, "spec", "dnsName")
	presented, _, _ := unstructured.NestedBool(challenge.Object, "status", "presented")
	solver, _, _ := unstructured.NestedMap(challenge.Object, "spec", "solver")
	state, reason := readState(challenge)
	seen := host + ": " + joinReason(cmp.Or(state, "pending"), reason)
	if step := newBadStep(LinkAdmission, object, seen); reason != "" && step.Finding != nil && state != "valid" {
		if refused := s.findRefusedService(solver); refused != "" && step.Finding.ID == catalog.PolicyRefusedID {
			return s.explainRefusedSolver(c, object, refused, reason)
		}
		return step
	}
	switch {
	case state == "valid":
		return newGoodStep(LinkChallenge, object, host+" is verified")
	case !presented && s.findRefusedService(solver) != "":
		return s.explainRefusedSolver(c, object, s.findRefusedService(solver), reason)
	case state == "invalid" || state == "errored" || state == "expired", !presented && reason != "":
		return newCatalogStep(LinkChallenge, object, seen, rowCertificateChallenge)
	case reason != "":
		step := newCatalogStep(LinkChallenge, object, seen, rowCertificateChallenge)
		step.Verdict = Waiting
		return step
	default:
		return newWaitingStep(LinkChallenge, object, seen)
	}
}

// findRefusedService returns the type of a solver's Service if the tenant may not use it.
func (s *Snapshot) findRefusedService(solver map[string]any) string {
	serviceType := certmanager.GetServiceType(solver)
	if s.Rules == nil || slices.Contains(s.Rules.Spec.ServiceTypes, corev1.ServiceType(serviceType)) {
		return ""
	}
	return serviceType
}

// explainRefusedSolver reports a refused Service, and names the issuer to change.
func (s *Snapshot) explainRefusedSolver(c *unstructured.Unstructured, object, serviceType, reason string) Step {
	kind, name := parseIssuerRef(c)
	step := newCatalogStep(LinkAdmission, object, joinReason("its solver's Service is of type "+serviceType+", which the rule service-type refuses", reason), "solver-service")
	if f := step.Finding; f != nil {
		f.Fix = "set `spec.acme.solvers[].http01.ingress.serviceType: ClusterIP` (or the field of `gatewayHTTPRoute`) in " + kind.Kind + " " + name +
			"; if the ingress controller needs NodePorts, a platform admin can allow them by `policy.serviceTypes` of the Tenant"
		f.Run = "kubectl get " + strings.ToLower(kind.Kind) + " " + name + " -o yaml"
		if kind != certmanager.ClusterIssuer {
			f.Who, f.Run = catalog.Team, f.Run+formatNamespaceFlag(s.Target)
		}
	}
	return step
}
