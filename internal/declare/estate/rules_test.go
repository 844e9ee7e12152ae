package estate

import "testing"

// TestBuildRefuses covers mistakes that only several objects together make, or that no schema
// can express. A test's own lines start on line 7, after base.
func TestBuildRefuses(t *testing.T) {
	for _, test := range []badInput{
		// Platform.
		{"two platforms", "---\nplatform: {clusterName: b, nodeClass: {kwok: {}}}\n", []string{
			"croft.yaml:8: platform: a cluster has one platform, and it is declared already (croft.yaml:1); keep one of them"}},
		{"admins who are everybody", "---\nplatform:\n  clusterName: b\n  nodeClass: {kwok: {}}\n  admins: [ops, \"system:authenticated\", \"system:serviceaccounts:ci\", \"system:masters\"]\n", []string{
			"croft.yaml:8: platform: a cluster has one platform, and it is declared already (croft.yaml:1); keep one of them",
			"croft.yaml:11: platform.admins[1]: system:authenticated is a group of Kubernetes, and its members are not the platform's admins; name a group of your identity provider, or system:serviceaccounts:NAMESPACE of a namespace in network.platformNamespaces",
			"croft.yaml:11: platform.admins[2]: system:serviceaccounts:ci is a group of Kubernetes, and its members are not the platform's admins; name a group of your identity provider, or system:serviceaccounts:NAMESPACE of a namespace in network.platformNamespaces"}},
		{"tools that are admins", "---\nplatform:\n  clusterName: b\n  nodeClass: {kwok: {}}\n  network: {platformNamespaces: [velero, kube-system]}\n  admins: [\"system:serviceaccounts:velero\", \"system:serviceaccounts:kube-system\", \"system:serviceaccounts\"]\n  auditors: [\"system:serviceaccounts:velero\"]\n", []string{
			"croft.yaml:8: platform: a cluster has one platform, and it is declared already (croft.yaml:1); keep one of them",
			"croft.yaml:12: platform.admins[1]: system:serviceaccounts:kube-system is a group of Kubernetes, and its members are not the platform's admins; name a group of your identity provider, or system:serviceaccounts:NAMESPACE of a namespace in network.platformNamespaces",
			"croft.yaml:12: platform.admins[2]: system:serviceaccounts is a group of Kubernetes, and its members are not the platform's admins; name a group of your identity provider, or system:serviceaccounts:NAMESPACE of a namespace in network.platformNamespaces",
			"croft.yaml:13: platform.auditors[0]: system:serviceaccounts:velero is a group of Kubernetes, and its members are not the platform's auditors; name a group of your identity provider"}},
		{"add-ons that undo walls", "---\nplatform:\n  clusterName: b\n  nodeClass: {kwok: {}}\n  auditors: [\"system:nodes\"]\n  classReaders: [\"system:authenticated\", \"system:nodes\"]\n  addons:\n  - {apiGroup: croft.dev, resources: [tenantrules]}\n  - {apiGroup: cilium.io, resources: [ciliumnetworkpolicies]}\n  - {apiGroup: constraints.gatekeeper.sh, resources: [croftpods]}\n  - {apiGroup: argoproj.io, resources: [rollouts, applications]}\n  - {apiGroup: monitoring.coreos.com, resources: [servicemonitors]}\n  - {apiGroup: autoscaling.x-k8s.io, resources: [capacitybuffers]}\n", []string{
			"croft.yaml:8: platform: a cluster has one platform, and it is declared already (croft.yaml:1); keep one of them",
			"croft.yaml:11: platform.auditors[0]: system:nodes is a group of Kubernetes, and its members are not the platform's auditors; name a group of your identity provider",
			"croft.yaml:12: platform.classReaders[1]: system:nodes is a group of Kubernetes; name a group of your identity provider, or system:authenticated for all users with an account",
			"croft.yaml:14: platform.addons[0].apiGroup: the API group croft.dev contains the objects that walls consist of; leave it out",
			"croft.yaml:15: platform.addons[1].apiGroup: the API group cilium.io contains network policies or networks that would bypass the network wall; leave it out",
			"croft.yaml:16: platform.addons[2].apiGroup: the API group constraints.gatekeeper.sh contains the objects that walls consist of; leave it out",
			"croft.yaml:17: platform.addons[3].resources[1]: applications of argoproj.io has controllers that write any object on request, with rights to the whole cluster; leave it out",
			"croft.yaml:19: platform.addons[5].apiGroup: the API group autoscaling.x-k8s.io is read by Karpenter or the cluster autoscaler, which create nodes for it without applying the rules for pods; leave it out"}},
		{"roles beyond operator", "---\nplatform:\n  clusterName: b\n  nodeClass: {kwok: {}}\n  addons: [{apiGroup: keda.sh, resources: [scaledobjects]}]\n  roles:\n    viewer: {rules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]}\n    rules-writer:\n      rules:\n      - {apiGroups: [croft.dev], resources: [tenantrules], verbs: [get, update]}\n    everything:\n      rules:\n      - {apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"*\"]}\n    escalator:\n      rules:\n      - {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}\n    deployer:\n      rules:\n      - {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch, patch]}\n      - {apiGroups: [keda.sh], resources: [scaledobjects], verbs: [create]}\n", []string{
			"croft.yaml:8: platform: a cluster has one platform, and it is declared already (croft.yaml:1); keep one of them",
			"croft.yaml:13: platform.roles.viewer: viewer is a role of croft; give your role another name",
			"croft.yaml:16: platform.roles.rules-writer.rules[0]: the role operator does not have the right to update tenantrules.croft.dev; remove it, or, for a kind of an add-on, name it in addons",
			"croft.yaml:19: platform.roles.everything.rules[0]: the role operator does not have the right to * *.*; remove it, or, for a kind of an add-on, name it in addons",
			"croft.yaml:22: platform.roles.escalator.rules[0]: the role operator does not have the right to escalate roles.rbac.authorization.k8s.io; remove it, or, for a kind of an add-on, name it in addons"}},
		{"names that hosts end in", "pools: {jobs: }\ntenants:\n  com: {pool: jobs}\n  svc: {pool: jobs}\n  qa: {pool: jobs}\n  shop: {pool: jobs}\n  ml: {pool: jobs, namespaces: [models, io, dev]}\n", []string{
			"croft.yaml:9: tenants.com: a Service NAME of a namespace com would answer for the host NAME.com in every pod of the cluster; choose another name, or list it in platform.topLevelNamespaces",
			"croft.yaml:10: tenants.svc: a Service NAME of a namespace svc would answer for the host NAME.svc in every pod of the cluster; choose another name, or list it in platform.topLevelNamespaces",
			"croft.yaml:11: tenants.qa: a Service NAME of a namespace qa would answer for the host NAME.qa in every pod of the cluster; choose another name, or list it in platform.topLevelNamespaces",
			"croft.yaml:13: tenants.ml.namespaces[1]: a Service NAME of a namespace io would answer for the host NAME.io in every pod of the cluster; choose another name, or list it in platform.topLevelNamespaces",
			"croft.yaml:13: tenants.ml.namespaces[2]: a Service NAME of a namespace dev would answer for the host NAME.dev in every pod of the cluster; choose another name, or list it in platform.topLevelNamespaces"}},
		{"names that the platform wants nevertheless", "---\nplatform: {clusterName: b, nodeClass: {kwok: {}}, topLevelNamespaces: [QA]}\n", []string{
			"croft.yaml:8: platform.topLevelNamespaces[0]: \"QA\" must be the name of a namespace"}},
		{"domains of the cluster", "pools: {jobs: }\ntenants:\n  a: {pool: jobs, domains: [\"*.t2.svc.cluster.local\", web.t2.svc, \"*.cluster.local\", svc.example.org]}\n", []string{
			"croft.yaml:9: tenants.a.domains[0]: *.t2.svc.cluster.local contains names that the cluster's DNS assigns to Services, and that belong to their owners; name hosts outside of the cluster",
			"croft.yaml:9: tenants.a.domains[1]: web.t2.svc contains names that the cluster's DNS assigns to Services, and that belong to their owners; name hosts outside of the cluster",
			"croft.yaml:9: tenants.a.domains[2]: *.cluster.local contains names that the cluster's DNS assigns to Services, and that belong to their owners; name hosts outside of the cluster"}},
		{"a role that there is not", "pools: {jobs: }\ntenants:\n  shop: {pool: jobs, access: [{group: a, role: deploy}]}\n", []string{
			"croft.yaml:9: tenants.shop.access[0].role: there is no role deploy; write one of viewer, operator, or declare it in platform.roles"}},
		{"a node class of every group", "---\nplatform: {clusterName: b, nodeClass: {ref: {group: \"*\", kind: Secret, name: n}}}\n", []string{
			"croft.yaml:8: platform: a cluster has one platform, and it is declared already (croft.yaml:1); keep one of them",
			"croft.yaml:8: platform.nodeClass.ref.group: * is not an API group; write one such as karpenter.k8s.aws"}},
		{"a node pool key of Karpenter's", "---\nplatform: {clusterName: b, nodeClass: {kwok: {}}, nodePoolKey: karpenter.sh/nodepool}\n", []string{
			"croft.yaml:8: platform: a cluster has one platform, and it is declared already (croft.yaml:1); keep one of them",
			"croft.yaml:8: platform.nodePoolKey: the label karpenter.sh/nodepool already has another purpose; choose one of your own, such as croft.node-restriction.kubernetes.io/pool"}},
		{"a tenants' default below zero", "---\nplatform: {clusterName: b, nodeClass: {kwok: {}}, tenantDefaults: {quota: {cpu: -1}, limits: {min: {cpu: 2}, max: {cpu: 1}}}}\n", []string{
			"croft.yaml:8: platform: a cluster has one platform, and it is declared already (croft.yaml:1); keep one of them",
			"croft.yaml:8: platform.tenantDefaults.limits.min.cpu: 2 is more than the max of 1; lower it, or raise max",
			"croft.yaml:8: platform.tenantDefaults.quota.cpu: must not be below zero, as -1 is"}},

		// Pools.
		{"an unknown network", "secondaryNetworks:\n  data: {zones: [{zone: a, subnet: s, cidr: 10.0.0.0/24, podCIDR: 10.0.0.128/25}]}\npools: {jobs: {secondaryNetworks: [date, voice]}}\n", []string{
			"croft.yaml:9: pools.jobs.secondaryNetworks[0]: there is no secondary network date; did you mean data?",
			"croft.yaml:9: pools.jobs.secondaryNetworks[1]: there is no secondary network voice; declare it, or name another"}},
		{"a duration beyond counting", "pools:\n  jobs: {ttl: 9999999999999h}\n", []string{
			"croft.yaml:8: pools.jobs.ttl: 9999999999999h is too long; write a shorter time"}},
		{"limits below zero", "pools: {jobs: {limits: {cpu: -1, memory: 0}}}\n", []string{
			"croft.yaml:7: pools.jobs.limits.cpu: must not be below zero, as -1 is"}},
		{"requirements on labels that are set", "pools:\n  jobs:\n    instances:\n      requirements:\n" +
			"      - {key: croft.node-restriction.kubernetes.io/pool, operator: In, values: [a]}\n" +
			"      - {key: karpenter.sh/nodepool, operator: Exists}\n" +
			"      - {key: karpenter.sh/initialized, operator: Exists}\n" +
			"      - {key: croft.dev/cost-code, operator: Exists}\n" +
			"      - {key: kubernetes.io/hostname, operator: In, values: [a]}\n" +
			"      - {key: a b, operator: In, values: [\"-\"], minValues: 2}\n", []string{
			"croft.yaml:11: pools.jobs.instances.requirements[0].key: the label croft.node-restriction.kubernetes.io/pool is reserved for croft; leave this requirement out",
			"croft.yaml:12: pools.jobs.instances.requirements[1].key: the label karpenter.sh/nodepool is reserved for Karpenter; leave this requirement out",
			"croft.yaml:13: pools.jobs.instances.requirements[2].key: the label karpenter.sh/initialized is reserved for Karpenter; leave this requirement out",
			"croft.yaml:14: pools.jobs.instances.requirements[3].key: the label croft.dev/cost-code is reserved for croft; leave this requirement out",
			"croft.yaml:15: pools.jobs.instances.requirements[4].key: the label kubernetes.io/hostname is reserved for Kubernetes; leave this requirement out",
			`croft.yaml:16: pools.jobs.instances.requirements[5].key: "a b" is not a label; write one such as karpenter.k8s.aws/instance-family`,
			"croft.yaml:16: pools.jobs.instances.requirements[5].minValues: requires 2 values, but only 1 are given; lower it, or add values",
			`croft.yaml:16: pools.jobs.instances.requirements[5].values[0]: "-" cannot be the value of a label; write letters, digits, '-', '_' and '.', beginning and ending with a letter or digit`}},
		{"tags that have a meaning", "pools:\n  jobs: {tags: {croft.node-restriction.kubernetes.io/pool: a, kubernetes.io/cluster/demo: owned, team/x: b, ok: c}}\n  apps: {nodeClass: {aws: {role: r}}, tags: {team/x: b, karpenter.sh/nodepool: c}}\n", []string{
			"croft.yaml:8: pools.jobs.tags[\"croft.node-restriction.kubernetes.io/pool\"]: the tag croft.node-restriction.kubernetes.io/pool is reserved for croft; choose another",
			"croft.yaml:8: pools.jobs.tags[\"kubernetes.io/cluster/demo\"]: the tag kubernetes.io/cluster/demo is reserved for the cluster; choose another",
			"croft.yaml:8: pools.jobs.tags[\"team/x\"]: \"team/x\" cannot be kept on nodes without a cloud; write at most 63 letters, digits, '-', '_' and '.'",
			"croft.yaml:9: pools.apps.tags[\"karpenter.sh/nodepool\"]: the tag karpenter.sh/nodepool is reserved for Karpenter; choose another"}},
		{"a pool without possible instances", "pools:\n" +
			"  a: {instances: {requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]}}\n" +
			"  b: {instances: {instanceTypes: [m5.large], requirements: [{key: node.kubernetes.io/instance-type, operator: NotIn, values: [m5.large]}]}}\n" +
			"  c: {instances: {requirements: [{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: [\"8\"]}, {key: karpenter.k8s.aws/instance-cpu, operator: Lt, values: [\"9\"]}]}}\n" +
			"  d: {instances: {instanceTypes: [m6g.large, a1.large], architectures: [amd64]}}\n" +
			"  e: {instances: {requirements: [{key: beta.kubernetes.io/instance-type, operator: In, values: [m6g.large]}]}}\n" +
			"  f: {instances: {requirements: [{key: kubernetes.io/arch, operator: DoesNotExist}]}}\n", []string{
			"croft.yaml:8: pools.a.instances: no instance can become a node of this pool: no value of karpenter.sh/capacity-type meets capacityTypes [on-demand] and requirements[0] In [spot]; leave one out, or change it",
			"croft.yaml:9: pools.b.instances: no instance can become a node of this pool: no value of node.kubernetes.io/instance-type meets instanceTypes [m5.large] and requirements[0] NotIn [m5.large]; leave one out, or change it",
			"croft.yaml:10: pools.c.instances: no instance can become a node of this pool: no value of karpenter.k8s.aws/instance-cpu meets requirements[0] Gt [8] and requirements[1] Lt [9]; leave one out, or change it",
			"croft.yaml:11: pools.d.instances: no instance can become a node of this pool: none of the instance types [a1.large, m6g.large] fits architectures [amd64]; name other types, or require their architecture",
			"croft.yaml:12: pools.e.instances: no instance can become a node of this pool: none of the instance types [m6g.large] fits architecture amd64, the default; name other types, or require their architecture",
			"croft.yaml:13: pools.f.instances: no instance can become a node of this pool: no value of kubernetes.io/arch meets architecture amd64, the default and requirements[0] DoesNotExist; leave one out, or change it"}},
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
			"croft.yaml:9: pools.apps.ttl: the number 5 is not allowed; write a duration with its unit, such as 30s, 10m or 168h, or Never",
			"croft.yaml:11: tenants.shop.pool: pool jobs (croft.yaml:8) is refused itself; correct that first",
			"croft.yaml:12: tenants.bank.pool: pool apps (croft.yaml:9) is refused itself; correct that first"}},
		{"system namespaces", "pools: {jobs: }\ntenants:\n  default: {pool: jobs}\n  kube-shop: {pool: jobs, namespaces: [shop]}\n  bank: {pool: jobs, namespaces: [bank, croft-system, kube-system]}\n  ingress: {pool: jobs}\n", []string{
			"croft.yaml:9: tenants.default: default is the name of a namespace of Kubernetes; choose another name for the tenant",
			"croft.yaml:10: tenants.kube-shop: kube-shop is the name of a namespace of Kubernetes; choose another name for the tenant",
			"croft.yaml:11: tenants.bank.namespaces[1]: croft-system is a namespace of croft; choose another",
			"croft.yaml:11: tenants.bank.namespaces[2]: kube-system is a namespace of Kubernetes; choose another",
			"croft.yaml:12: tenants.ingress: ingress is the name of a namespace of the platform; choose another name for the tenant"}},
		{"the same namespace", "pools: {jobs: }\ntenants:\n  shop: {pool: jobs, namespaces: [web, bank]}\n  bank: {pool: jobs}\n  risk: {pool: jobs, namespaces: [risk, web]}\n", []string{
			"croft.yaml:10: tenants.bank: namespace bank belongs to tenant shop (croft.yaml:9) already; choose another for bank",
			"croft.yaml:11: tenants.risk.namespaces[1]: namespace web belongs to tenant shop (croft.yaml:9) already; choose another for risk"}},
		{"a tenant twice", "pools: {jobs: }\ntenants: {shop: {pool: jobs, domains: [a.example.org]}}\n---\ntenants: {shop: {pool: jobs, domains: [a.example.org]}}\n", []string{
			"croft.yaml:10: tenants.shop: tenant shop is declared twice (croft.yaml:8); keep one of them"}},
		{"the metadata address", "pools: {jobs: }\ntenants: {shop: {pool: jobs, network: {egress: Restricted, allowCIDRs: [10.0.0.0/8, 169.254.0.0/16, \"::/0\"]}}}\n", []string{
			"croft.yaml:8: tenants.shop.network.allowCIDRs[1]: 169.254.0.0/16 contains the instance metadata address 169.254.169.254, to which no tenant may connect; name smaller networks around it, or remove it from platform.network.metadataAddresses if your clouds do not use it",
			"croft.yaml:8: tenants.shop.network.allowCIDRs[2]: ::/0 contains the instance metadata address fd00:ec2::254, to which no tenant may connect; name smaller networks around it, or remove it from platform.network.metadataAddresses if your clouds do not use it"}},
		{"minimums that cannot be kept", "pools: {jobs: }\ntenants:\n  shop:\n    pool: jobs\n    namespaces: [prod, stage]\n    quota: {requests.cpu: 20, pods: 40}\n    quotaMinimums:\n" +
			"      prod: {requests.cpu: 12, cpu: 1}\n      stage: {requests.cpu: 9, pods: -1}\n      test: {pods: 1}\n  bank: {pool: jobs, quota: {}, quotaMinimums: {bank: {pods: 1}}}\n", []string{
			"croft.yaml:13: tenants.shop.quotaMinimums: together they reserve 21 of requests.cpu, and the quota is 20; lower them, or raise the quota",
			"croft.yaml:14: tenants.shop.quotaMinimums.prod.cpu: the tenant's quota does not include cpu, only pods, requests.cpu; add it to quota, or leave it out here",
			"croft.yaml:15: tenants.shop.quotaMinimums.stage.pods: must not be below zero, as -1 is",
			"croft.yaml:16: tenants.shop.quotaMinimums.test: is not one of the tenant's namespaces, which are prod, stage",
			"croft.yaml:17: tenants.bank.quotaMinimums: the tenant has no quota of which to reserve a part; set quota, or leave quotaMinimums out"}},
		{"minimums of nothing", "pools: {jobs: }\ntenants:\n  shop: {pool: jobs, quotaMinimums: {shop: {}}}\n", []string{
			"croft.yaml:9: tenants.shop.quotaMinimums: must name at least one resource of each namespace, such as {pods: \"40\"}; leave a namespace without a minimum out"}},
		{"minimums that can be kept", "pools: {jobs: }\ntenants:\n  shop: {pool: jobs, quotaMinimums: {shop: {pods: 500}}}\n", nil},
		{"sources that cannot be", "pools: {jobs: }\ntenants:\n  shop:\n    pool: jobs\n    sources:\n" +
			"      neither: {branch: main}\n" +
			"      both: {git: \"https://git.example.org/a\", oci: \"oci://ghcr.io/a\"}\n" +
			"      tags: {oci: \"oci://ghcr.io/a\", branch: main}\n" +
			"      up: {git: \"https://git.example.org/a\", path: ./a/../../b}\n" +
			"      often: {git: \"https://git.example.org/a\", interval: 1s}\n" +
			"      long: {git: \"https://git.example.org/a\", timeout: 2h}\n" +
			"      file: {git: \"file:///etc\"}\n" +
			"      caller: {git: \"https://git.example.org/a\", webhook: {type: nobody, secretRef: {name: a}}}\n" +
			"      pinned: {git: \"https://git.example.org/a\", branch: main, tag: v1}\n" +
			"      tagged: {oci: \"oci://ghcr.io/a/b:v1\"}\n" +
			"      secret: {git: \"https://git.example.org/a\", secretRef: a}\n" +
			"  bank: {pool: jobs, sources: {Big: {git: \"https://git.example.org/a\"}}}\n", []string{
			"croft.yaml:12: tenants.shop.sources.neither: set exactly one of git and oci",
			"croft.yaml:13: tenants.shop.sources.both: set exactly one of git and oci",
			"croft.yaml:14: tenants.shop.sources.tags: branch is for git; an OCI artifact has a tag",
			"croft.yaml:15: tenants.shop.sources.up.path: \"./a/../../b\" must be a directory of the source that begins with ./ and contains no .., such as ./deploy",
			"croft.yaml:16: tenants.shop.sources.often.interval: \"1s\" must be a duration of 30s or more, such as 1m or 10m",
			"croft.yaml:17: tenants.shop.sources.long.timeout: \"2h\" must be a duration of at most 1h, such as 5m",
			"croft.yaml:18: tenants.shop.sources.file.git: \"file:///etc\" must be the URL of a Git repository, such as https://git.example.org/shop/deploy or ssh://git@git.example.org/shop/deploy",
			"croft.yaml:19: tenants.shop.sources.caller.webhook.type: \"nobody\" is not allowed; write generic, generic-hmac, github, gitlab, bitbucket, harbor, dockerhub, quay, gcr, nexus, acr or cdevents",
			"croft.yaml:20: tenants.shop.sources.pinned: set branch or tag, not both",
			"croft.yaml:21: tenants.shop.sources.tagged.oci: \"oci://ghcr.io/a/b:v1\" must be the URL of an OCI artifact without a tag, such as oci://registry.example.org/shop/deploy",
			"croft.yaml:22: tenants.shop.sources.secret.secretRef: must be a mapping, such as {key: value}, not the text \"a\"",
			"croft.yaml:23: tenants.bank.sources: names of sources are at most 40 lower-case letters, digits and '-', beginning with a letter"}},
		{"sources that may not be", "pools: {jobs: }\ntenants:\n  shop:\n    pool: jobs\n    policy: {sourceHosts: [git.example.org]}\n    sources:\n" +
			"      elsewhere: {git: \"https://git.example.org/a\", namespace: bank}\n" +
			"      stranger: {oci: \"oci://ghcr.io/a/b\"}\n" +
			"      open: {git: \"https://user:secret@git.example.org/a\"}\n" +
			"  bank:\n    pool: jobs\n    sources:\n" +
			"      metadata: {git: \"http://169.254.169.254/latest\"}\n" +
			"      other: {git: \"http://git.shop.svc/a\"}\n", []string{
			"croft.yaml:13: tenants.shop.sources.elsewhere.namespace: bank is not one of the tenant's namespaces, which are shop; name one of them",
			"croft.yaml:14: tenants.shop.sources.stranger.oci: Flux may not connect to ghcr.io for tenant shop, whose policy.sourceHosts are git.example.org (* is every host name outside of the cluster); add the host there, or name another",
			"croft.yaml:15: tenants.shop.sources.open.git: contains credentials, which every reader of the Tenant would see; put them into a Secret, and name it in secretRef",
			"croft.yaml:19: tenants.bank.sources.metadata.git: Flux may not connect to 169.254.169.254 for tenant bank, whose policy.sourceHosts are * (* is every host name outside of the cluster); add the host there, or name another",
			"croft.yaml:20: tenants.bank.sources.other.git: Flux may not connect to git.shop.svc for tenant bank, whose policy.sourceHosts are * (* is every host name outside of the cluster); add the host there, or name another"}},
		{"sources that may be", "pools: {jobs: }\ntenants:\n  shop:\n    pool: jobs\n    namespaces: [shop, shop-dev]\n    sources:\n" +
			"      a: {git: \"https://git.example.org/a\"}\n" +
			"      b: {git: \"ssh://git@Git.Example.org:2222/a\", branch: b, path: ./b, interval: 30s, timeout: 1h, namespace: shop-dev, secretRef: {name: a}, webhook: {type: github, secretRef: {name: b}}}\n" +
			"      c: {git: \"http://git.shop-dev.svc:3000/a\", tag: v1}\n" +
			"      d: {oci: \"oci://ghcr.io/a/b\", tag: v1}\n", nil},
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
		{"networks that are none", "secondaryNetworks:\n  a: {routes: [10.9.9.9/8], zones: [{zone: x, subnet: s, cidr: 10.0.0.1/24, podCIDR: 10.0.0.40/27, gateway: 10.0.0.1}]}\n", []string{
			"croft.yaml:8: secondaryNetworks.a.routes[0]: 10.9.9.9/8 is not a network; write 10.0.0.0/8",
			"croft.yaml:8: secondaryNetworks.a.zones[0].cidr: 10.0.0.1/24 is not a network; write 10.0.0.0/24",
			"croft.yaml:8: secondaryNetworks.a.zones[0].podCIDR: 10.0.0.40/27 is not a network; write 10.0.0.32/27"}},
		{"reservations that do not fit", "secondaryNetworks:\n" +
			"  a: {zones: [{zone: x, subnet: s, cidr: 10.0.0.0/24, podCIDR: 10.0.0.0/24}]}\n" +
			"  b: {zones: [{zone: x, subnet: t, cidr: 10.1.0.0/24, podCIDR: 10.1.0.0/30}]}\n" +
			"  c: {zones: [{zone: x, subnet: u, cidr: 10.2.0.0/15, podCIDR: 10.2.0.0/24}]}\n", []string{
			"croft.yaml:8: secondaryNetworks.a.zones[0].podCIDR: 10.0.0.0/24 leaves no address of 10.0.0.0/24 for the nodes' own interfaces; reserve less",
			"croft.yaml:9: secondaryNetworks.b.zones[0].podCIDR: the VPC reserves all of 10.1.0.0/30: it takes the first four addresses and the last one of a subnet; reserve others",
			"croft.yaml:10: secondaryNetworks.c.zones[0].cidr: 10.2.0.0/15 is not a subnet of a VPC: subnets are from /16 to /28"}},
		{"routes that lead nowhere", "secondaryNetworks:\n" +
			"  a: {routes: [10.9.0.0/16], zones: [{zone: x, subnet: s, cidr: 10.0.0.0/24, podCIDR: 10.0.0.32/27}]}\n" +
			"  b: {sbr: true, zones: [{zone: x, subnet: t, cidr: 10.1.0.0/24, podCIDR: 10.1.0.32/27}]}\n", []string{
			"croft.yaml:8: secondaryNetworks.a.zones[0].gateway: routes lead to the zone's gateway; set it, in a VPC to the first address of the subnet",
			"croft.yaml:9: secondaryNetworks.b.zones[0].gateway: the routing table of sbr leads to the zone's gateway; set it, in a VPC to the first address of the subnet"}},
		{"a pool that would wait for ever", "pools: {jobs: {secondaryNetworks: [a], waitForNetworks: true}}\n" +
			"secondaryNetworks:\n  a: {zones: [{zone: x, subnet: s, cidr: 10.0.0.0/24, podCIDR: 10.0.0.32/27}]}\n", []string{
			"croft.yaml:7: pools.jobs.waitForNetworks: croft attaches interfaces where nodeClass is aws; elsewhere nodes would wait for ever: leave it out"}},
		{"prefixes that do not fit", "secondaryNetworks:\n" +
			"  a: {prefixesPerNode: 2, zones: [{zone: x, subnet: s, cidr: 10.0.0.0/24, podCIDR: 10.0.0.0/27}]}\n" +
			"  b: {prefixesPerNode: 4, zones: [{zone: x, subnet: t, cidr: 10.1.0.0/24, podCIDR: 10.1.0.64/26}]}\n" +
			"pools:\n" +
			"  blind: {secondaryNetworks: [b]}\n" +
			"  small: {secondaryNetworks: [b], waitForNetworks: true, nodeClass: {aws: {role: nodes}}, instances: {instanceTypes: [m5.large, t3.small], requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [x]}]}}\n", []string{
			"croft.yaml:8: secondaryNetworks.a.zones[0].podCIDR: 10.0.0.0/27 has 1 prefixes of 16 IPv4 addresses, and prefixesPerNode requires 2 for each node; reserve more, or ask for less",
			"croft.yaml:11: pools.blind.secondaryNetworks[0]: b has prefixesPerNode, which the node learns only from croft's agent; set waitForNetworks, which is for pools on AWS, or leave prefixesPerNode out",
			"croft.yaml:12: pools.small.secondaryNetworks[0]: b gives each interface 4 prefixes, and one of t3.small has room for 3; leave out t3.small, or ask for less"}},
		{"networks that pods call alike", "secondaryNetworks:\n" +
			"  a: {zones: [{zone: b-c, subnet: s, cidr: 10.0.0.0/24, podCIDR: 10.0.0.32/27}, {zone: A_1, subnet: t, cidr: 10.0.1.0/24, podCIDR: 10.0.1.32/27}]}\n" +
			"  a-b: {zones: [{zone: c, subnet: u, cidr: 10.1.0.0/24, podCIDR: 10.1.0.32/27}]}\n" +
			"  a-b-c: {zones: [{zone: d, subnet: v, cidr: 10.2.0.0/24, podCIDR: 10.2.0.32/27}]}\n", []string{
			"croft.yaml:8: secondaryNetworks.a.zones[0].zone: the network's name for pods in this zone is a-b-c, which is also the name of secondary network a-b-c; rename one of the networks",
			"croft.yaml:8: secondaryNetworks.a.zones[1].zone: \"A_1\" becomes part of a name; write lower-case letters, digits and '-'",
			"croft.yaml:9: secondaryNetworks.a-b.zones[0].zone: the network's name for pods in this zone is a-b-c, which is also the name of secondary network a-b-c; rename one of the networks"}},
		{"networks that a tenant cannot have", twoNetworks +
			"pools: {apps: {secondaryNetworks: [n3]}, jobs: }\n" +
			"tenants: {shop: {pool: apps, networks: [n3, n6, n4]}, bank: {pools: [jobs, apps], networks: [n3]}, lab: {pool: jobs, networks: [n3]}}\n", []string{
			"croft.yaml:11: tenants.lab.networks[0]: no pool of tenant lab has secondary network n3: add it to the secondaryNetworks of pool jobs, name a pool that has it, or leave it out here",
			"croft.yaml:11: tenants.shop.networks[1]: no pool of tenant shop has secondary network n6: add it to the secondaryNetworks of pool apps, name a pool that has it, or leave it out here",
			"croft.yaml:11: tenants.shop.networks[2]: there is no secondary network n4; did you mean n3?"}},
		{"pools that cannot have their networks", twoNetworks +
			"pools:\n" +
			"  small: {secondaryNetworks: [n3, n6], nodeClass: {ref: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}}, instances: {instanceTypes: [m5.large, t3.nano]}}\n" +
			"  away: {secondaryNetworks: [n3], instances: {requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [a, c]}]}}\n", []string{
			"croft.yaml:11: pools.small.secondaryNetworks: a node needs 3 network interfaces, its own and one for each of n3, n6, and t3.nano has 2; leave out t3.nano, or networks",
			"croft.yaml:12: pools.away.instances.requirements[0].values[1]: c: the pool's secondary networks have subnets in a, b; leave this zone out, or add it to them"}},
		{"networks without a zone in common", "secondaryNetworks:\n" +
			"  n3: {zones: [{zone: a, subnet: s, cidr: 10.0.3.0/24, podCIDR: 10.0.3.32/27}]}\n" +
			"  n6: {zones: [{zone: b, subnet: t, cidr: 10.0.6.0/24, podCIDR: 10.0.6.32/27}]}\n" +
			"pools: {apps: {secondaryNetworks: [n3, n6]}}\n", []string{
			"croft.yaml:10: pools.apps.secondaryNetworks: n3 and n6 have no zone in common, so no node can have all of them; add a zone to one, or leave one out"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, problems := parseAndBuild(base + test.content)
			expectProblems(t, problems, test.want...)
		})
	}
}

// TestDefaultClasses expects default classes to be among the allowed ones, whether the tenant or the Platform sets
// either.
func TestDefaultClasses(t *testing.T) {
	const at = "croft.yaml:4: tenants.shop.policy."
	for name, c := range map[string]struct {
		platform, tenant string
		want             []string
	}{
		"none":           {"", "", nil},
		"no class":       {"", "priorityClass: {}, runtimeClass: {}", nil},
		"allowed":        {"", "priorityClasses: [low, batch], priorityClass: {default: batch}, runtimeClasses: [gvisor], runtimeClass: {default: gvisor}", nil},
		"any is allowed": {"", `priorityClasses: ["*"], priorityClass: {default: batch}, runtimeClasses: ["*"], runtimeClass: {default: gvisor}`, nil},
		"not allowed": {"", "priorityClasses: [low], priorityClass: {default: batch}, runtimeClass: {default: gvisor}", []string{
			at + "priorityClass.default: batch is not one of the tenant's priorityClasses; add it to policy.priorityClasses, or choose another default",
			at + "runtimeClass.default: gvisor is not one of the tenant's runtimeClasses; add it to policy.runtimeClasses, or choose another default"}},
		"allowed by the Platform": {"tenantDefaults: {policy: {priorityClasses: [batch]}}", "priorityClass: {default: batch}", nil},
		"the Platform's default":  {"tenantDefaults: {policy: {priorityClasses: [batch], priorityClass: {default: batch}}}", "", nil},
		"the Platform's default, which the tenant's list lacks": {"tenantDefaults: {policy: {priorityClasses: [batch], priorityClass: {default: batch}}}", "priorityClasses: [low]", []string{
			at + "priorityClass.default: batch is not one of the tenant's priorityClasses; add it to policy.priorityClasses, or choose another default"}},
		"the Platform's default, which the tenant removes": {"tenantDefaults: {policy: {priorityClasses: [batch], priorityClass: {default: batch}}}", "priorityClasses: [], priorityClass: {}", nil},
		"with Gatekeeper": {"placement: Gatekeeper", "priorityClasses: [batch], priorityClass: {default: batch}, runtimeClasses: [gvisor], runtimeClass: {default: gvisor}", []string{
			at + "priorityClass.default: Gatekeeper cannot set a priority class, since it cannot remove the priority that the pod has without one; leave it out, or set platform.placement to Native"}},
		"forced and by default": {"", "runtimeClasses: [gvisor], runtimeClass: {force: kata, default: gvisor}", []string{
			at + "runtimeClass: set force or default, not both"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, problems := parseAndBuild("platform: {clusterName: a, nodeClass: {kwok: {}}, " + c.platform + "}\npools: {jobs: }\ntenants:\n" +
				"  shop: {pool: jobs, policy: {" + c.tenant + "}}\n")
			expectProblems(t, problems, c.want...)
		})
	}
}

// TestArgoCDSources expects fields to be refused that an Application does not have. It is of
// the first tier: it runs without a control plane.
func TestArgoCDSources(t *testing.T) {
	const base = "platform: {clusterName: a, gitops: ArgoCD, nodeClass: {kwok: {}}}\npools: {jobs: }\ntenants:\n  shop:\n    pool: jobs\n    sources:\n"
	_, _, problems := parseAndBuild(base +
		"      artifact: {oci: \"oci://ghcr.io/a/b\"}\n" +
		"      private: {git: \"https://git.example.org/a\", secretRef: {name: a}}\n" +
		"      called: {git: \"https://git.example.org/a\", webhook: {type: github, secretRef: {name: a}}}\n" +
		"      timed: {git: \"https://git.example.org/a\", interval: 1m, timeout: 5m}\n" +
		"      all: {git: \"https://git.example.org/*\"}\n" +
		"      metadata: {git: \"http://169.254.169.254/latest\"}\n")
	expectProblems(t, problems,
		"croft.yaml:7: tenants.shop.sources.artifact.oci: is for Flux, and platform.gitops is ArgoCD; name a Git repository in git",
		"croft.yaml:8: tenants.shop.sources.private.secretRef: is for Flux; Argo CD finds credentials by the repository's URL, in Secrets of its own namespace: leave secretRef out",
		"croft.yaml:9: tenants.shop.sources.called.webhook: is for Flux; Git servers call Argo CD at /api/webhook, for all repositories: leave webhook out",
		"croft.yaml:10: tenants.shop.sources.timed.interval: is for Flux; Argo CD has one interval for all repositories, timeout.reconciliation in its ConfigMap argocd-cm: leave interval out",
		"croft.yaml:10: tenants.shop.sources.timed.timeout: is for Flux; Argo CD does not wait until the applied objects are ready: leave timeout out",
		"croft.yaml:11: tenants.shop.sources.all.git: Argo CD would take any of *?[]{}\\! for a pattern, which other repositories match, too; name a repository without these characters",
		"croft.yaml:12: tenants.shop.sources.metadata.git: Argo CD may not connect to 169.254.169.254 for tenant shop, whose policy.sourceHosts are * (* is every host name outside of the cluster); add the host there, or name another")
	parseValid(t, base+"      app: {git: \"https://git.example.org/a\", tag: v1, path: ./b}\n")
}

// twoNetworks is a YAML mapping of three lines: the key and two networks.
const twoNetworks = "secondaryNetworks:\n" +
	"  n3: {zones: [{zone: a, subnet: s, cidr: 10.0.3.0/24, podCIDR: 10.0.3.32/27}, {zone: b, subnet: t, cidr: 10.0.4.0/24, podCIDR: 10.0.4.32/27}]}\n" +
	"  n6: {zones: [{zone: a, subnet: u, cidr: 10.0.6.0/24, podCIDR: 10.0.6.32/27}, {zone: b, subnet: v, cidr: 10.0.7.0/24, podCIDR: 10.0.7.32/27}]}\n"
