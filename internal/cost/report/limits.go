package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"croft.dev/croft/internal/cost/ledger"
)

// DescribeMissing names the price that a row lacks.
func DescribeMissing(row *ledger.Row) string {
	switch {
	case row.Resource == ledger.LoadBalancerResource:
		return "load balancers (loadBalancerHour)"
	case row.Resource == ledger.VolumeResource && row.InstanceType == "":
		return "volumes without a StorageClass"
	case row.Resource == ledger.VolumeResource:
		return fmt.Sprintf("volumes of StorageClass %s (volumes.%s)", row.InstanceType, row.InstanceType)
	case row.InstanceType == "":
		return "nodes that are deleted, or have no label with their instance type"
	case row.CapacityType == "":
		return fmt.Sprintf("nodes of type %s without a label with their capacity type", row.InstanceType)
	default:
		return fmt.Sprintf("%s nodes of type %s (instances.%s.%s)", row.CapacityType, row.InstanceType,
			row.InstanceType, row.CapacityType)
	}
}

// describeLimits describes the parts of the period that cannot be known from existing objects.
func (b *builder) describeLimits(in ledger.Input, period ledger.Span) []string {
	limits := []string{
		"deleted nodes, volumes and load balancers are missing: the total is a lower bound",
		"deleted pods count as idle: idle cost is an upper bound, and cost a lower bound",
		"namespaces count for the tenant and the cost code that their labels name now",
	}
	oldest := period.Until
	for i := range in.Nodes {
		if in.Nodes[i].From.Before(oldest) {
			oldest = in.Nodes[i].From
		}
	}
	if oldest.After(period.From) {
		limits = append(limits, fmt.Sprintf("from %s until %s the cost of nodes is unknown: all nodes are younger",
			period.From.UTC().Format(time.RFC3339), oldest.UTC().Format(time.RFC3339)))
	}
	if estimated := listEstimates(in.Nodes); len(estimated) > 0 {
		limits = append(limits, "these prices are estimated, as another region's or as the present price of spot "+
			"instances: "+strings.Join(estimated, "; "))
	}
	return append(limits, b.describeUnrequested()...)
}

func (b *builder) describeUnrequested() []string {
	if len(b.unrequested) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("workloads that request neither CPU nor memory cost nothing: there are %d", len(b.unrequested))}
}

// listEstimates returns the sources of estimated prices.
func listEstimates(nodes []ledger.Node) []string {
	sources := map[string]bool{}
	for i := range nodes {
		if nodes[i].Price.Estimated {
			sources[nodes[i].Price.Source] = true
		}
	}
	return slices.Sorted(maps.Keys(sources))
}
