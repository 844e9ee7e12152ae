package why

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/walls/gitops"
)

// These are Flux's reasons for failures in the phases of an apply.
const (
	buildFailed       = "BuildFailed"
	artifactFailed    = "ArtifactFailed"
	healthCheckFailed = "HealthCheckFailed"
	dependencyMissing = "DependencyNotReady"
)

// makeUnstructured returns a function that creates empty objects of a kind without a Go type
// in croft.
func makeUnstructured(kind schema.GroupVersionKind) func() client.Object {
	return func() client.Object {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		return o
	}
}

// fluxStatus contains the fields of a Flux object that describe its state.
type fluxStatus struct {
	Generation int64
	Suspend    bool
	SourceRef  fluxRef
	Observed   int64
	Attempted  string
	Applied    string
	Ready      *metav1.Condition
	// Progress is the controller's current action; nil if it is done.
	Progress *metav1.Condition
}

// fluxRef is the reference to a Kustomization's source.
type fluxRef struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

func readFluxStatus(o *unstructured.Unstructured) fluxStatus {
	var read struct {
		Spec struct {
			Suspend   bool    `json:"suspend"`
			SourceRef fluxRef `json:"sourceRef"`
		} `json:"spec"`
		Status struct {
			ObservedGeneration    int64              `json:"observedGeneration"`
			LastAttemptedRevision string             `json:"lastAttemptedRevision"`
			LastAppliedRevision   string             `json:"lastAppliedRevision"`
			Conditions            []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	// An unreadable status counts as an empty one.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &read)
	s := fluxStatus{
		Generation: o.GetGeneration(), Suspend: read.Spec.Suspend, SourceRef: read.Spec.SourceRef, Observed: read.Status.ObservedGeneration,
		Attempted: read.Status.LastAttemptedRevision, Applied: read.Status.LastAppliedRevision,
	}
	s.Ready = findFirst(read.Status.Conditions, func(c *metav1.Condition) bool { return c.Type == "Ready" })
	s.Progress = findFirst(read.Status.Conditions, func(c *metav1.Condition) bool { return c.Type == "Reconciling" })
	return s
}

// gatherKustomization reads the source of a Kustomization.
func (g *gatherer) gatherKustomization(ctx context.Context, o client.Object) {
	k, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	ref := readFluxStatus(k).SourceRef
	source := &unstructured.Unstructured{}
	source.SetGroupVersionKind(schema.GroupVersionKind{Group: gitops.GitRepository.Group, Version: gitops.GitRepository.Version, Kind: ref.Kind})
	namespace := ref.Namespace
	if namespace == "" {
		namespace = k.GetNamespace()
	}
	if g.getObject(ctx, strings.ToLower(ref.Kind), namespace, ref.Name, source) {
		g.Around.Source = source
	}
}

// explainKustomization explains a Kustomization, from the source to the applied objects.
func explainKustomization(s *Snapshot) Story {
	story := Story{Target: s.Target}
	k, ok := s.Object.(*unstructured.Unstructured)
	if !ok {
		return conclude(story)
	}
	status := readFluxStatus(k)
	story.Summary = "is not applied"
	if status.Attempted != "" {
		story.Summary = "revision " + shortenRevision(status.Attempted) + " is not applied"
	}
	if status.Applied != "" && status.Applied != status.Attempted {
		story.Summary += "; " + shortenRevision(status.Applied) + " is, and its objects remain"
	}
	source, step := evaluateSource(s, status), evaluateApply(s.Target, status)
	if source.Verdict == Waiting && status.Ready != nil && status.Ready.Reason == artifactFailed {
		step = newWaitingStep(LinkApply, s.Target.String(), status.Ready.Message) // there is no artifact yet
	}
	story.Steps = []Step{source, step}
	return concludeHealthy(story, "revision "+shortenRevision(status.Applied)+" is applied, and nothing is wrong")
}

// commit matches a revision with a full digest.
var commit = regexp.MustCompile(`^(.*:[0-9a-f]{8})[0-9a-f]+$`)

// shortenRevision shortens the digest of a revision to 8 digits.
func shortenRevision(revision string) string { return commit.ReplaceAllString(revision, "$1") }

// evaluateSource evaluates the source of a Kustomization.
func evaluateSource(s *Snapshot, status fluxStatus) Step {
	kind := strings.ToLower(status.SourceRef.Kind)
	object := kind + "/" + status.SourceRef.Name
	switch {
	case s.Around.Source != nil:
		return evaluateFetch(object, readFluxStatus(s.Around.Source))
	case s.isHidden(kind):
		return newHiddenStep(LinkSource, object, "croft why "+s.Target.String()+formatNamespaceFlag(s.Target))
	default:
		return newCatalogStep(LinkSource, object, "there is no "+status.SourceRef.Kind+" "+status.SourceRef.Name, "flux-source")
	}
}

// evaluateFetch reports whether source-controller has fetched a source.
func evaluateFetch(object string, status fluxStatus) Step {
	switch {
	case status.Suspend:
		return newWaitingStep(LinkSource, object, "spec.suspend is true: Flux fetches no new content until it is removed")
	case status.Ready == nil || status.Observed < status.Generation && status.Ready.Status != metav1.ConditionFalse:
		return newWaitingStep(LinkSource, object, "source-controller has not fetched it yet: does it run?")
	case status.Ready.Status == metav1.ConditionTrue:
		return newGoodStep(LinkSource, object, status.Ready.Message)
	case status.Ready.Status == metav1.ConditionFalse:
		return newCatalogStep(LinkSource, object, status.Ready.Reason+": "+status.Ready.Message, "flux-source")
	default:
		return newWaitingStep(LinkSource, object, status.Ready.Message)
	}
}

// evaluateApply reports the progress of kustomize-controller.
func evaluateApply(target Target, status fluxStatus) Step {
	object := target.String()
	switch {
	case status.Suspend:
		return newWaitingStep(LinkApply, object, "spec.suspend is true: Flux applies no new content until it is removed")
	case status.Ready == nil:
		return newWaitingStep(LinkApply, object, "kustomize-controller has not processed it yet: does it run?")
	case status.Ready.Status == metav1.ConditionTrue:
		return newGoodStep(LinkApply, object, status.Ready.Message)
	case status.Ready.Status == metav1.ConditionFalse:
		return explainNotApplied(target, status.Ready)
	case status.Progress != nil && strings.HasPrefix(status.Progress.Message, "Building manifests"):
		step := newCatalogStep(LinkBuild, object, status.Progress.Message, "flux-build-waits")
		step.Verdict = Waiting
		return step
	default:
		return newWaitingStep(LinkApply, object, status.Ready.Message)
	}
}

// refusedObject matches the beginning of Flux's messages about one object.
var refusedObject = regexp.MustCompile(`^(\w+)/(?:[\w.-]+/)?([\w.:-]+) (?:dry-run|apply) failed`)

// explainNotApplied explains why a revision was not applied.
func explainNotApplied(target Target, ready *metav1.Condition) Step {
	object, message := target.String(), strings.TrimSpace(ready.Message)
	switch ready.Reason {
	case dependencyMissing:
		return newWaitingStep(LinkApply, object, message)
	case artifactFailed:
		return newCatalogStep(LinkBuild, object, message, "flux-artifact")
	case buildFailed:
		if step := newBadStep(LinkBuild, object, message); step.Finding != nil {
			return step
		}
		return newCatalogStep(LinkBuild, object, message, "flux-build")
	case healthCheckFailed:
		return explainUnhealthy(target, message)
	}
	if m := refusedObject.FindStringSubmatch(message); m != nil {
		object = strings.ToLower(m[1]) + "/" + m[2]
	}
	step := newBadStep(LinkAdmission, object, message)
	if step.Finding == nil {
		step = newCatalogStep(LinkAdmission, object, ready.Reason+": "+message, "flux-refused")
	}
	return step
}

// sick matches an object that a health check waits for.
var sick = regexp.MustCompile(`(\w+)/([\w.-]+)/([\w.-]+) status: '\w+'`)

// explainUnhealthy adds the command that explains the first object that is not ready.
func explainUnhealthy(target Target, message string) Step {
	step := newCatalogStep(LinkHealth, target.String(), message, "flux-unhealthy")
	for _, m := range sick.FindAllStringSubmatch(message, -1) {
		if k := findKind(m[1]); k != nil && step.Finding != nil {
			step.Finding.Run = fmt.Sprintf("croft why %s/%s -n %s", k.name, m[3], m[2])
			break
		}
	}
	return step
}

// explainSource reports whether a source is fetched.
func explainSource(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: "is not fetched"}
	o, ok := s.Object.(*unstructured.Unstructured)
	if !ok {
		return conclude(story)
	}
	status := readFluxStatus(o)
	story.Steps = []Step{evaluateFetch(s.Target.String(), status)}
	if status.Ready != nil {
		return concludeHealthy(story, "is fetched, and nothing is wrong: "+status.Ready.Message)
	}
	return concludeHealthy(story, "is fetched")
}
