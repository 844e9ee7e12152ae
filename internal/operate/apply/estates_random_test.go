package apply_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/test/sandbox"
)

type fields = map[string]any

// platformFields, poolFields and tenantFields are all fields that can be declared. An
// estate has some of them: fields, elements and whole branches are omitted at random.
const platformFields = `
clusterName: full
tenantDomain: tenants.example.org
clusterDNS: [10.100.0.10, "fd00::a"]
topLevelNamespaces: [shared]
admins: [platform-admins, others]
auditors: [platform-auditors]
classReaders: [storage-admins]
elevation: {maxDuration: 2h, approvers: [approvers]}
proxy: {impersonation: Constrained}
groupPrefix: "oidc:"
nodePoolKey: platform.example.org/node-pool
nodeClass: {aws: {role: nodes, tags: {Stage: test}, tagKeys: {costCode: "billing:code"}}}
finalizers: [example.org/archive]
network: {platformNamespaces: [ingress, monitoring]}
tenantDefaults:
  egress: Restricted
  podSecurity: restricted
  policy: {priorityClasses: [batch], storageClasses: [gp3, ""]}
  quota: {pods: "50", requests.cpu: "20"}
  limits: {default: {memory: 1Gi}, defaultRequest: {cpu: 50m, memory: 64Mi}}
  objects:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: platform, labels: {example.org/part: proxy}}, data: {proxy: "http://proxy.example.org:3128", host: $(domain)}}
`

var dialects = []string{
	`{dialect: Kubernetes}`,
	`{dialect: Calico}`,
	`{dialect: Calico, calico: {tenantPolicies: true}}`,
	`{dialect: Calico, calico: {apiGroup: crd.projectcalico.org}}`,
	`{dialect: ClusterNetworkPolicy}`,
	`{dialect: AWS}`,
}

// poolFields have one node class each, because a NodePool's class cannot change.
var poolFields = []string{`
nodeClass:
  aws:
    amiFamily: AL2023
    amiSelectorTerms: [{id: ami-1}, {tags: {Team: shop, Stage: test}, name: "nodes-*", owner: self}, {ssmParameter: /nodes/image}]
    subnetSelectorTerms: [{id: subnet-1}, {tags: {Name: private, Stage: test}}]
    securityGroupSelectorTerms: [{id: sg-1}, {name: nodes}, {tags: {Name: nodes, Stage: test}}]
    capacityReservationSelectorTerms: [{id: cr-1}, {tags: {Team: shop}, ownerID: "123456789012", instanceMatchCriteria: open}]
    tagKeys: {project: team}
    kubelet:
      maxPods: 50
      podsPerCore: 10
      systemReserved: {cpu: 100m, memory: 200Mi}
      kubeReserved: {cpu: 200m, ephemeral-storage: 1Gi}
      evictionHard: {memory.available: 5%, nodefs.available: 10%}
      evictionSoft: {nodefs.available: 15%}
      evictionSoftGracePeriod: {nodefs.available: 2m}
      evictionMaxPodGracePeriod: 60
      cpuCFSQuota: true
    userData: "echo started"
    blockDeviceMappings:
      - {deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 100Gi, iops: 4000, throughput: 250, kmsKeyID: alias/nodes, encrypted: true}}
      - {deviceName: /dev/xvdb, ebs: {snapshotID: snap-1, volumeInitializationRate: 200, volumeType: io2, deleteOnTermination: false}}
    instanceStorePolicy: RAID0
    metadataOptions: {httpPutResponseHopLimit: 2}
    detailedMonitoring: true
    associatePublicIPAddress: true
` + everyPool, `
nodeClass: {kwok: {}}
tags: {Team: test, Stage: test}
` + everyPool}

const everyPool = `
instances:
  capacityTypes: [on-demand, spot]
  instanceTypes: [m6g.large, m5.large]
  architectures: [amd64, arm64]
  requirements:
    - {key: example.org/generation, operator: Gt, values: ["4"]}
    - {key: topology.kubernetes.io/zone, operator: In, values: [us-west-2a, us-west-2b], minValues: 2}
    - {key: example.org/disk, operator: Exists}
limits: {cpu: "100", memory: 400Gi}
emptyTTL: 5m
consolidation: WhenEmptyOrUnderutilized
ttl: 168h
terminationGracePeriod: 1h
budgets:
  - {nodes: 20%, reasons: [Empty]}
  - {nodes: "0", schedule: "0 9 * * mon-fri", duration: 8h, reasons: [Drifted, Underutilized]}
weight: 10
costCode: org1
`

const tenantFields = `
access:
  - {group: developers, role: operator}
  - {group: admins, role: viewer}
  - {user: alice@example.org, role: viewer, until: 2126-12-01T00:00:00Z}
sources:
  app: {git: https://git.example.org/shop, branch: stable, path: ./deploy, interval: 5m, timeout: 10m, secretRef: {name: token}}
  tagged: {git: ssh://git@git.example.org/shop, tag: v1, webhook: {type: github, secretRef: {name: webhook}}}
  image: {oci: oci://registry.example.org/shop/deploy, tag: v1}
selfService: {namespaces: 3}
domains: [shop.example.org, "*.shop.example.org"]
quota: {pods: "10", requests.memory: 10Gi}
limits: {default: {memory: 1Gi, cpu: "2"}, defaultRequest: {cpu: 50m, memory: 64Mi}, max: {cpu: "4", memory: 2Gi}, min: {cpu: 10m}}
network: {egress: Restricted, allowCIDRs: [10.20.0.0/16, 10.30.0.0/16, "fd12::/64"]}
policy:
  podSecurity: baseline
  serviceTypes: [ClusterIP, LoadBalancer]
  registries: [registry.example.org, ghcr.io/example, docker.io/library/nginx]
  imagePullPolicies: [IfNotPresent, Always]
  priorityClasses: [batch]
  runtimeClasses: [gvisor]
  storageClasses: ["*"]
  ingressClasses: [nginx]
  gatewayClasses: [shared]
  csiDrivers: [secrets-store.csi.k8s.io]
  deviceClasses: [gpu.example.com]
  volumeTypes: [nfs, iscsi]
  volumeAttributesClasses: [fast]
  maxVolumeSize: 16Ti
  shareWith: [{group: sre}, {serviceAccount: monitoring/*}]
  cloudIdentities: ["arn:aws:iam::111122223333:role/shop-*"]
  clusterIPs: [10.100.7.7]
  maxTokenExpirationSeconds: 43200
  tokenSecrets: true
  maxTerminationGracePeriodSeconds: 7200
  doNotDisrupt: true
objects:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: platform}, data: {proxy: "http://$(tenant).example.org:3128"}}
  - {apiVersion: v1, kind: LimitRange, metadata: {name: claims}, spec: {limits: [{type: PersistentVolumeClaim, max: {storage: 1Ti}, min: {storage: 1Gi}}]}}
costCode: org1
deletion: Delete
`

const networkFields = `
type: ipvlan
zones:
  - {zone: us-west-2a, subnet: subnet-a, securityGroups: [sg-1, sg-2], cidr: 10.0.4.0/24, podCIDR: 10.0.4.32/27, gateway: 10.0.4.1}
  - {zone: us-west-2b, subnet: subnet-b, securityGroups: [sg-1], cidr: 10.0.5.0/24, podCIDR: 10.0.5.32/27, gateway: 10.0.5.1}
`

// kept are the fields without which their object is invalid.
var kept = strings.Fields(`apiVersion clusterName kind metadata nodeClass aws kwok role key operator values nodes group user type
	zone zones subnet cidr podCIDR id ssmParameter snapshotID tags ownerID instanceMatchCriteria deviceName ebs volumeSize
	git oci amiFamily amiSelectorTerms subnetSelectorTerms securityGroupSelectorTerms`)

// variants is the number of variants of each part of an estate. It is small, so that the
// API server rarely computes a new reference.
const variants = 16

// platformStays is the average number of steps with the same platform, which has the
// largest objects. `make test`, which has fewer steps, covers every kind with
// fewPlatformStays.
const platformStays, fewPlatformStays = 8, 3

// generateEstate returns a random valid estate. It replaces the platform only now and then.
func (w *walker) generateEstate(step int) (parts []part, err error) {
	stays := platformStays
	if !sandbox.All() {
		stays = fewPlatformStays
	}
	for range 100 {
		moved := step == 0 || w.random.IntN(stays) == 0
		file := fields{
			"platform":          w.last["platform"],
			"secondaryNetworks": w.pickVariant("secondaryNetworks", w.generateNetworks),
			"pools":             w.pickVariant("pools", w.generatePools),
			"tenants":           w.pickVariant("tenants", w.generateTenants),
		}
		if moved {
			file["platform"] = w.setNextDialect(w.pickVariant("platform", w.generatePlatform).(fields))
		}
		d, e, ok := buildEstate(file)
		if !ok {
			continue
		}
		if parts = listParts(d, e, moved && w.n == 0, w.n == 0); w.hasValidObjects(parts) {
			w.last = file
			return parts, nil
		}
	}
	return nil, fmt.Errorf("walker %d, step %d: no estate is valid", w.n, step)
}

// pickVariant returns one of the variants of a part. Each is valid in an estate with few other
// fields.
func (w *walker) pickVariant(kind string, choose func() any) any {
	for len(w.variants[kind]) < variants {
		file := parseFields(plain)
		file["pools"] = fields{w.makeName(): fields{}}
		file[kind] = choose()
		// Every other variant is the previous one with few omissions: two very different
		// estates would cause many writes for any reason.
		if n := len(w.variants[kind]); n%2 == 1 {
			file[kind] = omitLeaves(w.random, w.variants[kind][n-1], littleLeaves)
		}
		if _, _, ok := buildEstate(file); ok {
			w.variants[kind] = append(w.variants[kind], file[kind])
		}
	}
	return w.variants[kind][w.random.IntN(variants)]
}

const plain = "platform: {clusterName: plain, tenantDomain: tenants.example.org, nodeClass: {aws: {role: nodes}}}"

func buildEstate(file fields) (*manifest.Declaration, *estate.Estate, bool) {
	text, err := yaml.Marshal(file)
	if err != nil {
		panic(err) // it contains plain values only
	}
	d, problems := manifest.Parse("croft.yaml", text)
	if len(problems) > 0 {
		return nil, nil, false
	}
	e, problems := estate.Build(d)
	return d, e, len(problems) == 0
}

// hasValidObjects reports whether the API server accepts all objects unchanged.
func (w *walker) hasValidObjects(parts []part) bool {
	for _, p := range parts {
		for _, o := range p.objects {
			if _, err := w.readReference(o); err != nil {
				return false
			}
		}
	}
	return true
}

func (w *walker) makeName() string { return fmt.Sprintf("t%d", w.n) }

func (w *walker) generatePlatform() any {
	platform := w.omitFields(platformFields)
	if w.random.IntN(2) == 0 {
		platform["placement"] = "Gatekeeper"
	}
	return platform
}

// setNextDialect returns the platform with the dialect after the walker's last one: the few
// platforms of `make test` would not have every dialect if it were random.
func (w *walker) setNextDialect(platform fields) fields {
	network := fields{}
	if declared, ok := platform["network"].(fields); ok {
		maps.Copy(network, declared)
	}
	maps.Copy(network, parseFields(dialects[(w.n+walkers*w.platforms)%len(dialects)]))
	w.platforms++
	platform = maps.Clone(platform)
	platform["network"] = network
	return platform
}

func (w *walker) generateNetworks() any {
	return fields{"telco": w.omitFields(networkFields)}
}

func (w *walker) generatePools() any {
	return fields{w.makeName(): w.omitFields(poolFields[w.n%len(poolFields)])}
}

func (w *walker) generateTenants() any {
	tenant := w.omitFields(tenantFields)
	tenant["pool"] = w.makeName()
	if w.random.IntN(4) == 0 {
		tenant["namespaces"] = []any{w.makeName(), w.makeName() + "-test"}
	}
	return fields{w.makeName(): tenant}
}

// omitFields omits random fields of a text, except for those in kept.
func (w *walker) omitFields(text string) fields {
	thinned, _ := omitLeaves(w.random, parseFields(text), muchLeaves).(fields)
	return thinned
}

// One of this many fields and elements is omitted.
const muchLeaves, littleLeaves = 4, 25

func omitLeaves(r *rand.Rand, v any, odds int) any {
	leaves := func() bool { return r.IntN(odds) == 0 }
	switch v := v.(type) {
	case fields:
		left := fields{}
		for _, field := range slices.Sorted(maps.Keys(v)) {
			if slices.Contains(kept, field) || !leaves() {
				left[field] = omitLeaves(r, v[field], odds)
			}
		}
		if left["schedule"] == nil || left["duration"] == nil { // one requires the other
			delete(left, "schedule")
			delete(left, "duration")
		}
		return left
	case []any:
		if len(v) == 0 {
			return v
		}
		left := []any{omitLeaves(r, v[0], odds)}
		for _, element := range v[1:] {
			if !leaves() {
				left = append(left, omitLeaves(r, element, odds))
			}
		}
		if odds == littleLeaves {
			return left
		}
		r.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		return left
	default:
		return v
	}
}

func parseFields(text string) fields {
	parsed := fields{}
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
		panic(err) // the text is a constant above
	}
	return parsed
}

func awaitSuccess(t *testing.T, do func() error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		last = do()
		return last == nil, nil
	}); err != nil {
		t.Fatal(last)
	}
}
