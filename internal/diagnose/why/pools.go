package why

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/observe/launches"
)

const nodePoolLabel = karpenterv1.NodePoolLabelKey

// condition is a condition of an object of any kind.
type condition struct{ kind, status, reason, message string }

func (c condition) String() string {
	return catalog.FormatCondition(c.kind, c.status, c.reason, c.message)
}

// listConditions reads the conditions of an unstructured object, such as a node class of any
// provider.
func listConditions(o *unstructured.Unstructured) []condition {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var all []condition
	for _, entry := range list {
		if fields, ok := entry.(map[string]any); ok {
			text := func(name string) string { s, _ := fields[name].(string); return s }
			all = append(all, condition{text("type"), text("status"), text("reason"), text("message")})
		}
	}
	return all
}

func listClaimConditions(c *karpenterv1.NodeClaim) []condition {
	var all []condition
	for _, s := range c.Status.Conditions {
		all = append(all, condition{s.Type, string(s.Status), s.Reason, s.Message})
	}
	return all
}

func listPoolConditions(p *karpenterv1.NodePool) []condition {
	var all []condition
	for _, s := range p.Status.Conditions {
		all = append(all, condition{s.Type, string(s.Status), s.Reason, s.Message})
	}
	return all
}

// evaluatePool evaluates a NodePool and its node class.
func evaluatePool(s *Snapshot, pool *karpenterv1.NodePool) []Step {
	object := "nodepool/" + pool.Name
	steps := evaluatePoolClass(s, pool)
	for _, c := range listPoolConditions(pool) {
		// Ready summarizes the other conditions.
		if c.kind != "Ready" && c.status == string(metav1.ConditionFalse) {
			steps = append(steps, newBadStep(LinkPool, object, c.String()))
		}
	}
	if text := FormatRefusal(pool); text != "" {
		steps = append(steps, newBadStep(LinkPool, object, text))
	}
	if len(pool.Status.Conditions) == 0 {
		steps = append(steps, newCatalogStep(LinkPool, object, "Karpenter has not reconciled it: Karpenter does not run, or does not support node classes of its group", "node-class-unknown"))
	}
	if pool.DeletionTimestamp != nil {
		steps = append(steps, newCatalogStep(LinkPool, object, "the NodePool is being deleted", "no-pool"))
	}
	if len(steps) == 0 {
		steps = []Step{newGoodStep(LinkPool, object, "it is ready, and so is its node class")}
	}
	return steps
}

// FormatRefusal describes the refused launches of a pool, in a text that the catalogue recognizes, or
// returns "" if there are none. croft deletes the NodeClaims and records the refusal in the NodePool.
func FormatRefusal(pool *karpenterv1.NodePool) string {
	refusal := launches.ReadRefusal(pool)
	if refusal == nil {
		return ""
	}
	return catalog.FormatCondition(karpenterv1.ConditionTypeLaunched, string(metav1.ConditionUnknown), refusal.Reason, refusal.Message) + "; " + refusal.ExplainHold()
}

func evaluatePoolClass(s *Snapshot, pool *karpenterv1.NodePool) []Step {
	ref, class := pool.Spec.Template.Spec.NodeClassRef, s.Classes[pool.Name]
	if ref == nil {
		return nil
	}
	object := strings.ToLower(ref.Kind) + "/" + ref.Name
	if class == nil {
		if s.isHidden(strings.ToLower(ref.Kind)) {
			return []Step{newHiddenStep(LinkClass, object, "croft why nodepool/"+pool.Name)}
		}
		return []Step{newBadStep(LinkClass, object, catalog.FormatCondition("NodeClassReady", "False", "NodeClassNotFound", "NodeClass not found on cluster"))}
	}
	return EvaluateClass(object, class, time.Now())
}

// EvaluateClass evaluates a node class of any provider. It returns no steps if nothing is
// wrong.
func EvaluateClass(object string, class *unstructured.Unstructured, now time.Time) []Step {
	age := now.Sub(class.GetCreationTimestamp().Time)
	var steps []Step
	for _, c := range listConditions(class) {
		switch {
		case c.kind == "Ready", c.status == string(metav1.ConditionTrue), c.reason == "DependenciesNotReady":
			// Ready summarizes the other conditions, and DependenciesNotReady is no cause
			// of its own.
		case c.status == string(metav1.ConditionFalse):
			steps = append(steps, newBadStep(LinkClass, object, c.String()))
		case age > dryRunTakes && isProfileMissing(class, c):
			steps = append(steps, newCatalogStep(LinkClass, object, "Karpenter's dry run fails without a reason; the usual cause is an instance profile that does not exist", "instance-profile-name"))
		case age < Usual:
			steps = append(steps, newWaitingStep(LinkClass, object, c.String()))
		default:
			steps = append(steps, newBadStep(LinkClass, object, c.String()))
		}
	}
	return steps
}

// dryRunTakes is an upper limit for the duration of Karpenter's dry run.
const dryRunTakes = 15 * time.Second

// isProfileMissing reports whether a class waits for the dry run of an instance profile that
// Karpenter does not manage. Karpenter v1.14 treats EC2's answer that the profile does not
// exist as a delay of propagation, and retries for ever without a message.
func isProfileMissing(class *unstructured.Unstructured, c condition) bool {
	profile, _, _ := unstructured.NestedString(class.Object, "spec", "instanceProfile")
	return profile != "" && c.kind == "ValidationSucceeded" && c.status == string(metav1.ConditionUnknown)
}
