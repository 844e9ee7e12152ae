package why

import (
	corev1 "k8s.io/api/core/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/latency"
)

func explainNode(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: "the node has problems"}
	node := s.findNode(s.Target.Name)
	story.Steps = evaluateNode(s, node)
	claim := s.findClaim(node.Name)
	switch {
	case claim != nil && !isInitialized(claim):
		story.Steps = append(evaluateClaim(s, claim), story.Steps...)
	case claim == nil && s.isHidden("nodeclaim"):
		story.Steps = append(story.Steps, newHiddenStep(LinkClaim, "nodeclaim of "+node.Name, "croft why node/"+node.Name))
	}
	if claim != nil {
		story.Latency = describeLatency(s, node, claim)
	}
	return concludeHealthy(story, "is ready, and nothing is wrong"+describeUndrainable(s, s.Pods))
}

// describeLatency describes the time that a node took to become ready.
func describeLatency(s *Snapshot, node *corev1.Node, claim *karpenterv1.NodeClaim) string {
	timelines := latency.Build(latency.Objects{
		Claims: []karpenterv1.NodeClaim{*claim}, Nodes: []corev1.Node{*node}, Pods: s.Pods, Events: s.Events,
	}, latency.Options{})
	return timelines[0].Sentence()
}

func explainClaim(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: "the NodeClaim has problems"}
	claim := findFirst(s.Claims, func(c *karpenterv1.NodeClaim) bool { return c.Name == s.Target.Name })
	story.Steps = evaluateClaim(s, claim)
	if pool := s.findPool(claim.Labels[nodePoolLabel]); pool != nil && !isInitialized(claim) {
		story.Steps = append(story.Steps, dropGood(evaluatePool(s, pool))...)
	}
	return concludeHealthy(story, "is launched, registered and initialized, and nothing is wrong")
}

func explainNodePool(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: "the NodePool has problems", Steps: evaluateNodePool(s)}
	return concludeHealthy(story, "is ready, and nothing is wrong")
}

// explainPool reports the operator's conditions of a Pool, and the state of its NodePool.
func explainPool(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: "is not Ready"}
	pool, ok := s.Object.(*v1alpha1.Pool)
	if !ok {
		return conclude(story)
	}
	story.Steps = evaluateStatus(LinkPool, s.Target.String(), pool.Generation, &pool.Status.Status)
	if s.findPool(pool.Name) != nil {
		story.Steps = append(story.Steps, dropGood(evaluateNodePool(s))...)
	} else if s.isHidden("nodepool") {
		story.Steps = append(story.Steps, newHiddenStep(LinkPool, "nodepool/"+pool.Name, "croft why "+s.Target.String()))
	}
	return concludeHealthy(story, "is Ready, as the operator last observed it, and nothing is wrong")
}

// evaluateNodePool evaluates the Target's NodePool and its NodeClaims.
func evaluateNodePool(s *Snapshot) []Step {
	pool := s.findPool(s.Target.Name)
	steps := evaluatePool(s, pool)
	for i := range s.Claims {
		if !isInitialized(&s.Claims[i]) {
			steps = append(steps, evaluateClaim(s, &s.Claims[i])...)
		}
	}
	if hasBad(steps) || len(s.Claims) == 0 {
		steps = append(steps, findFailedLaunch(s, pool.Name)...)
	}
	return steps
}

// concludeHealthy concludes a story, with the summary healthy if nothing is wrong.
func concludeHealthy(story Story, healthy string) Story {
	story = conclude(story)
	switch story.Verdict {
	case Good:
		story.Summary, story.Steps = healthy, nil
	case Waiting:
		story.Summary = "is in progress"
	case Bad, Hidden:
	}
	return story
}
