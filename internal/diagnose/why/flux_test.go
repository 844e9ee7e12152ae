package why_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/walls/gitops"
)

// newFluxObject returns an object of Flux with a condition Ready, or without it if status is empty.
func newFluxObject(kind schema.GroupVersionKind, status, reason, message string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "croft-app"}},
	}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace("shop")
	o.SetName("croft-app")
	o.SetGeneration(1)
	if status != "" {
		o.Object["status"] = map[string]any{
			"observedGeneration": int64(1), "lastAttemptedRevision": "main@sha1:2222222222222222222222222222222222222222", "lastAppliedRevision": "main@sha1:1",
			"conditions": []any{map[string]any{"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-11-23T12:00:00Z"}},
		}
	}
	return o
}

// TestKustomization evaluates Flux's conditions of a source and of a Kustomization. It
// needs no cluster; TestFlux tests the same with the real kustomize-controller.
func TestKustomization(t *testing.T) {
	fetched := newFluxObject(gitops.GitRepository, "True", "Succeeded", "stored artifact")
	const before = "Service/shop/web dry-run failed (Forbidden): services \"web\" is forbidden: "
	const failed = "ReconciliationFailed"
	building := newFluxObject(gitops.Kustomization, "Unknown", "Progressing", "Reconciliation in progress")
	status := building.Object["status"].(map[string]any)
	status["conditions"] = append(status["conditions"].([]any), map[string]any{
		"type": "Reconciling", "status": "True", "reason": "Progressing", "message": "Building manifests for revision main@sha1:2 with a timeout of 5m0s",
	})
	suspended := newFluxObject(gitops.Kustomization, "True", "", "")
	suspended.Object["spec"].(map[string]any)["suspend"] = true
	for name, c := range map[string]struct {
		object, source *unstructured.Unstructured
		hidden         []string
		verdict        why.Verdict
		first          string
		wantText       []string
	}{
		"applied": {object: newFluxObject(gitops.Kustomization, "True", "ReconciliationSucceeded", "Applied revision: main@sha1:1"), source: fetched, verdict: why.Good, wantText: []string{"revision main@sha1:1 is applied"}},
		"refused by a rule, which is named with what it asks": {
			object: newFluxObject(gitops.Kustomization, "False", failed, before+"ValidatingAdmissionPolicy 'croft-services' with binding 'croft-services' denied request: [service-type] spec.type: write ClusterIP\nConfigMap/shop/a created\n"),
			source: fetched, verdict: why.Bad, first: "policy-refused",
			wantText: []string{
				"revision main@sha1:22222222 is not applied; main@sha1:1 is", "service/web", "rule service-type of policy croft-services refuses the object: ", "spec.type: write ClusterIP. A platform admin can allow more by `policy.serviceTypes` of the Tenant",
			},
		},
		"refused by another policy": {
			object: newFluxObject(gitops.Kustomization, "False", failed, before+"ValidatingAdmissionPolicy 'theirs' with binding 'theirs' denied request: [no] no"),
			source: fetched, verdict: why.Bad, first: "policy-refused", wantText: []string{"an admission policy refuses the object"},
		},
		"no right to it": {
			object: newFluxObject(gitops.Kustomization, "False", failed, `ClusterRole/mine dry-run failed (Forbidden): clusterroles.rbac.authorization.k8s.io "mine" is forbidden: User "system:serviceaccount:shop:croft-deployer" cannot patch resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope`),
			source: fetched, verdict: why.Bad, first: "flux-rights", wantText: []string{"clusterrole/mine", "the rights of the role operator"},
		},
		"refused by Pod Security":     {object: newFluxObject(gitops.Kustomization, "False", failed, `Pod/shop/web dry-run failed (Forbidden): pods "web" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`), source: fetched, verdict: why.Bad, first: "pod-security", wantText: []string{"pod/web"}},
		"refused otherwise":           {object: newFluxObject(gitops.Kustomization, "False", failed, `Pod/shop/web dry-run failed (Invalid): Pod "web" is invalid: spec.containers: Required value`), source: fetched, verdict: why.Bad, first: "flux-refused", wantText: []string{"spec.containers: Required value"}},
		"not built":                   {object: newFluxObject(gitops.Kustomization, "False", "BuildFailed", "kustomize build failed: no such file"), source: fetched, verdict: why.Bad, first: "flux-build", wantText: []string{"kubectl kustomize"}},
		"built of another repository": {object: newFluxObject(gitops.Kustomization, "False", "BuildFailed", "kustomize build failed: accumulating resources: fs-security-constraint abs /tmp/kustomize-1: path '/tmp/kustomize-1' is not in or below '/tmp/kustomization-2'"), source: fetched, verdict: why.Bad, first: "flux-outside", wantText: []string{"copy the base or the file"}},
		"not downloaded":              {object: newFluxObject(gitops.Kustomization, "False", "ArtifactFailed", "kustomization path not found"), source: fetched, verdict: why.Bad, first: "flux-artifact", wantText: []string{"path"}},
		"not healthy": {
			object: newFluxObject(gitops.Kustomization, "False", "HealthCheckFailed", "health check failed after 15s: timeout waiting for: [Unknown/shop/x status: 'InProgress', Deployment/shop/web status: 'InProgress']"),
			source: fetched, verdict: why.Bad, first: "flux-unhealthy", wantText: []string{"croft why deployment/web -n shop"},
		},
		"waits for another":       {object: newFluxObject(gitops.Kustomization, "False", "DependencyNotReady", "dependency 'shop/db' is not ready"), source: fetched, verdict: why.Waiting, wantText: []string{"shop/db"}},
		"is being applied":        {object: newFluxObject(gitops.Kustomization, "Unknown", "Progressing", "Reconciliation in progress"), source: fetched, verdict: why.Waiting, wantText: []string{"in progress"}},
		"is being built":          {object: building, source: fetched, verdict: why.Waiting, wantText: []string{"Building manifests", "one Kustomization at a time"}},
		"suspended":               {object: suspended, source: fetched, verdict: why.Waiting, wantText: []string{"spec.suspend"}},
		"not reconciled yet":      {object: newFluxObject(gitops.Kustomization, "", "", ""), source: fetched, verdict: why.Waiting, wantText: []string{"kustomize-controller has not processed it"}},
		"its source is not there": {object: newFluxObject(gitops.Kustomization, "False", "ArtifactFailed", "not found"), verdict: why.Bad, first: "flux-source", wantText: []string{"there is no GitRepository croft-app"}},
		"its source may not be":   {object: newFluxObject(gitops.Kustomization, "True", "", ""), hidden: []string{"gitrepository"}, verdict: why.Good},
		"its source is not fetched": {
			object: newFluxObject(gitops.Kustomization, "True", "ReconciliationSucceeded", ""), source: newFluxObject(gitops.GitRepository, "False", "GitOperationFailed", "failed to checkout and determine revision: authentication required"),
			verdict: why.Bad, first: "flux-source", wantText: []string{"authentication required", "secretRef"},
		},
		"its source is not fetched yet": {object: newFluxObject(gitops.Kustomization, "False", "ArtifactFailed", "Source is not ready, artifact not found"), source: newFluxObject(gitops.GitRepository, "", "", ""), verdict: why.Waiting, wantText: []string{"source-controller has not fetched it yet"}},
		"a source":                      {object: fetched, verdict: why.Good, wantText: []string{"stored artifact"}},
		"a source that fails":           {object: newFluxObject(gitops.OCIRepository, "False", "OCIArtifactPullFailed", "MANIFEST_UNKNOWN"), verdict: why.Bad, first: "flux-source", wantText: []string{"MANIFEST_UNKNOWN"}},
	} {
		t.Run(name, func(t *testing.T) {
			story := why.ExplainSnapshot(&why.Snapshot{
				Target: why.Target{Kind: strings.ToLower(c.object.GetKind()), Namespace: "shop", Name: "croft-app"},
				Object: c.object, Around: why.Around{Source: c.source}, Hidden: c.hidden,
			})
			text := story.Summary
			for _, step := range story.Steps {
				text += "\n" + step.Object + ": " + step.Observation
				if step.Verdict == why.Waiting && step.Finding != nil {
					text += "\n" + step.Finding.Cause
				}
			}
			first := ""
			if story.First != nil {
				first = story.First.ID
				text += "\n" + story.First.Cause + "\n" + story.First.Fix + "\n" + story.First.Run
			}
			if story.Verdict != c.verdict || first != c.first {
				t.Errorf("%s, first %q; want %s, %q:\n%s", story.Verdict, first, c.verdict, c.first, text)
			}
			for _, want := range c.wantText {
				if !strings.Contains(text, want) {
					t.Errorf("want %q in:\n%s", want, text)
				}
			}
		})
	}
}
