package catalog

const fluxDocs = "https://fluxcd.io/flux/components/kustomize/kustomizations/"

// kustomization is the place where most rows of Flux appear.
const kustomization = "the condition Ready of a Kustomization"

// fluxRows are causes that prevent Flux from applying the content of Git. Refusals by
// admission and quota are in admissionRows.
var fluxRows = []Row{
	{
		ID: "flux-source", Symptom: "the condition Ready of a GitRepository, an OCIRepository or a Bucket",
		Cause: "source-controller cannot fetch the source, so Flux applies no new content",
		Fix:   "follow the message: usually the URL, the branch or tag, or the credentials in the Secret of `secretRef` are wrong",
		Who:   Team, Link: "docs/how-to/gitops.md",
	},
	{
		ID: "flux-rights", Symptom: kustomization,
		Signature: compileAny(`dry-run failed( \(\w+\))?: .* User "[^"]*" cannot \w+ resource`, `dry-run failed( \(\w+\))?: .* is attempting to grant RBAC permissions not currently held`),
		Texts: []string{
			`ClusterRole/mine dry-run failed (Forbidden): clusterroles.rbac.authorization.k8s.io "mine" is forbidden: User "system:serviceaccount:shop:croft-deployer" cannot patch resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope`,
			`RoleBinding/shop/mine dry-run failed (Forbidden): rolebindings.rbac.authorization.k8s.io "mine" is forbidden: user "system:serviceaccount:shop:croft-deployer" (groups=["system:serviceaccounts" "system:serviceaccounts:shop" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:`,
		},
		Cause: "Flux applies as the Kustomization's service account, which lacks this right: croft-deployer has the rights of the role operator in the tenant's namespaces",
		Fix:   "remove the object from Git; a platform admin creates objects that concern the whole cluster",
		Who:   Team, Link: "docs/how-to/gitops.md",
	},
	{
		ID: "flux-kind-unknown", Symptom: kustomization,
		Signature: compileAny(`dry-run failed.*: no matches for kind "`),
		Texts:     []string{`Gateway/shop/web dry-run failed: no matches for kind "Gateway" in version "gateway.networking.k8s.io/v1"`},
		Cause:     "the cluster does not serve the kind, or not in this version",
		Fix:       "use a version that the cluster serves (`kubectl api-resources`), or ask a platform admin to install the kind",
		Who:       Team, Link: fluxDocs,
	},
	{
		ID: "flux-outside", Symptom: kustomization + ", with the reason BuildFailed",
		Signature: compileAny(`kustomize build failed: .*fs-security-constraint`),
		Texts:     []string{`kustomize build failed: accumulating resources: accumulation err='accumulating resources from 'https://git.example.org/bases.git?ref=main': URL is a git repository': fs-security-constraint abs /tmp/kustomize-1595895835: path '/tmp/kustomize-1595895835' is not in or below '/tmp/kustomization-2557904049'`},
		Cause:     "a kustomization.yaml names a base in another repository, or a file outside of its own repository; Flux allows neither, since several tenants share it",
		Fix:       "copy the base or the file into the repository",
		Who:       Team, Link: "docs/how-to/gitops.md",
	},
	{
		ID: "flux-build", Symptom: kustomization + ", with the reason BuildFailed",
		Cause: "kustomize cannot build the content of Git, so Flux applies none of it",
		Fix:   "build it locally (`kubectl kustomize PATH`), and push a version that builds",
		Who:   Team, Link: fluxDocs + "#generate-kustomizationyaml",
	},
	{
		ID: "flux-build-waits", Symptom: "the condition Reconciling of a Kustomization: Building manifests, for minutes",
		Cause: "kustomize-controller builds one Kustomization at a time, for all tenants: this one is very large, or waits for a large one",
		Fix:   "if this source has thousands of objects, push fewer; otherwise a platform admin finds the Kustomization whose build started first, removes its source from the tenant, and restarts kustomize-controller",
		Run:   "kubectl get kustomizations -A",
		Who:   Platform, Link: "docs/how-to/gitops.md",
	},
	{
		ID: "flux-artifact", Symptom: kustomization + ", with the reason ArtifactFailed",
		Cause: "kustomize-controller cannot get the source's content, or the content does not have `path`",
		Fix:   "compare `path` with the repository; if the message is about the download, source-controller cannot be reached",
		Who:   Team, Link: fluxDocs + "#path",
	},
	{
		ID: "flux-unhealthy", Symptom: kustomization + ", with the reason HealthCheckFailed",
		Cause: "Flux applied everything, and some objects did not become ready within `timeout`",
		Fix:   "run `croft why` for each object that the message names",
		Who:   Team, Link: fluxDocs + "#health-checks",
	},
	{
		ID: "flux-refused", Symptom: kustomization + ", with the reason ReconciliationFailed or PruneFailed, and a message that is not in this catalogue",
		Cause: "the API server refuses an object from Git, or the deletion of an object that was removed from Git",
		Fix:   "change the object in Git as the message after its name requires",
		Who:   Team, Link: fluxDocs,
	},
}
