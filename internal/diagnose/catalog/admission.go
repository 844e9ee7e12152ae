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
		Fix:       "request less, or delete unused objects (`kubectl describe quota`); a platform admin can raise `quota` of the Tenant",
		Who:       Team, Link: kubeDocs + "policy/resource-quotas/",
	},
	{
		ID: "quota-share", Symptom: "the ResourceQuotas of the tenant's namespaces",
		Cause: "the namespace's share of the tenant's quota is too small, and other namespaces of the tenant have unused quota",
		Fix:   "wait: when a controller's object is refused, croft increases the share, and the controller retries. A pod without a controller is not retried: create it by a Job or a Deployment",
		Who:   Team, Link: kubeDocs + "policy/resource-quotas/",
	},
	{
		ID: "quota-reserved", Symptom: "the ResourceQuotas of the tenant's namespaces, and `quotaMinimums` of the Tenant",
		Cause: "the rest of the tenant's quota belongs to other namespaces, which reserve it or are about to use it",
		Fix:   "request less, or delete unused objects; a platform admin can lower `quotaMinimums` of the Tenant, or raise its `quota`",
		Who:   Team, Link: kubeDocs + "policy/resource-quotas/",
	},
	{
		ID: "quota-unstated", Symptom: "event FailedCreate of a ReplicaSet, Job, StatefulSet or DaemonSet",
		Signature: compileAny(`failed quota: .*must specify `),
		Texts:     []string{`Error creating: pods "web-6d4cf56db6-x2x9p" is forbidden: failed quota: croft: must specify limits.memory for: nginx`},
		Cause:     "the quota counts a resource that a container does not specify",
		Fix:       "set the container's requests and limits that the message names; a platform admin can set defaults by `limits` of the Tenant",
		Who:       Team, Link: kubeDocs + "policy/resource-quotas/",
	},
	{
		ID: "limit-range", Symptom: "event FailedCreate of a ReplicaSet, Job, StatefulSet or DaemonSet",
		Signature: compileAny(`(maximum|minimum) \S+ usage per (Container|Pod|PersistentVolumeClaim) is`),
		Texts:     []string{`Error creating: pods "web-6d4cf56db6-x2x9p" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi`},
		Cause:     "a container's resources are outside of the tenant's limits",
		Fix:       "stay within the limits (`kubectl describe limitrange`); a platform admin can change `limits` of the Tenant",
		Who:       Team, Link: kubeDocs + "policy/limit-range/",
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
		Fix:   "change the object as the message after the policy's name requires; `croft verify --explain` gives the reasons for croft's rules",
		Who:   Team, Link: "https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/",
	},
	{
		ID: "pod-security", Symptom: "event FailedCreate of a ReplicaSet, Job, StatefulSet or DaemonSet",
		Signature: compileAny(`violates PodSecurity`),
		Texts:     []string{`Error creating: pods "web-6d4cf56db6-x2x9p" is forbidden: violates PodSecurity "baseline:latest": privileged (container "web" must not set securityContext.privileged=true)`},
		Cause:     "the pod violates the Pod Security level of its namespace",
		Fix:       "set the fields that the message names in the pod's securityContext; a platform admin can change `podSecurity` of the Tenant",
		Who:       Team, Link: kubeDocs + "security/pod-security-standards/",
	},
	{
		ID: "webhook-fails", Symptom: "event FailedCreate of a ReplicaSet, Job, StatefulSet or DaemonSet",
		Signature: compileAny(`failed calling webhook "`),
		Texts:     []string{`Error creating: Internal error occurred: failed calling webhook "mutation.gatekeeper.sh": failed to call webhook: Post "https://gatekeeper-webhook-service.gatekeeper-system.svc:443/v1/mutate?timeout=10s": no endpoints available for service "gatekeeper-webhook-service"`},
		Cause:     "the API server cannot reach an admission webhook that it must call for each new pod",
		Fix:       "repair the webhook's pods; run them on nodes outside of tenants' pools. The message names the webhook",
		Who:       Platform, Link: "https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/",
	},
	{
		ID: "placement-missing", Symptom: "the pod has no nodeSelector or toleration for a pool of its tenant",
		Cause: "the pod was not placed at its creation: its namespace does not belong to a tenant, or the pod is older than the placement policy",
		Fix:   "in a tenant's namespace, re-create the pod (`kubectl rollout restart`, or delete it); otherwise assign the namespace to a tenant by `croft adopt` or croft.yaml",
		Who:   Team, Link: "docs/explanation/walls.md",
	},
	{
		ID: "old-crds", Symptom: "an error of `croft apply`, the operator or kubectl; or the CustomResourceDefinitions",
		Signature: compileAny(`strict decoding error: unknown field`, `field not declared in schema`),
		Texts: []string{
			`Error from server (BadRequest): error when creating "pool.yaml": NodePool in version "v1" cannot be handled as a NodePool: strict decoding error: unknown field "spec.replicas"`,
			`failed to create typed patch object (/pool-a; karpenter.sh/v1, Kind=NodePool): .spec.template.spec.terminationGracePeriod: field not declared in schema`,
		},
		Cause: "the CustomResourceDefinitions in the cluster are older than the objects: Helm does not upgrade them",
		Fix:   "apply the definitions of the running version: `croft install` for croft's, the chart karpenter-crd for Karpenter's",
		Who:   Platform, Link: "https://karpenter.sh/docs/upgrading/upgrade-guide/#crd-upgrades",
	},
}
