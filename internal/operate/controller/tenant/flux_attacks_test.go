package tenant_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/gitops"
)

// attackFromGit is a push that must not have the effect that the team intends.
type attackFromGit struct {
	name, description string
	files             map[string]string
	links             []tar.Header
	// why is the ID of the finding that `croft why` reports first. cause is a part of the
	// finding's cause.
	why, cause string
}

// makeFile returns the files of a repository that has one file.
func makeFile(content string) map[string]string {
	return map[string]string{"deploy/a.yaml": content}
}

// makeKustomization returns the files of a repository that has one kustomization.yaml.
func makeKustomization(content string) map[string]string {
	return map[string]string{"deploy/kustomization.yaml": content}
}

const kustomizationOf = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s}\nspec: {interval: 1m, prune: true, %s}\n"

var attacksFromGit = []attackFromGit{
	{
		name: "a ClusterRole", description: `"system:serviceaccount:shop:croft-deployer" cannot`, why: "flux-rights", cause: "croft-deployer has the rights of the role operator",
		files: makeFile("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: mine}\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n"),
	},
	{
		name: "a binding to the administrator's role", description: "attempting to grant RBAC permissions not currently held", why: "flux-rights",
		files: makeFile("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: mine}\nsubjects: [{kind: ServiceAccount, name: default, namespace: shop}]\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n"),
	},
	{
		name: "a node port", description: "[service-type]", why: "policy-refused", cause: "rule service-type of policy croft-services",
		files: makeFile("apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: NodePort, ports: [{port: 80}]}\n"),
	},
	{
		name: "a pod on the node's network", description: "PodSecurity", why: "pod-security",
		files: makeFile("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {hostNetwork: true, containers: [{name: web, image: registry.example.org/web}]}\n"),
	},
	{
		name: "croft's own Kustomization, as another account", description: "[managed-objects]", why: "policy-refused", cause: "rule managed-objects",
		files: makeFile(fmt.Sprintf(kustomizationOf, "croft-app", "serviceAccountName: default, sourceRef: {kind: GitRepository, name: croft-app}")),
	},
	{
		name: "a Kustomization that applies as Flux", description: "[service-account]", why: "policy-refused", cause: "rule service-account of policy croft-flux",
		files: makeFile(fmt.Sprintf(kustomizationOf, "mine", "sourceRef: {kind: GitRepository, name: croft-app}")),
	},
	{
		name: "a Kustomization of another tenant's source", description: "[source-namespace]", why: "policy-refused", cause: "rule source-namespace of policy croft-flux",
		files: makeFile(fmt.Sprintf(kustomizationOf, "mine", "serviceAccountName: croft-deployer, sourceRef: {kind: GitRepository, name: croft-app, namespace: bank}")),
	},
	{
		name: "a kind that the cluster does not have", description: `no matches for kind "Anything"`, why: "flux-kind-unknown",
		files: makeFile("apiVersion: example.org/v1\nkind: Anything\nmetadata: {name: mine}\n"),
	},
	{name: "a path out of the tree", description: "fs-security-constraint", why: "flux-outside", files: makeKustomization("resources: [../../../../../../../../etc/hostname]\n")},
	{
		// kustomize-controller skips symbolic links when it unpacks an artifact.
		name: "a symbolic link out of the tree", description: "kustomize build failed", why: "flux-build",
		files: makeKustomization("configMapGenerator: [{name: stolen, files: [hostname]}]\n"),
		links: []tar.Header{{Typeflag: tar.TypeSymlink, Name: "deploy/hostname", Linkname: "/etc/hostname", Mode: 0o777}},
	},
	{
		name: "a directory that is a symbolic link out of the tree", description: "kustomize build failed", why: "flux-build",
		files: makeKustomization("configMapGenerator: [{name: stolen, files: [etc/hostname]}]\n"),
		links: []tar.Header{{Typeflag: tar.TypeSymlink, Name: "deploy/etc", Linkname: "/etc", Mode: 0o777}},
	},
	{
		name: "a file outside of the tree", description: "tar contained invalid name", why: "flux-artifact",
		files: map[string]string{"deploy/../../../../../../tmp/croft-escaped": "x"},
	},
	{
		name: "a device", description: "unsupported file type", why: "flux-artifact", files: makeFile(fmt.Sprintf(settings, "device", "")),
		links: []tar.Header{{Typeflag: tar.TypeChar, Name: "deploy/null", Devmajor: 1, Devminor: 3, Mode: 0o666}},
	},
	{name: "no such path", description: "kustomization path not found", why: "flux-artifact", files: map[string]string{"elsewhere/a.yaml": "x"}},
	{
		name: "a pod that never runs", description: "health check failed", why: "flux-unhealthy",
		files: makeFile("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: registry.example.org/web}]}}}\n"),
	},
}

// testRemoteBases fails if kustomize builds on another repository, or if a file that a
// kustomization.yaml names by URL is applied in another tenant's namespace. Flux may fetch
// URLs or refuse them; docs/how-to/gitops.md describes the version that was observed.
func testRemoteBases(git *repository) {
	url, err := git.Cluster.Git("bases")
	if err != nil {
		git.Fatal(err)
	}
	bases := git.newClone(url)
	bases.pushFile("a.yaml", fmt.Sprintf(settings, "based", ""))
	bases.pushFile("kustomization.yaml", "resources: [a.yaml]\n")
	git.pushFiles(makeKustomization("resources: [\"" + url + "?ref=main\"]\n"))
	git.awaitOutcome("Failed", "fs-security-constraint")
	git.awaitExplanation("shop", "kustomization/croft-app", "flux-outside", "")

	git.serveContent("/remote.yaml", []byte(fmt.Sprintf(settings, "remote", ", namespace: bank")))
	git.pushFiles(makeKustomization("resources: [\"" + git.server.URL + "/remote.yaml\"]\n"))
	git.awaitOutcome("Ready or Failed", "")
	git.awaitConfigMap("bank", "remote", false)
}

// testForeignKeys tries to decrypt with another tenant's Secret, whose name it writes in every
// possible form. Flux reads Secrets with its own rights, but only in the Kustomization's
// namespace.
func testForeignKeys(git *repository) {
	git.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "keys"}, StringData: map[string]string{"token": "bank's"}})
	git.pushFiles(map[string]string{"deploy/a.yaml": fmt.Sprintf(settings, "third", ""), "secret/a.yaml": fmt.Sprintf(settings, "decrypted", "")})
	git.awaitOutcome("Ready", "Applied revision")
	person := git.Impersonate("ann", "shop-devs", "system:authenticated")
	for name, secret := range map[string]string{"plain": "keys", "path": "bank/keys", "up": "../../bank/secrets/keys"} {
		k := newKustomization("decrypt-"+name, "./secret", gitops.Deployer)
		k.Object["spec"].(map[string]any)["decryption"] = map[string]any{"provider": "sops", "secretRef": map[string]any{"name": secret}}
		if err := person.Create(git.Context(), k); err != nil {
			git.Fatal(err)
		}
		git.awaitFailure(k, "BuildFailed", secret)
		git.awaitExplanation("shop", "kustomization/decrypt-"+name, "flux-build", "")
		if name != "plain" {
			git.Delete(k)
		}
	}
	// With a Secret in the tenant's namespace it is applied: only the Secret was missing
	// before.
	git.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "keys"}, StringData: map[string]string{"token": "shop's"}})
	plain := git.awaitFluxObject(gitops.Kustomization, "shop", "decrypt-plain")
	git.Patch(plain, fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, time.Now().Format(time.RFC3339Nano)))
	git.awaitConfigMap("shop", "decrypted", true)
}

// testPlatformAccount names the service account of kustomize-controller. Flux looks it up in
// the tenant's namespace, where it has no rights.
func testPlatformAccount(git *repository) {
	person := git.Impersonate("ann", "shop-devs", "system:authenticated")
	k := newKustomization("as-platform", "./secret", "kustomize-controller")
	if err := person.Create(git.Context(), k); err != nil {
		git.Fatal(err)
	}
	git.awaitFailure(k, "ReconciliationFailed", `"system:serviceaccount:shop:kustomize-controller" cannot`)
	git.awaitExplanation("shop", "kustomization/as-platform", "flux-rights", "")
}

// long is the minimum time for which a build must wait for another. Other builds take a
// second.
const long = 15 * time.Second

// testLargePush fails if `croft why` does not explain a push that waits for the large push
// of another tenant, or if the remedy in docs/how-to/gitops.md does not end the wait: remove the
// source from the tenant, and restart kustomize-controller. Both depend on a limitation of
// kustomize-controller: it builds one Kustomization at a time, in time that grows with the
// square of the number of objects. If Flux lifts it, the test fails, since the entry
// flux-build-waits of the catalogue is then out of date.
func testLargePush(git *repository, other *clone) {
	var all strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&all, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
	}
	git.pushFiles(makeFile(all.String()))
	const building = "Building manifests for revision "
	git.Await("the build of 100,000 objects", func() string {
		if message := git.getCondition(git.kustomization, "Reconciling").Message; !strings.Contains(message, building+git.revision) {
			return "it is at: " + message
		}
		return ""
	})
	// Pushes are still applied until the build is fully under way.
	pushes, since := 0, time.Time{}
	waits := git.awaitFluxObject(gitops.Kustomization, "bank", "croft-app")
	git.Await("a push of another tenant waits for it; if it never does, correct flux-build-waits and docs/how-to/gitops.md", func() string {
		if message := git.getCondition(git.kustomization, "Reconciling").Message; !strings.Contains(message, building+git.revision) {
			return "the build is over: " + message
		}
		applied := pushes == 0 || git.Client.Get(git.Context(), client.ObjectKey{Namespace: "bank", Name: formatPushName(pushes)}, &corev1.ConfigMap{}) == nil
		message := git.getCondition(waits, "Reconciling").Message
		switch {
		case applied:
			pushes++
			other.pushFile("a.yaml", fmt.Sprintf(settings, formatPushName(pushes), ""))
			since = time.Time{}
			return "pushes are applied"
		case !strings.Contains(message, building):
			since = time.Time{}
			return "it is at: " + message
		case since.IsZero():
			since = time.Now()
		}
		if time.Since(since) < long {
			return "it has not waited long"
		}
		return ""
	})
	git.awaitExplanation("bank", "kustomization/croft-app", "flux-build-waits", "one Kustomization at a time")

	shop := operatortest.NewTenant("shop", "apps")
	git.Patch(shop, `{"spec":{"sources":null}}`)
	if err := errors.Join(git.Cluster.Stop(sandbox.Flux), git.Cluster.Start(sandbox.Flux)); err != nil {
		git.Fatal(err)
	}
	git.awaitConfigMap("bank", formatPushName(pushes), true)
	git.AwaitReady(shop)
	git.AwaitDeletion(git.kustomization)
}

// formatPushName returns the name of the ConfigMap in the other tenant's n-th push.
func formatPushName(n int) string { return fmt.Sprintf("meanwhile-%d", n) }

// newKustomization returns a Kustomization that a team creates itself.
func newKustomization(name, path, account string) *unstructured.Unstructured {
	k := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"interval": "1m", "prune": true, "path": path, "targetNamespace": "shop", "serviceAccountName": account,
		"sourceRef": map[string]any{"kind": "GitRepository", "name": "croft-app"},
	}}}
	k.SetGroupVersionKind(gitops.Kustomization)
	k.SetNamespace("shop")
	k.SetName(name)
	return k
}

// awaitFailure waits until a Kustomization has failed with a reason and a message.
func (r *repository) awaitFailure(k *unstructured.Unstructured, reason, message string) {
	r.Helper()
	r.Await("Kustomization "+k.GetName()+" is refused", func() string {
		if c := r.getCondition(k, "Ready"); c.Status != metav1.ConditionFalse || c.Reason != reason || !strings.Contains(c.Message, message) {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
		return ""
	})
}

// getCondition reads the current condition of a Kustomization.
func (r *repository) getCondition(k *unstructured.Unstructured, name string) metav1.Condition {
	r.Helper()
	live := k.DeepCopy()
	if err := r.Client.Get(r.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		r.Fatal(err)
	}
	all, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range all {
		if c, _ := c.(map[string]any); c["type"] == name {
			return metav1.Condition{Type: name, Status: metav1.ConditionStatus(fmt.Sprint(c["status"])), Reason: fmt.Sprint(c["reason"]), Message: fmt.Sprint(c["message"])}
		}
	}
	return metav1.Condition{}
}

// awaitExplanation waits until `croft why`, run with the rights of the tenant's people, names the
// finding with this ID first. If no step has failed, a waiting step counts. An empty ID
// expects no problem.
func (f *fixture) awaitExplanation(namespace, target, id, cause string) {
	f.Helper()
	of, err := why.ParseTarget([]string{target}, namespace)
	if err != nil {
		f.Fatal(err)
	}
	f.Await("croft why "+target, func() string {
		seen, err := why.Gather(f.Context(), f.Impersonate("ann", namespace+"-devs", "system:authenticated"), of)
		if err != nil {
			f.Fatal(err)
		}
		story := why.ExplainSnapshot(seen)
		first := story.First
		for _, step := range story.Steps {
			if first == nil && step.Verdict == why.Waiting {
				first = step.Finding
			}
		}
		switch {
		case id == "" && story.Verdict != why.Good:
			return fmt.Sprintf("%s: %+v", story.Summary, story.Steps)
		case id != "" && (first == nil || first.ID != id || !strings.Contains(first.Cause, cause)):
			return fmt.Sprintf("first is %+v, want %s and %q: %+v", first, id, cause, story.Steps)
		}
		return ""
	})
}

// clone is a working copy of a repository on the sandbox's Git server.
type clone struct {
	*fixture
	dir string
}

func (f *fixture) newClone(url string) *clone {
	f.Helper()
	c := &clone{fixture: f, dir: f.TempDir()}
	c.runGit("init", "--quiet", "--initial-branch=main")
	c.runGit("remote", "add", "origin", url)
	return c
}

// pushFile commits one file and pushes it.
func (c *clone) pushFile(name, content string) {
	c.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600); err != nil {
		c.Fatal(err)
	}
	c.runGit("add", "-A")
	c.runGit("-c", "user.name=team", "-c", "user.email=team@example.org", "commit", "--quiet", "-m", "deploy")
	c.runGit("push", "--quiet", "origin", "main")
}

func (c *clone) runGit(args ...string) {
	c.Helper()
	cmd := exec.Command("git", append([]string{"-C", c.dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		c.Fatal(errors.Join(err, errors.New(string(out))))
	}
}
