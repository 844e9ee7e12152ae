package recommend

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/price"
)

// formatKinds returns the kinds, pools and savings of the recommendations.
func formatKinds(r *Report) string {
	var all []string
	for i := range r.Recommendations {
		all = append(all, fmt.Sprint(r.Recommendations[i].Kind, " ", r.Recommendations[i].Pool, " ", r.Recommendations[i].MonthlySavings.Format(2)))
	}
	return strings.Join(all, ", ")
}

// onePer keeps the pods of one controller on different nodes.
func onePer(topologyKey string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: topologyKey, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}}}
}

// TestBuild changes one thing at a time in clusters for which a change is recommended.
func TestBuild(t *testing.T) {
	never := func(s *v1alpha1.PoolSpec) { s.EmptyTTL = v1alpha1.Never }
	underutilized := func(s *v1alpha1.PoolSpec) { s.Consolidation = v1alpha1.ConsolidateWhenUnderutilized }
	// Four nodes with a quarter of their size in use: the pods fit on one.
	spread := func() Input { return makeCluster(t, "m5.xlarge", 4, 1, 900, 3000) }
	// Two large nodes with small pods that fit on two small nodes.
	large := func() Input {
		in := makeCluster(t, "m5.2xlarge", 2, 1, 1500, 6000)
		in.Pools[0] = makePool("apps", underutilized)
		in.Pools[0].Spec.Instances.InstanceTypes = []string{"m5.2xlarge"}
		in.addType("m5.large")
		return in
	}
	// Full nodes, on which nothing but their capacity type and requests can change.
	full := func() Input { return makeCluster(t, "m5.large", 2, 1, 1800, 7000) }
	idle := func() Input {
		in := full()
		in.Pods = in.Pods[:1]
		in.Pools[0] = makePool("apps", never)
		in.Prices = price.New()
		return in
	}
	eachPod := func(change func(*corev1.Pod)) func(*Input) {
		return func(in *Input) {
			for i := range in.Pods {
				change(&in.Pods[i])
			}
		}
	}
	for name, c := range map[string]struct {
		in     func() Input
		change func(*Input)
		want   string
		limit  string
	}{
		"an idle node": {idle, nil, "IdleNodes apps 70.08", ""},
		"an idle node that Karpenter deletes": {idle, func(in *Input) { in.Pools[0] = makePool("apps", nil) }, "",
			"pool apps: 1 of 2 nodes without pods: Karpenter deletes such nodes after emptyTTL 1h"},
		"an idle node for a day": {idle, func(in *Input) { in.Pools[0].Spec.EmptyTTL = "24h" }, "IdleNodes apps 70.08", ""},
		"an idle node with a daemon": {idle, func(in *Input) {
			in.Pods = append(in.Pods, makePod("proxy", "DaemonSet", "proxy", "n1", 100, 0))
		}, "IdleNodes apps 70.08", ""},
		"a platform's pod on the idle node": {idle, func(in *Input) {
			in.Pods = append(in.Pods, makePod("dns", "Deployment", "dns", "n1", 1800, 7000))
		}, "", ""},
		"a finished pod on the idle node": {idle, func(in *Input) {
			done := makePod("done", "Job", "done", "n1", 100, 100)
			done.Status.Phase = corev1.PodSucceeded
			in.Pods = append(in.Pods, done)
		}, "IdleNodes apps 70.08", ""},
		"a pool without a Pool": {idle, func(in *Input) { in.Pools = nil }, "", ""},

		"pods that fit on one node": {spread, nil, "Consolidation apps 438.00, CapacityType apps 350.40", "recommendations for one pool exclude each other"},
		"Karpenter consolidates":    {spread, func(in *Input) { in.Pools[0] = makePool("apps", underutilized) }, "CapacityType apps 350.40", ""},
		"an anti-affinity":          {spread, eachPod(func(p *corev1.Pod) { p.Spec.Affinity = onePer(corev1.LabelHostname) }), "CapacityType apps 350.40", ""},
		"an anti-affinity of the first pod": {spread, func(in *Input) { in.Pods[0].Spec.Affinity = onePer(corev1.LabelHostname) },
			"CapacityType apps 350.40, Consolidation apps 292.00", ""},
		"an anti-affinity of one pod": {spread, func(in *Input) { in.Pods[2].Spec.Affinity = onePer(corev1.LabelHostname) },
			"CapacityType apps 350.40, Consolidation apps 292.00", ""},
		"a topology spread constraint": {spread, eachPod(func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
		}), "CapacityType apps 350.40", ""},
		"a port of the host": {spread, eachPod(func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80, Protocol: corev1.ProtocolTCP}}
		}), "CapacityType apps 350.40", ""},
		"pods in two zones": {spread, func(in *Input) {
			in.Nodes[0].Labels[corev1.LabelTopologyZone], in.Nodes[1].Labels[corev1.LabelTopologyZone] = "b", "b"
		}, "CapacityType apps 350.40, Consolidation apps 292.00", ""},
		"daemons": {spread, func(in *Input) {
			for i := range 4 {
				in.Pods = append(in.Pods, makePod(fmt.Sprint("agent-", i), "DaemonSet", "agent", fmt.Sprint("n", i), 1300, 0))
			}
		}, "CapacityType apps 350.40, Consolidation apps 292.00", ""},
		"a device": {spread, func(in *Input) {
			in.Pods[0].Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
		}, "", "pool apps: it is not simulated: pod shop/web-0-0 requests nvidia.com/gpu, and the simulation knows only CPU and memory"},
		"a pod that must stay": {spread, func(in *Input) {
			in.Pods[0].Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"}
		}, "", "pool apps: it is not simulated: pod shop/web-0-0 must not be moved"},
		"a volume of a node": {spread, func(in *Input) {
			in.Pods[0].Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
			in.Volumes = []corev1.PersistentVolume{{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data"},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"n0"}}}}}}}}}}
		}, "", "pod shop/web-0-0 has a volume that is bound to its node (claim data)"},
		"an anti-affinity for racks": {spread, eachPod(func(p *corev1.Pod) { p.Spec.Affinity = onePer("rack") }), "",
			"pool apps: it is not simulated: pod shop/web-0-0 has a pod anti-affinity for rack"},
		"a node that is being deleted": {spread, func(in *Input) { in.Nodes[0].DeletionTimestamp = ptr.To(metav1.Now()) }, "",
			"pool apps: its nodes are changing: node n0 is being deleted"},
		"a type that the Pool no longer allows": {spread, func(in *Input) { in.Pools[0].Spec.Instances.InstanceTypes = []string{"m5.large"} }, "",
			"the Pool does not allow on-demand instances of type m5.xlarge, such as node n3"},
		"a capacity type that the Pool no longer allows": {spread, func(in *Input) { in.Nodes[1].Labels[karpenterv1.CapacityTypeLabelKey] = "spot" }, "",
			"the Pool does not allow spot instances of type m5.xlarge, such as node n1"},

		"a cheaper type":          {large, nil, "InstanceType apps 438.00", ""},
		"savings below 10 %":      {large, func(in *Input) { in.Prices = parsePrices(t, strings.Replace(testPrices, "0.1,", "0.181,", 1)) }, "", ""},
		"savings of 10 %":         {large, func(in *Input) { in.Prices = parsePrices(t, strings.Replace(testPrices, "0.1,", "0.18,", 1)) }, "InstanceType apps 321.20", ""},
		"a type without a price":  {large, func(in *Input) { in.Nodes[2].Labels[corev1.LabelInstanceTypeStable] = "x9.huge" }, "", ""},
		"a pod that is too large": {large, func(in *Input) { in.Pods[0] = makePod("web-0-0", "StatefulSet", "web", "n0", 1901, 0) }, "", ""},
		"a size that Karpenter estimates lower": {large, func(in *Input) {
			in.Claims = []karpenterv1.NodeClaim{{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelInstanceTypeStable: "m5.large"}},
				Status: karpenterv1.NodeClaimStatus{Allocatable: makeResources(1400, 7000, "29")}}}
		}, "", ""},
		"another architecture":        {large, func(in *Input) { in.Nodes[2] = makeNode("arm", "", "m6g.large", "a", "on-demand") }, "", ""},
		"a burstable type":            {large, func(in *Input) { in.Nodes[2] = makeNode("t3", "", "t3.large", "a", "on-demand") }, "", ""},
		"a type that the Pool allows": {large, func(in *Input) { in.Pools[0].Spec.Instances.InstanceTypes = nil }, "", ""},
		"limits of the Pool": {large, func(in *Input) {
			in.Pools[0].Spec.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
		}, "", ""},
		"a requirement of the Pool": {large, func(in *Input) {
			in.Pools[0].Spec.Instances.Requirements = []v1alpha1.Requirement{{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpNotIn,
				Values: []string{"m5.large"}}}
		}, "", ""},
		"a choice of types": {large, func(in *Input) {
			in.Pools[0].Spec.Instances.Requirements = []v1alpha1.Requirement{{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpExists, MinValues: ptr.To(2)}}
		}, "", ""},
		"a pod that selects its type": {large, func(in *Input) {
			in.Pods[0].Spec.NodeSelector = map[string]string{corev1.LabelInstanceTypeStable: "m5.2xlarge"}
		}, "", ""},

		"on-demand nodes":         {full, nil, "CapacityType apps 87.60", ""},
		"a workload with one pod": {full, func(in *Input) { in.Pods[1].OwnerReferences[0].Name = "api" }, "", ""},
		"pods of a Job":           {full, eachPod(func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Job" }), "", ""},
		"a Pool that allows spot": {full, func(in *Input) {
			in.Pools[0].Spec.Instances.CapacityTypes = []v1alpha1.CapacityType{"on-demand", "spot"}
		}, "", ""},
		"a spot price above 90 %": {full, func(in *Input) { in.Prices = parsePrices(t, strings.Replace(testPrices, "0.04", "0.091", 1)) }, "", ""},
		"a requirement for on-demand": {full, func(in *Input) {
			in.Pools[0].Spec.Instances.Requirements = []v1alpha1.Requirement{{Key: karpenterv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"spot"}}}
		}, "", ""},
		"a pod that selects on-demand": {full, func(in *Input) {
			in.Pods[0].Spec.NodeSelector = map[string]string{karpenterv1.CapacityTypeLabelKey: "on-demand"}
		}, "", ""},

		"requests above usage": {full, func(in *Input) {
			in.use("web-0-0", 300, 1000)
			in.use("web-1-0", 400, 2000)
		}, "CapacityType apps 87.60, Requests apps 73.00", ""},
		"requests twice as high as usage": {func() Input { return makeCluster(t, "m5.large", 2, 1, 1200, 4800) }, func(in *Input) {
			in.use("web-0-0", 600, 2400)
			in.use("web-1-0", 600, 2400)
		}, "CapacityType apps 87.60", ""},
		"requests more than twice as high as usage": {func() Input { return makeCluster(t, "m5.large", 2, 1, 1200, 4800) }, func(in *Input) {
			in.use("web-0-0", 599, 2399)
			in.use("web-1-0", 599, 2399)
		}, "CapacityType apps 87.60, Requests apps 73.00", ""},
		"lower requests that save less than 10 %": {func() Input { return makeCluster(t, "m5.large", 12, 1, 1800, 7000) }, func(in *Input) {
			for i := range 2 {
				in.Pods[i].OwnerReferences[0].Name = "api"
				in.use(in.Pods[i].Name, 300, 1000)
			}
		}, "CapacityType apps 525.60", ""},
		"usage of one pod": {full, func(in *Input) { in.use("web-0-0", 300, 1000) }, "CapacityType apps 87.60", ""},
		"memory below usage does not help": {full, func(in *Input) {
			in.use("web-0-0", 100, 6000)
			in.use("web-1-0", 100, 6000)
		}, "CapacityType apps 87.60", ""},
		"unknown usage": {full, func(in *Input) { in.Usage, in.UsageProblem = nil, "it is unknown" }, "CapacityType apps 87.60", "requests are not compared with usage: it is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			in := c.in()
			if c.change != nil {
				c.change(&in)
			}
			r := Build(in)
			if got := formatKinds(r); got != c.want {
				t.Errorf("%q, want %q; limits: %s", got, c.want, strings.Join(r.Limits, "; "))
			}
			if !slices.ContainsFunc(r.Limits, func(l string) bool { return strings.Contains(l, c.limit) }) {
				t.Errorf("no limit %q: %s", c.limit, strings.Join(r.Limits, "; "))
			}
			if (r.MonthlySavings == nil) != strings.Contains(c.want, ",") {
				t.Errorf("the sum of %q is %v", c.want, r.MonthlySavings)
			}
			for i := range r.Recommendations {
				checkChange(t, &in, &r.Recommendations[i])
				checkSavings(t, &in, &r.Recommendations[i])
			}
		})
	}
}

// checkChange reads the change as a part of croft.yaml, and compares it with the simulated nodes.
func checkChange(t *testing.T, in *Input, r *Recommendation) {
	t.Helper()
	var file struct {
		Pools map[string]v1alpha1.PoolSpec `json:"pools"`
	}
	if err := yaml.UnmarshalStrict([]byte(r.Change), &file); err != nil {
		t.Errorf("%s: %v: %s", r.Kind, err, r.Change)
	}
	spec := file.Pools[r.Pool]
	switch r.Kind {
	case IdleNodes:
		if spec.EmptyTTL != "1h" {
			t.Errorf("%s: %s", r.Kind, r.Change)
		}
	case InstanceType:
		for _, n := range r.placed {
			if !slices.Equal(spec.Instances.InstanceTypes, []string{n.offering.InstanceType}) {
				t.Errorf("nodes of type %s: %s", n.offering.InstanceType, r.Change)
			}
		}
	case CapacityType:
		if !slices.Contains(spec.Instances.CapacityTypes, karpenterv1.CapacityTypeSpot) || len(spec.Instances.CapacityTypes) < 2 {
			t.Errorf("%s: %s", r.Kind, r.Change)
		}
	case Consolidation:
		at := slices.IndexFunc(in.Pools, func(p v1alpha1.Pool) bool { return p.Name == r.Pool })
		if spec.Consolidation != v1alpha1.ConsolidateWhenUnderutilized || spec.EmptyTTL == "" && in.Pools[at].Spec.EmptyTTL == v1alpha1.Never {
			t.Errorf("%s: %s", r.Kind, r.Change)
		}
	case Requests:
		if len(r.Requests) == 0 {
			t.Errorf("%s without requests", r.Kind)
		}
	}
}

// TestMissingPrice expects no recommendation for a pool with a node of an unknown price, and the name of the price.
func TestMissingPrice(t *testing.T) {
	in := makeCluster(t, "m5.xlarge", 4, 1, 900, 3000)
	in.Nodes[3].Labels[corev1.LabelInstanceTypeStable] = "x9.huge"
	r := Build(in)
	if want := []string{"on-demand nodes of type x9.huge (instances.x9.huge.on-demand)"}; len(r.Recommendations) > 0 || !slices.Equal(r.MissingPrices, want) {
		t.Errorf("%s; missing prices: %q", formatKinds(r), r.MissingPrices)
	}
}

// TestTexts expects the sentences and the changes of the documentation.
func TestTexts(t *testing.T) {
	in := makeCluster(t, "m5.xlarge", 4, 1, 900, 3000)
	in.addType("m5.large")
	in.Pools[0].Spec.EmptyTTL = v1alpha1.Never
	for i := range 4 {
		in.use(fmt.Sprintf("web-%d-0", i), 100, 500)
	}
	in.Nodes = append(in.Nodes, makeNode("n9", "apps", "m5.large", "a", "on-demand"))
	var got []string
	for _, r := range Build(in).Recommendations {
		got = append(got, fmt.Sprintf("%s\n%s\n%s%+v\n%s\n", r.Reason, strings.Join(r.Tenants, " "), r.Change, r.Requests, strings.Join(r.Assumptions, "\n")))
	}
	want := []string{
		`4 pods fit on 1 node of type m5.xlarge, and run on 4 m5.xlarge
shop
pools:
  apps:
    consolidation: WhenEmptyOrUnderutilized
    emptyTTL: 1h
[]
` + assumeMoves + "\n",
		`4 of 4 on-demand nodes can be spot, at the present spot price: each workload has at least two pods
shop
pools:
  apps:
    instances:
      capacityTypes:
      - on-demand
      - spot
[]
` + assumeSpot + "\n" + assumeStock + "\n" + assumeOld + "\n",
		`1 of 5 nodes without pods: emptyTTL Never keeps such nodes

pools:
  apps:
    emptyTTL: 1h
[]
no pod needs these nodes for the whole month
`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRequests expects requests of 3/2 of the highest usage, rounded up, and the size that they have in Kubernetes.
func TestRequests(t *testing.T) {
	in := makeCluster(t, "m5.large", 2, 1, 1800, 7000)
	in.use("web-0-0", 301, 1000)
	in.use("web-1-0", 401, 2001)
	r := Build(in).Recommendations[1]
	want := Request{Workload: "shop/StatefulSet/web", Container: "main", CPU: "610m", CPUNow: "1800m", Memory: "3008Mi", MemoryNow: "7000Mi"}
	if len(r.Requests) != 1 || r.Requests[0] != want || !strings.HasPrefix(r.Reason, "1 container requests more than twice its present usage: ") {
		t.Errorf("%s: %+v", r.Reason, r.Requests)
	}
}

// TestEstimatedTypes computes the size of a type that only Karpenter's metrics have.
func TestEstimatedTypes(t *testing.T) {
	metrics := ""
	hourly := map[bool]string{false: "0.09", true: "5"}
	for name, whole := range map[string][2]int64{"m5.2xlarge": {8, 32768}, "m6i.large": {2, 8192}, "m6i.12xlarge": {48, 196608}, "u9.large": {2, 8192}} {
		metrics += fmt.Sprintf("karpenter_cloudprovider_instance_type_cpu_cores{instance_type=%q} %d\n", name, whole[0]) +
			fmt.Sprintf("karpenter_cloudprovider_instance_type_memory_bytes{instance_type=%q} %d\n", name, whole[1]<<20) +
			fmt.Sprintf("karpenter_cloudprovider_instance_type_offering_price_estimate{capacity_type=\"on-demand\",instance_type=%q,zone=\"a\"} %s\n", name, hourly[name == "m6i.12xlarge"])
	}
	in := makeCluster(t, "m5.2xlarge", 2, 1, 1500, 6000)
	in.Pools[0].Spec.Consolidation, in.Pools[0].Spec.Instances.InstanceTypes = v1alpha1.ConsolidateWhenUnderutilized, []string{"m5.2xlarge"}
	if err := in.Prices.AddEstimates("metrics.txt", []byte(metrics)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, each := range readTypes(in) {
		got = append(got, fmt.Sprint(each.name, " ", each.allocatable, " ", each.measured))
	}
	// m5.2xlarge reserves 100m of 8000m and 500 MiB of 32768 MiB. u9.large has no known number of addresses. An m5.2xlarge
	// has 29 of 58 pods, and an m6i.large half of its 29.
	want := []string{"m5.2xlarge {7900 32268 29} true", "m6i.12xlarge {47400 193608 29} false", "m6i.large {1900 7692 14} false"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r := Build(in)
	if got := formatKinds(r); got != "InstanceType apps 452.60" {
		t.Errorf("%s, limits: %s", got, strings.Join(r.Limits, "; "))
	}
	for _, c := range []struct {
		requirement v1alpha1.Requirement
		want        string
	}{
		{v1alpha1.Requirement{Key: awsLabels + "instance-generation", Operator: corev1.NodeSelectorOpLt, Values: []string{"6"}}, ""},
		{v1alpha1.Requirement{Key: awsLabels + "instance-generation", Operator: corev1.NodeSelectorOpGt, Values: []string{"5"}}, "InstanceType apps 452.60"},
		{v1alpha1.Requirement{Key: awsLabels + "instance-hypervisor", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"xen"}}, ""},
	} {
		in.Pools[0].Spec.Instances.Requirements = []v1alpha1.Requirement{c.requirement}
		if got := formatKinds(Build(in)); got != c.want {
			t.Errorf("%v: %q, want %q", c.requirement, got, c.want)
		}
	}
	in.Pools[0].Spec.Instances.Requirements = nil
	in.Nodes[0].Labels[corev1.LabelTopologyZone] = "b" // where the cloud offers nothing
	if got := formatKinds(Build(in)); got != "" {
		t.Errorf("in another zone: %s", got)
	}
}
