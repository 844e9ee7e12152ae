package catalog

const fluxDocs = "https://fluxcd.io/flux/components/kustomize/kustomizations/"

// kustomization is the place where most rows of Flux appear.
const kustomization = "the condition Ready of a Kustomization"

// fluxRows are causes that prevent Flux from applying the content of Git. Refusals by
// admission and quota are in admissionRows.
var fluxRows = []Row{
	{
		ID: "flux-source", Symptom: "the condition Ready of a GitRepository, an OCIRepository or a Bucket",
		Cause: "source-controller cannot fetch the source, so nothing new is applied",
		Fix:   "do what the message says: mostly the URL, the branch or tag, or the credentials in the Secret of `secretRef` are wrong",
		Who:   Team, Link: "docs/how-to/gitops.md",
		Produced: Produced{ByRecord, "a sandbox has no source-controller; internal/why TestKustomization judges its conditions"},
	},
	{
		ID: "flux-rights", Symptom: kustomization,
		Signature: compileAny(`dry-run failed( \(\w+\))?: .* User "[^"]*" cannot \w+ resource`, `dry-run failed( \(\w+\))?: .* is attempting to grant RBAC permissions not currently held`),
		Texts: []string{
			`ClusterRole/mine dry-run failed (Forbidden): clusterroles.rbac.authorization.k8s.io "mine" is forbidden: User "system:serviceaccount:shop:croft-deployer" cannot patch resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope`,
			`RoleBinding/shop/mine dry-run failed (Forbidden): rolebindings.rbac.authorization.k8s.io "mine" is forbidden: user "system:serviceaccount:shop:croft-deployer" (groups=["system:serviceaccounts" "system:serviceaccounts:shop" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:`,
		},
		Cause: "Flux applies as the Kustomization's service account, which has no right to this: croft-deployer has the rights of the role operator in the tenant's namespaces",
		Fix:   "take the object out of Git; a platform admin creates what belongs to the whole cluster",
		Who:   Team, Link: "docs/how-to/gitops.md",
		Produced: Produced{BySandbox, "internal/operator TestFlux"},
	},
	{
		ID: "flux-kind-unknown", Symptom: kustomization,
		Signature: compileAny(`dry-run failed.*: no matches for kind "`),
		Texts:     []string{`Gateway/shop/web dry-run failed: no matches for kind "Gateway" in version "gateway.networking.k8s.io/v1"`},
		Cause:     "the cluster does not have the kind, or not in this version",
		Fix:       "write a version that the cluster has (`kubectl api-resources`), or have a platform admin install the kind",
		Who:       Team, Link: fluxDocs,
		Produced: Produced{BySandbox, "internal/operator TestFlux"},
	},
	{
		ID: "flux-outside", Symptom: kustomization + ", with the reason BuildFailed",
		Signature: compileAny(`kustomize build failed: .*fs-security-constraint`),
		Texts:     []string{`kustomize build failed: accumulating resources: accumulation err='accumulating resources from 'https://git.example.org/bases.git?ref=main': URL is a git repository': fs-security-constraint abs /tmp/kustomize-1595895835: path '/tmp/kustomize-1595895835' is not in or below '/tmp/kustomization-2557904049'`},
		Cause:     "a kustomization.yaml names a base in another repository, or a file outside of its own; Flux builds with neither, since several tenants share it",
		Fix:       "copy what it needs into the repository",
		Who:       Team, Link: "docs/how-to/gitops.md",
		Produced: Produced{BySandbox, "internal/operator TestFlux"},
	},
	{
		ID: "flux-build", Symptom: kustomization + ", with the reason BuildFailed",
		Cause: "kustomize cannot build what is in Git, so nothing of it is applied",
		Fix:   "build it where you are (`kubectl kustomize PATH`), and push what builds",
		Who:   Team, Link: fluxDocs + "#generate-kustomizationyaml",
		Produced: Produced{BySandbox, "internal/operator TestFlux"},
	},
	{
		ID: "flux-build-waits", Symptom: "the condition Reconciling of a Kustomization: Building manifests, for minutes",
		Cause: "kustomize-controller builds one Kustomization at a time, for all tenants: this one is very large, or waits for one that is",
		Fix:   "where this source has thousands of objects, push fewer; otherwise a platform admin finds the one that is built since longest, takes its source out of the tenant, and restarts kustomize-controller",
		Run:   "kubectl get kustomizations -A",
		Who:   Platform, Link: "docs/how-to/gitops.md",
		Produced: Produced{BySandbox, "internal/operator TestFlux"},
	},
	{
		ID: "flux-artifact", Symptom: kustomization + ", with the reason ArtifactFailed",
		Cause: "kustomize-controller cannot get the source's content, or `path` is not in it",
		Fix:   "compare `path` with the repository; where the message is about the download, source-controller is not reachable",
		Who:   Team, Link: fluxDocs + "#path",
		Produced: Produced{BySandbox, "internal/operator TestFlux"},
	},
	{
		ID: "flux-unhealthy", Symptom: kustomization + ", with the reason HealthCheckFailed",
		Cause: "everything was applied, and something of it is not ready within `timeout`",
		Fix:   "ask of each object that the message names why it is not ready",
		Who:   Team, Link: fluxDocs + "#health-checks",
		Produced: Produced{BySandbox, "internal/operator TestFlux"},
	},
	{
		ID: "flux-refused", Symptom: kustomization + ", with the reason ReconciliationFailed or PruneFailed, and a message that is not in this catalogue",
		Cause: "the API server refuses an object that is in Git, or the deletion of one that no longer is",
		Fix:   "do what the message says after the object's name, in Git",
		Who:   Team, Link: fluxDocs,
		Produced: Produced{BySandbox, "internal/operator TestFlux"},
	},
}
