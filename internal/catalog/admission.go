package catalog

const (
	karpenterDocs = "https://karpenter.sh/docs/troubleshooting/"
	kubeDocs      = "https://kubernetes.io/docs/concepts/"
)

// PolicyRefusedID is the ID of the row for refusals by admission policies.
const PolicyRefusedID = "policy-refused"

// admissionRows are causes that prevent a pod from being created, or from being placed at its
// creation.
var admissionRows = []Row{
	{
		ID: "quota-exceeded", Symptom: "event FailedCreate of a ReplicaSet, Job, StatefulSet or DaemonSet",
		Signature: compileAny(`exceeded quota: `),
		Texts:     []string{`Error creating: pods "web-6d4cf56db6-x2x9p" is forbidden: exceeded quota: croft, requested: pods=1, used: pods=3, limited: pods=3`},
		Cause:     "the tenant's quota, or the namespace's share of it, is used up",
		Fix:       "ask for less, or free what is not needed (`kubectl describe quota`); a platform admin raises `quota` of the Tenant",
		Who:       Team, Link: kubeDocs + "policy/resource-quotas/",
		Produced: Produced{BySandbox, "internal/e2e TestWhy/quota"},
	},
	{
		ID: "quota-share", Symptom: "the ResourceQuotas of the tenant's namespaces",
		Cause: "the namespace's share of the tenant's quota is too small, and the tenant has more in other namespaces",
		Fix:   "wait: croft moves the share when a controller was refused, and the controller tries again by itself. Nobody tries again for a pod without a controller: create it by a Job or a Deployment",
		Who:   Team, Link: kubeDocs + "policy/resource-quotas/",
		Produced: Produced{BySandbox, "internal/operator TestQuota"},
	},
	{
		ID: "quota-reserved", Symptom: "the ResourceQuotas of the tenant's namespaces, and `quotaMinimums` of the Tenant",
		Cause: "the rest of the tenant's quota is in other namespaces, and reserved for them or about to be used there",
		Fix:   "ask for less, or free what is not needed; a platform admin lowers `quotaMinimums` of the Tenant, or raises its `quota`",
		Who:   Team, Link: kubeDocs + "policy/resource-quotas/",
		Produced: Produced{BySandbox, "internal/e2e TestWhy/quota-reserved"},
	},
	{
		ID: "quota-unstated", Symptom: "event FailedCreate of a ReplicaSet, Job, StatefulSet or DaemonSet",
		Signature: compileAny(`failed quota: .*must specify `),
		Texts:     []string{`Error creating: pods "web-6d4cf56db6-x2x9p" is forbidden: failed quota: croft: must specify limits.memory for: nginx`},
		Cause:     "the quota counts something that a container does not say",
		Fix:       "write the container's requests and limits that the message names; a platform admin can give defaults by `limits` of the Tenant",
		Who:       Team, Link: kubeDocs + "policy/resource-quotas/",
		Produced: Produced{BySandbox, "internal/e2e TestWhy/admission/quota-unstated"},
	},
	{
		ID: "limit-range", Symptom: "event FailedCreate of a ReplicaSet, Job, StatefulSet or DaemonSet",
		Signature: compileAny(`(maximum|minimum) \S+ usage per (Container|Pod|PersistentVolumeClaim) is`),
		Texts:     []string{`Error creating: pods "web-6d4cf56db6-x2x9p" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi`},
		Cause:     "a container is larger or smaller than the tenant's limits let it be",
		Fix:       "stay within them (`kubectl describe limitrange`); a platform admin changes `limits` of the Tenant",
		Who:       Team, Link: kubeDocs + "policy/limit-range/",
		Produced: Produced{BySandbox, "internal/e2e TestWhy/admission/limit-range"},
	},
	{
		ID: PolicyRefusedID, Symptom: "event FailedCreate of a ReplicaSet, Job, StatefulSet or DaemonSet; the condition Ready of a Kustomization",
		Signature: compileAny(`ValidatingAdmissionPolicy '[^']*' with binding '[^']*' denied request`, `admission webhook "[^"]*" denied the request`),
		Texts: []string{
			`Error creating: pods "web-6d4cf56db6-x2x9p" is forbidden: ValidatingAdmissionPolicy 'croft-pods' with binding 'croft-pods' denied request: [tolerations] spec.tolerations: pods tolerate only keys below node.kubernetes.io/`,
			`Service/shop/web dry-run failed (Forbidden): services "web" is forbidden: ValidatingAdmissionPolicy 'croft-services' with binding 'croft-services' denied request: [service-type] spec.type: NodePort is not allowed`,
			`Error creating: admission webhook "validate.kyverno.svc-fail" denied the request: resource Pod/shop/web was blocked due to the following policies`,
		},
		Cause: "an admission policy refuses the object",
		Fix:   "do what the message says after the policy's name; `croft verify --explain` says why croft's rules are there",
		Who:   Team, Link: "https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/",
		Produced: Produced{BySandbox, "internal/e2e TestWhy/policy"},
	},
	{
		ID: "pod-security", Symptom: "event FailedCreate of a ReplicaSet, Job, StatefulSet or DaemonSet",
		Signature: compileAny(`violates PodSecurity`),
		Texts:     []string{`Error creating: pods "web-6d4cf56db6-x2x9p" is forbidden: violates PodSecurity "baseline:latest": privileged (container "web" must not set securityContext.privileged=true)`},
		Cause:     "the pod is less secure than the Pod Security level of its namespace asks",
		Fix:       "set what the message names in the pod's securityContext; a platform admin changes `podSecurity` of the Tenant",
		Who:       Team, Link: kubeDocs + "security/pod-security-standards/",
		Produced: Produced{BySandbox, "internal/e2e TestWhy/admission/pod-security"},
	},
	{
		ID: "webhook-fails", Symptom: "event FailedCreate of a ReplicaSet, Job, StatefulSet or DaemonSet",
		Signature: compileAny(`failed calling webhook "`),
		Texts:     []string{`Error creating: Internal error occurred: failed calling webhook "mutation.gatekeeper.sh": failed to call webhook: Post "https://gatekeeper-webhook-service.gatekeeper-system.svc:443/v1/mutate?timeout=10s": no endpoints available for service "gatekeeper-webhook-service"`},
		Cause:     "the API server cannot reach a webhook that must answer before a pod comes in",
		Fix:       "bring the webhook's pods back, on nodes that are not tenants'; the message names it",
		Who:       Platform, Link: "https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/",
		Produced: Produced{BySandbox, "internal/e2e TestWhy/admission/webhook-fails"},
	},
	{
		ID: "placement-missing", Symptom: "the pod: no nodeSelector or toleration of a pool of its tenant",
		Cause: "the pod was not placed when it was created: its namespace is no tenant's, or the pod is older than the placement policy",
		Fix:   "in a tenant's namespace create the pod anew (`kubectl rollout restart`, or delete it); otherwise make the namespace a tenant's with `croft adopt` or croft.yaml",
		Who:   Team, Link: "docs/explanation/walls.md",
		Produced: Produced{BySandbox, "internal/e2e TestWhy/placement"},
	},
	{
		ID: "old-crds", Symptom: "an error of `croft apply`, the operator or kubectl; or the CustomResourceDefinitions",
		Signature: compileAny(`strict decoding error: unknown field`, `field not declared in schema`),
		Texts: []string{
			`Error from server (BadRequest): error when creating "pool.yaml": NodePool in version "v1" cannot be handled as a NodePool: strict decoding error: unknown field "spec.replicas"`,
			`failed to create typed patch object (/pool-a; karpenter.sh/v1, Kind=NodePool): .spec.template.spec.terminationGracePeriod: field not declared in schema`,
		},
		Cause: "the CustomResourceDefinitions in the cluster are older than what is written: Helm does not upgrade them",
		Fix:   "apply the definitions of the version that runs: `croft install` for croft's, the chart karpenter-crd for Karpenter's",
		Who:   Platform, Link: "https://karpenter.sh/docs/upgrading/upgrade-guide/#crd-upgrades",
		Produced: Produced{BySandbox, "internal/doctor TestChecks/Kinds"},
	},
}
