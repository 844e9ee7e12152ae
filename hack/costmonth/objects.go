package main

import (
	"fmt"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/price"
)

// team is a tenant of examples/two-tenants.yaml. Its namespace has its name.
type team struct{ tenant, pool, costCode string }

var (
	webTeam = team{"tenant-a", "pool-a", "team-a"}
	jobTeam = team{"tenant-b", "pool-b", "team-b"}
)

// capacity is the part of an instance that is allocatable to pods: thousandths of a CPU, and MiB.
type capacity struct{ cpu, memory int64 }

var capacities = map[string]capacity{"t3a.large": {1930, 7168}, "m5.large": {1930, 7168}, "c6i.2xlarge": {7910, 14848}}

// Times of a day, in UTC.
const (
	dayBegins, dayEnds     = 8 * time.Hour, 18 * time.Hour
	nightBegins, nightEnds = 20 * time.Hour, 30 * time.Hour
)

// simulateObjects returns the objects of both teams. Team-a has web servers, and more of them by day from
// Monday to Friday. Team-b trains models at night, on two more nodes each week.
func simulateObjects(period ledger.Span, prices *price.List) ledger.Input {
	s := &simulation{prices: prices}
	always := ledger.Span{From: period.From}
	for _, t := range []team{webTeam, jobTeam} {
		s.Owners = append(s.Owners, ledger.Owner{Namespace: t.tenant, Tenant: t.tenant, CostCode: t.costCode, Span: always})
	}
	for i := range 2 {
		s.addNode(webTeam, fmt.Sprintf("web-%d", i), "m5.large", always, "Deployment/nginx", 2, capacity{500, 1024})
	}
	s.LoadBalancers = append(s.LoadBalancers, ledger.LoadBalancer{Namespace: webTeam.tenant, Workload: "Service/nginx", Price: prices.FindLoadBalancer(), Span: always})
	s.addNode(jobTeam, "api-0", "t3a.large", always, "Deployment/nginx", 3, capacity{250, 512})
	s.Volumes = append(s.Volumes, ledger.Volume{Namespace: jobTeam.tenant, Workload: "PersistentVolumeClaim/models", Class: "gp3", Size: 500 << 10,
		Price: prices.FindVolume("gp3"), Span: always})
	first := period.From.Truncate(day)
	// The first night begins on the day before.
	for date := first.Add(-day); date.Before(period.Until); date = date.Add(day) {
		if weekday := date.Weekday(); weekday != time.Saturday && weekday != time.Sunday {
			s.addNode(webTeam, "peak-"+date.Format(time.DateOnly), "t3a.large", ledger.Span{From: date.Add(dayBegins), Until: date.Add(dayEnds)},
				"Deployment/nginx", 2, capacity{500, 1024})
		}
		night := ledger.Span{From: date.Add(nightBegins), Until: date.Add(nightEnds)}
		for i := range 4 + 2*int(date.Sub(first)/(weekDays*day)) {
			s.addNode(jobTeam, fmt.Sprintf("night-%s-%d", date.Format(time.DateOnly), i), "c6i.2xlarge", night, "CronJob/training", 1, capacity{6000, 12 << 10})
		}
	}
	return s.Input
}

type simulation struct {
	ledger.Input
	prices *price.List
}

// addNode adds an on-demand node with some pods of one workload, which run as long as the node.
func (s *simulation) addNode(t team, name, instanceType string, span ledger.Span, workload string, pods int, requests capacity) {
	const capacityType = "on-demand"
	size := capacities[instanceType]
	s.Nodes = append(s.Nodes, ledger.Node{
		Name: name, Pool: t.pool, CapacityType: capacityType, InstanceType: instanceType, Span: span, CPU: size.cpu, Memory: size.memory, Observed: span.From,
		Price: s.prices.FindInstance(price.Offering{Pool: t.pool, CapacityType: capacityType, InstanceType: instanceType}),
	})
	for range pods {
		s.Pods = append(s.Pods, ledger.Pod{Namespace: t.tenant, Workload: workload, Node: name, CPU: requests.cpu, Memory: requests.memory, Span: span})
	}
}
