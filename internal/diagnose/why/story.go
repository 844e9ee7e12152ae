package why

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/catalog"
)

// Verdict is the state of one link of the chain.
type Verdict string

const (
	// Good means that nothing is wrong.
	Good Verdict = "good"
	// Bad means that something is wrong.
	Bad Verdict = "bad"
	// Waiting is a normal state that needs time.
	Waiting Verdict = "waiting"
	// Hidden means that the caller may not read the object.
	Hidden Verdict = "hidden"
)

// Mark returns the character that shows the state in a list of steps.
func (v Verdict) Mark() string {
	switch v {
	case Good:
		return "✓"
	case Bad:
		return "✗"
	case Waiting:
		return "…"
	default:
		return "?"
	}
}

// IfItLasts introduces the finding of a step that is Waiting.
const IfItLasts = "this takes its time; if it stays so:"

// Link is a part of the chain.
type Link string

// The links are in order: a fault of one explains the faults of later ones.
const (
	LinkAdmission Link = "admission"
	LinkPlacement Link = "placement"
	LinkClass     Link = "node class"
	LinkPool      Link = "pool"
	LinkClaim     Link = "nodeclaim"
	LinkNode      Link = "node"
	LinkKarpenter Link = "karpenter"
	LinkScheduler Link = "scheduler"
	LinkPod       Link = "pod"
	LinkNetwork   Link = "network"
	LinkRollout   Link = "rollout"
	LinkJob       Link = "job"
	// The following links are about objects other than pods without a node.
	LinkSchedule  Link = "schedule"
	LinkStorage   Link = "storage"
	LinkIngress   Link = "ingress"
	LinkService   Link = "service"
	LinkTenant    Link = "tenant"
	LinkNamespace Link = "namespace"
	LinkDeletion  Link = "deletion"
	LinkObject    Link = "object"
	// The following links are Flux's: the source, the build, and the applied objects.
	LinkSource Link = "source"
	LinkBuild  Link = "build"
	LinkApply  Link = "apply"
	LinkHealth Link = "health"
	// The following links are cert-manager's.
	LinkIssuer      Link = "issuer"
	LinkRequest     Link = "request"
	LinkOrder       Link = "order"
	LinkChallenge   Link = "challenge"
	LinkCertificate Link = "certificate"
)

var explains = []Link{
	LinkSource, LinkBuild, LinkAdmission, LinkApply, LinkPlacement, LinkClass, LinkPool, LinkClaim, LinkNode, LinkKarpenter, LinkScheduler, LinkPod, LinkNetwork, LinkRollout, LinkJob, LinkSchedule, LinkHealth, LinkDeletion, LinkNamespace,
	LinkIssuer, LinkChallenge, LinkOrder, LinkRequest, LinkCertificate,
}

// Step is the observation at one link.
type Step struct {
	Link        Link    `json:"link"`
	Object      string  `json:"object"`
	Verdict     Verdict `json:"verdict"`
	Observation string  `json:"observation"`
	// Finding is the catalogue's finding. For a step that is Waiting, it applies if the
	// state lasts.
	Finding *catalog.Finding `json:"finding,omitempty"`
}

// Story is the explanation of a Target.
type Story struct {
	Target Target `json:"target"`
	// Verdict is Bad if something has to be fixed, and Waiting if the Target needs time.
	Verdict Verdict `json:"verdict"`
	// Summary describes the Target's state in one line.
	Summary string `json:"summary"`
	// First is the cause to fix first.
	First *catalog.Finding `json:"first,omitempty"`
	Steps []Step           `json:"steps,omitempty"`
	// Contact is the contact of the tenant whose team can fix First.
	Contact string `json:"contact,omitempty"`
	// Latency describes the time that a node took to become Ready, if it is known.
	Latency string `json:"latency,omitempty"`
}

// Headline returns the Target, its namespace and its state in one line.
func (s *Story) Headline() string {
	name := s.Target.String()
	if s.Target.Namespace != "" {
		name += " in " + s.Target.Namespace
	}
	return name + ": " + s.Summary
}

// ListNewFindings returns the finding of each step, or nil if First or an earlier step has the
// same finding.
func (s *Story) ListNewFindings() []*catalog.Finding {
	shown := map[string]bool{}
	if s.First != nil {
		shown[s.First.ID] = true
	}
	findings := make([]*catalog.Finding, len(s.Steps))
	for i, step := range s.Steps {
		if f := step.Finding; f != nil && !shown[f.ID] {
			shown[f.ID] = true
			findings[i] = f
		}
	}
	return findings
}

// conclude sets the fields that follow from the steps.
func conclude(s Story) Story {
	s.Verdict = Good
	for _, step := range s.Steps {
		if step.Verdict == Bad || s.Verdict == Good && step.Verdict == Waiting {
			s.Verdict = step.Verdict
		}
	}
	for _, link := range explains {
		i := slices.IndexFunc(s.Steps, func(step Step) bool {
			return step.Link == link && step.Verdict == Bad && step.Finding != nil
		})
		if i >= 0 {
			s.First = s.Steps[i].Finding
			return s
		}
	}
	return s
}

// AddContact adds the contact of the tenant, if its team can fix the first cause. It omits the contact
// of a Tenant that the caller may not read: teams may not, except through croft proxy.
func (s *Story) AddContact(ctx context.Context, c client.Reader, seen *Snapshot) {
	if s.First == nil || s.First.Who != catalog.Team || seen.Rules == nil {
		return
	}
	var tenant v1alpha1.Tenant
	if err := c.Get(ctx, client.ObjectKey{Name: seen.Rules.Spec.Tenant}, &tenant); err == nil {
		s.Contact = tenant.Spec.Contact
	}
}

// Decode adds the content of encoded messages to the story.
func (s *Story) Decode(ctx context.Context, decode catalog.Decode) {
	for _, step := range s.Steps {
		if step.Finding != nil {
			*step.Finding = catalog.DecodeFinding(ctx, *step.Finding, decode)
		}
	}
}

func newGoodStep(link Link, object, seen string) Step {
	return Step{Link: link, Object: object, Verdict: Good, Observation: seen}
}

func newWaitingStep(link Link, object, seen string) Step {
	return Step{Link: link, Object: object, Verdict: Waiting, Observation: seen}
}

// newBadStep returns an observation with the first matching row of the catalogue.
func newBadStep(link Link, object, seen string) Step {
	step := Step{Link: link, Object: object, Verdict: Bad, Observation: seen}
	if found := catalog.FindMatches(seen); len(found) > 0 {
		step.Finding = addRule(&found[0])
	}
	return step
}

// newCatalogStep returns an observation with the given row of the catalogue, for observations whose
// text matches no row.
func newCatalogStep(link Link, object, seen, id string) Step {
	step := Step{Link: link, Object: object, Verdict: Bad, Observation: seen}
	if row := catalog.FindRow(id); row != nil {
		finding := row.ToFinding(seen)
		step.Finding = &finding
	}
	return step
}

// newHiddenStep returns a step for objects that the caller may not read.
func newHiddenStep(link Link, object, command string) Step {
	return Step{Link: link, Object: object, Verdict: Hidden, Observation: "you may not read this: ask a platform admin: `" + command + "`"}
}
