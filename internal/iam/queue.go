package iam

// queue is where Karpenter hears of instances that are about to go.
type queue struct {
	name, arn string
	rules     []rule
}

// rule puts events of a kind into the queue.
type rule struct {
	topic, name, arn   string
	source, detailType string
}

// seconds that a message is kept: what is older than this, an instance that was to
// go has gone.
const retention = 300

// queueName is the cluster's own, as Karpenter's guides have it.
func (n *needs) queueName() string { return shortened(n.cluster, maxQueueName) }

func (n *needs) queue() string {
	return "arn:" + partition + ":sqs:" + region + ":" + account + ":" + n.queueName()
}

func queueOf(n *needs) queue {
	q := queue{name: n.queueName(), arn: n.queue()}
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
		r.name = shortened("Karpenter-"+r.topic+"-"+n.cluster, maxRuleName)
		r.arn = "arn:" + partition + ":events:" + region + ":" + account + ":rule/" + r.name
		q.rules = append(q.rules, r)
	}
	return q
}

// pattern is what a rule waits for.
func (r rule) pattern() map[string]any {
	return map[string]any{"source": []any{r.source}, "detail-type": []any{r.detailType}}
}
