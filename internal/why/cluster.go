package why

import (
	corev1 "k8s.io/api/core/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/latency"
)

func ofNode(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: "the node is not as it should be"}
	node := s.node(s.Target.Name)
	story.Steps = nodeSteps(s, node)
	claim := s.claimOf(node.Name)
	switch {
	case claim != nil && !done(claim):
		story.Steps = append(claimSteps(s, claim), story.Steps...)
	case claim == nil && s.hidden("nodeclaim"):
		story.Steps = append(story.Steps, askAdmin(LinkClaim, "nodeclaim of "+node.Name, "croft why node/"+node.Name))
	}
	if claim != nil {
		story.Latency = latencyOf(s, node, claim)
	}
	return summed(story, "is ready, and nothing is wrong"+undrainable(s, s.Pods))
}

// latencyOf describes the time that a node took to become ready.
func latencyOf(s *Snapshot, node *corev1.Node, claim *karpenterv1.NodeClaim) string {
	timelines := latency.Build(latency.Objects{
		Claims: []karpenterv1.NodeClaim{*claim}, Nodes: []corev1.Node{*node}, Pods: s.Pods, Events: s.Events,
	}, latency.Options{})
	return timelines[0].Sentence()
}

func ofClaim(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: "the NodeClaim is not as it should be"}
	claim := find(s.Claims, func(c *karpenterv1.NodeClaim) bool { return c.Name == s.Target.Name })
	story.Steps = claimSteps(s, claim)
	if pool := s.pool(claim.Labels[nodePoolLabel]); pool != nil && !done(claim) {
		story.Steps = append(story.Steps, onlyWrong(poolSteps(s, pool))...)
	}
	return summed(story, "is launched, registered and initialized, and nothing is wrong")
}

func ofNodePool(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: "the NodePool is not as it should be", Steps: nodePoolSteps(s)}
	return summed(story, "is ready, and nothing is wrong")
}

// ofPool reports the operator's conditions of a Pool, and the state of its NodePool.
func ofPool(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: "is not Ready"}
	pool, ok := s.Object.(*v1alpha1.Pool)
	if !ok {
		return conclude(story)
	}
	story.Steps = statusSteps(LinkPool, s.Target.String(), pool.Generation, &pool.Status.Status)
	if s.pool(pool.Name) != nil {
		story.Steps = append(story.Steps, onlyWrong(nodePoolSteps(s))...)
	} else if s.hidden("nodepool") {
		story.Steps = append(story.Steps, askAdmin(LinkPool, "nodepool/"+pool.Name, "croft why "+s.Target.String()))
	}
	return summed(story, "is Ready, as the operator last observed it, and nothing is wrong")
}

// nodePoolSteps evaluates the Target's NodePool and its NodeClaims.
func nodePoolSteps(s *Snapshot) []Step {
	pool := s.pool(s.Target.Name)
	steps := poolSteps(s, pool)
	for i := range s.Claims {
		if !done(&s.Claims[i]) {
			steps = append(steps, claimSteps(s, &s.Claims[i])...)
		}
	}
	if hasBad(steps) || len(s.Claims) == 0 {
		steps = append(steps, launchesFailed(s, pool.Name)...)
	}
	return steps
}

// summed concludes a story, with the summary healthy if nothing is wrong.
func summed(story Story, healthy string) Story {
	story = conclude(story)
	switch story.Verdict {
	case Good:
		story.Summary, story.Steps = healthy, nil
	case Waiting:
		story.Summary = "is on its way"
	case Bad, Hidden:
	}
	return story
}
