package iam

// queue receives events about instances that are about to be interrupted.
type queue struct {
	name, arn string
	rules     []rule
}

// rule sends events of one kind to the queue.
type rule struct {
	topic, name, arn   string
	source, detailType string
}

// retention is how long a message is kept, in seconds. When a message is older, its
// instance no longer exists.
const retention = 300

// queueName returns the cluster's name, as in Karpenter's guides, if it is not too long.
func (n *needs) queueName() string { return shortenName(n.cluster, maxQueueName) }

func (n *needs) queueARN() string {
	return "arn:" + partition + ":sqs:" + region + ":" + account + ":" + n.queueName()
}

func buildQueue(n *needs) queue {
	q := queue{name: n.queueName(), arn: n.queueARN()}
	kinds := []rule{
		{topic: "spot", source: "aws.ec2", detailType: "EC2 Spot Instance Interruption Warning"},
		{topic: "rebalance", source: "aws.ec2", detailType: "EC2 Instance Rebalance Recommendation"},
		{topic: "state", source: "aws.ec2", detailType: "EC2 Instance State-change Notification"},
		{topic: "health", source: "aws.health", detailType: "AWS Health Event"},
	}
	if n.reserved {
		kinds = append(kinds, rule{topic: "reservation", source: "aws.ec2", detailType: "EC2 Capacity Reservation Instance Interruption Warning"})
	}
	for _, r := range kinds {
		r.name = shortenName("Karpenter-"+r.topic+"-"+n.cluster, maxRuleName)
		r.arn = "arn:" + partition + ":events:" + region + ":" + account + ":rule/" + r.name
		q.rules = append(q.rules, r)
	}
	return q
}

// buildPattern returns the event pattern of a rule.
func (r rule) buildPattern() map[string]any {
	return map[string]any{"source": []any{r.source}, "detail-type": []any{r.detailType}}
}
