package estate

import "testing"

// TestBuildRefuses is about what only several objects together, or a rule that no
// schema can express, get wrong. What is tested begins on line 7, after base.
func TestBuildRefuses(t *testing.T) {
	for _, test := range []badInput{
		// Platform.
		{"two platforms", "---\nplatform: {clusterName: b, nodeClass: {kwok: {}}}\n", []string{
			"croft.yaml:8: platform: a cluster has one platform, and it is declared already (croft.yaml:1); keep one of them"}},
		{"admins who are everybody", "---\nplatform:\n  clusterName: b\n  nodeClass: {kwok: {}}\n  admins: [ops, \"system:authenticated\", \"system:serviceaccounts:ci\", \"system:masters\"]\n", []string{
			"croft.yaml:8: platform: a cluster has one platform, and it is declared already (croft.yaml:1); keep one of them",
			"croft.yaml:11: platform.admins[1]: system:authenticated is Kubernetes' own group and does not hold the platform's admins; name a group of your identity provider",
			"croft.yaml:11: platform.admins[2]: system:serviceaccounts:ci is Kubernetes' own group and does not hold the platform's admins; name a group of your identity provider"}},
		{"a node pool key of Karpenter's", "---\nplatform: {clusterName: b, nodeClass: {kwok: {}}, nodePoolKey: karpenter.sh/nodepool}\n", []string{
			"croft.yaml:8: platform: a cluster has one platform, and it is declared already (croft.yaml:1); keep one of them",
			"croft.yaml:8: platform.nodePoolKey: the label karpenter.sh/nodepool has a meaning already; choose one of your own, such as croft.node-restriction.kubernetes.io/pool"}},
		{"a tenants' default below zero", "---\nplatform: {clusterName: b, nodeClass: {kwok: {}}, tenantDefaults: {quota: {cpu: -1}, limits: {min: {cpu: 2}, max: {cpu: 1}}}}\n", []string{
			"croft.yaml:8: platform: a cluster has one platform, and it is declared already (croft.yaml:1); keep one of them",
			"croft.yaml:8: platform.tenantDefaults.limits.min.cpu: 2 is more than the max of 1; lower it, or raise max",
			"croft.yaml:8: platform.tenantDefaults.quota.cpu: must not be below zero, as -1 is"}},

		// Pools.
		{"an unknown network", "secondaryNetworks:\n  data: {zones: [{zone: a, subnet: s, cidr: 10.0.0.0/24, podCIDR: 10.0.0.128/25}]}\npools: {jobs: {secondaryNetworks: [date, voice]}}\n", []string{
			"croft.yaml:9: pools.jobs.secondaryNetworks[0]: there is no secondary network date; did you mean data?",
			"croft.yaml:9: pools.jobs.secondaryNetworks[1]: there is no secondary network voice; declare it, or name another"}},
		{"a duration beyond counting", "pools:\n  jobs: {ttl: 9999999999999h}\n", []string{
			"croft.yaml:8: pools.jobs.ttl: 9999999999999h is longer than can be counted; write a shorter time"}},
		{"limits below zero", "pools: {jobs: {limits: {cpu: -1, memory: 0}}}\n", []string{
			"croft.yaml:7: pools.jobs.limits.cpu: must not be below zero, as -1 is"}},
		{"requirements on labels that are set", "pools:\n  jobs:\n    instances:\n      requirements:\n" +
			"      - {key: croft.node-restriction.kubernetes.io/pool, operator: In, values: [a]}\n" +
			"      - {key: karpenter.sh/nodepool, operator: Exists}\n" +
			"      - {key: karpenter.sh/initialized, operator: Exists}\n" +
			"      - {key: croft.dev/cost-code, operator: Exists}\n" +
			"      - {key: kubernetes.io/hostname, operator: In, values: [a]}\n" +
			"      - {key: a b, operator: In, values: [\"-\"], minValues: 2}\n", []string{
			"croft.yaml:11: pools.jobs.instances.requirements[0].key: the label croft.node-restriction.kubernetes.io/pool is croft's to set; leave this requirement out",
			"croft.yaml:12: pools.jobs.instances.requirements[1].key: the label karpenter.sh/nodepool is Karpenter's to set; leave this requirement out",
			"croft.yaml:13: pools.jobs.instances.requirements[2].key: the label karpenter.sh/initialized is Karpenter's to set; leave this requirement out",
			"croft.yaml:14: pools.jobs.instances.requirements[3].key: the label croft.dev/cost-code is croft's to set; leave this requirement out",
			"croft.yaml:15: pools.jobs.instances.requirements[4].key: the label kubernetes.io/hostname is Kubernetes's to set; leave this requirement out",
			`croft.yaml:16: pools.jobs.instances.requirements[5].key: "a b" is no label; write one such as karpenter.k8s.aws/instance-family`,
			"croft.yaml:16: pools.jobs.instances.requirements[5].minValues: asks for 2 values, but only 1 are given; lower it, or add values",
			`croft.yaml:16: pools.jobs.instances.requirements[5].values[0]: "-" cannot be the value of a label; write letters, digits, '-', '_' and '.', beginning and ending with a letter or digit`}},
		{"tags that have a meaning", "pools:\n  jobs: {tags: {croft.node-restriction.kubernetes.io/pool: a, kubernetes.io/cluster/demo: owned, team/x: b, ok: c}}\n  apps: {nodeClass: {aws: {role: r}}, tags: {team/x: b, karpenter.sh/nodepool: c}}\n", []string{
			"croft.yaml:8: pools.jobs.tags[\"croft.node-restriction.kubernetes.io/pool\"]: the tag croft.node-restriction.kubernetes.io/pool is croft's to set; choose another",
			"croft.yaml:8: pools.jobs.tags[\"kubernetes.io/cluster/demo\"]: the tag kubernetes.io/cluster/demo is the cluster's to set; choose another",
			"croft.yaml:8: pools.jobs.tags[\"team/x\"]: \"team/x\" cannot be kept on nodes without a cloud; write at most 63 letters, digits, '-', '_' and '.'",
			"croft.yaml:9: pools.apps.tags[\"karpenter.sh/nodepool\"]: the tag karpenter.sh/nodepool is Karpenter's to set; choose another"}},
		{"a pool nobody can use", "pools:\n" +
			"  a: {instances: {requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]}}\n" +
			"  b: {instances: {instanceTypes: [m5.large], requirements: [{key: node.kubernetes.io/instance-type, operator: NotIn, values: [m5.large]}]}}\n" +
			"  c: {instances: {requirements: [{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: [\"8\"]}, {key: karpenter.k8s.aws/instance-cpu, operator: Lt, values: [\"9\"]}]}}\n" +
			"  d: {instances: {instanceTypes: [m6g.large, a1.large], architectures: [amd64]}}\n" +
			"  e: {instances: {requirements: [{key: beta.kubernetes.io/instance-type, operator: In, values: [m6g.large]}]}}\n" +
			"  f: {instances: {requirements: [{key: kubernetes.io/arch, operator: DoesNotExist}]}}\n", []string{
			"croft.yaml:8: pools.a.instances: no instance can become a node of this pool: nothing is left of karpenter.sh/capacity-type after capacityTypes [on-demand] and requirements[0] In [spot]; leave one out, or let them agree",
			"croft.yaml:9: pools.b.instances: no instance can become a node of this pool: nothing is left of node.kubernetes.io/instance-type after instanceTypes [m5.large] and requirements[0] NotIn [m5.large]; leave one out, or let them agree",
			"croft.yaml:10: pools.c.instances: no instance can become a node of this pool: nothing is left of karpenter.k8s.aws/instance-cpu after requirements[0] Gt [8] and requirements[1] Lt [9]; leave one out, or let them agree",
			"croft.yaml:11: pools.d.instances: no instance can become a node of this pool: none of the instance types [a1.large, m6g.large] fits architectures [amd64]; name others, or ask for their architecture",
			"croft.yaml:12: pools.e.instances: no instance can become a node of this pool: none of the instance types [m6g.large] fits architecture amd64, the default; name others, or ask for their architecture",
			"croft.yaml:13: pools.f.instances: no instance can become a node of this pool: nothing is left of kubernetes.io/arch after architecture amd64, the default and requirements[0] DoesNotExist; leave one out, or let them agree"}},
		{"pools that somebody can use", "pools:\n" +
			"  a: {instances: {instanceTypes: [m6g.large, m5.large], architectures: [amd64]}}\n" +
			"  b: {instances: {instanceTypes: [m6g.large, big-one], architectures: [amd64]}}\n" +
			"  c: {instances: {instanceTypes: [m6g.large]}}\n" +
			"  d: {nodeClass: {ref: {group: g, kind: K, name: n}}, instances: {instanceTypes: [m6g.large], architectures: [amd64]}}\n" +
			"  e: {instances: {requirements: [{key: gpu, operator: DoesNotExist}, {key: gpu, operator: DoesNotExist}, {key: n, operator: NotIn, values: [a]}, {key: n, operator: NotIn, values: [b]}]}}\n" +
			"  f: {instances: {requirements: [{key: cpu, operator: Gt, values: [\"3\"]}, {key: cpu, operator: In, values: [\"4\", \"2\"]}]}}\n", nil},

		// Tenants.
		{"an unknown pool", "pools: {jobs: , apps: }\ntenants:\n  shop: {pool: jbos}\n  bank: {pools: [apps, warehouse]}\n", []string{
			"croft.yaml:9: tenants.shop.pool: there is no pool jbos; did you mean jobs?",
			"croft.yaml:10: tenants.bank.pools[1]: there is no pool warehouse; declare it, or name another"}},
		{"a pool that is refused", "pools:\n  jobs: {secondaryNetworks: [x]}\n  apps: {ttl: 5}\ntenants:\n  shop: {pool: jobs}\n  bank: {pool: apps}\n", []string{
			"croft.yaml:8: pools.jobs.secondaryNetworks[0]: there is no secondary network x; declare it, or name another",
			"croft.yaml:9: pools.apps.ttl: the number 5 will not do; write a duration with its unit, such as 30s, 10m or 168h, or Never",
			"croft.yaml:11: tenants.shop.pool: pool jobs (croft.yaml:8) is refused itself; correct that first",
			"croft.yaml:12: tenants.bank.pool: pool apps (croft.yaml:9) is refused itself; correct that first"}},
		{"system namespaces", "pools: {jobs: }\ntenants:\n  default: {pool: jobs}\n  kube-shop: {pool: jobs, namespaces: [shop]}\n  bank: {pool: jobs, namespaces: [bank, croft-system, kube-system]}\n  ingress: {pool: jobs}\n", []string{
			"croft.yaml:9: tenants.default: default is the name of a namespace of Kubernetes; name the tenant otherwise",
			"croft.yaml:10: tenants.kube-shop: kube-shop is the name of a namespace of Kubernetes; name the tenant otherwise",
			"croft.yaml:11: tenants.bank.namespaces[1]: croft-system is a namespace of croft; choose another",
			"croft.yaml:11: tenants.bank.namespaces[2]: kube-system is a namespace of Kubernetes; choose another",
			"croft.yaml:12: tenants.ingress: ingress is the name of a namespace of the platform; name the tenant otherwise"}},
		{"the same namespace", "pools: {jobs: }\ntenants:\n  shop: {pool: jobs, namespaces: [web, bank]}\n  bank: {pool: jobs}\n  risk: {pool: jobs, namespaces: [risk, web]}\n", []string{
			"croft.yaml:10: tenants.bank: namespace bank belongs to tenant shop (croft.yaml:9) already; choose another for bank",
			"croft.yaml:11: tenants.risk.namespaces[1]: namespace web belongs to tenant shop (croft.yaml:9) already; choose another for risk"}},
		{"a tenant twice", "pools: {jobs: }\ntenants: {shop: {pool: jobs, domains: [a.example.org]}}\n---\ntenants: {shop: {pool: jobs, domains: [a.example.org]}}\n", []string{
			"croft.yaml:10: tenants.shop: tenant shop is declared twice (croft.yaml:8); keep one of them"}},
		{"the metadata address", "pools: {jobs: }\ntenants: {shop: {pool: jobs, network: {egress: Restricted, allowCIDRs: [10.0.0.0/8, 169.254.0.0/16, \"::/0\"]}}}\n", []string{
			"croft.yaml:8: tenants.shop.network.allowCIDRs[1]: 169.254.0.0/16 holds the instance metadata address 169.254.169.254, which no tenant may reach; name smaller networks around it",
			"croft.yaml:8: tenants.shop.network.allowCIDRs[2]: ::/0 holds the instance metadata address fd00:ec2::254, which no tenant may reach; name smaller networks around it"}},
		{"limits out of order", "pools: {jobs: }\ntenants:\n  shop:\n    pool: jobs\n    quota: {cpu: -1}\n    limits:\n      min: {cpu: 100m, memory: -1}\n      defaultRequest: {cpu: 50m}\n      default: {cpu: 40m}\n      max: {cpu: 1}\n", []string{
			"croft.yaml:11: tenants.shop.quota.cpu: must not be below zero, as -1 is",
			"croft.yaml:13: tenants.shop.limits.min.cpu: 100m is more than the default of 40m; lower it, or raise default",
			"croft.yaml:13: tenants.shop.limits.min.cpu: 100m is more than the defaultRequest of 50m; lower it, or raise defaultRequest",
			"croft.yaml:13: tenants.shop.limits.min.memory: must not be below zero, as -1 is",
			"croft.yaml:14: tenants.shop.limits.defaultRequest.cpu: 50m is more than the default of 40m; lower it, or raise default"}},

		// SecondaryNetworks.
		{"networks that overlap", "secondaryNetworks:\n" +
			"  a: {zones: [{zone: x, subnet: s, cidr: 10.0.0.0/16, podCIDR: 10.0.1.0/24}, {zone: y, subnet: t, cidr: 10.0.5.0/24, podCIDR: 10.0.5.0/25}]}\n" +
			"  b: {zones: [{zone: x, subnet: s, cidr: 10.1.0.0/24, podCIDR: 10.1.0.0/25}]}\n" +
			"  c: {zones: [{zone: x, subnet: s, cidr: 10.1.0.0/16, podCIDR: 10.1.9.0/24}, {zone: y, subnet: t, cidr: \"fd00::/64\", podCIDR: \"fd00::/96\"}]}\n", []string{
			"croft.yaml:8: secondaryNetworks.a.zones[1].cidr: 10.0.5.0/24 overlaps with 10.0.0.0/16 of secondary network a (croft.yaml:8); networks must not share addresses",
			"croft.yaml:10: secondaryNetworks.c.zones[0].cidr: 10.1.0.0/16 overlaps with 10.1.0.0/24 of secondary network b (croft.yaml:9); networks must not share addresses"}},
		{"a gateway among the pods", "secondaryNetworks:\n  a: {zones: [{zone: x, subnet: s, cidr: 10.0.0.0/24, podCIDR: 10.0.0.0/25, gateway: 10.0.0.1}]}\n", []string{
			"croft.yaml:8: secondaryNetworks.a.zones[0].gateway: 10.0.0.1 is one of the pods' addresses in 10.0.0.0/25; reserve others for the pods, or name the right gateway"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, problems := read(base + test.content)
			expect(t, problems, test.want...)
		})
	}
}
