package gatekeeper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const manifest = `
apiVersion: v1
kind: Namespace
metadata: {name: gatekeeper-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gatekeeper-audit, namespace: gatekeeper-system}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: gatekeeper-mutating-webhook-configuration}
webhooks:
- name: mutation.gatekeeper.sh
  clientConfig: {service: {name: gatekeeper-webhook-service, namespace: gatekeeper-system, path: /v1/mutate}}
  failurePolicy: Ignore
  timeoutSeconds: 1
  namespaceSelector: &selector
    matchExpressions:
    - {key: admission.gatekeeper.sh/ignore, operator: DoesNotExist}
    - {key: kubernetes.io/metadata.name, operator: NotIn, values: [gatekeeper-system]}
  rules: [{apiGroups: ['*'], apiVersions: ['*'], operations: [CREATE, UPDATE], resources: ['*']}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gatekeeper-validating-webhook-configuration}
webhooks:
- name: validation.gatekeeper.sh
  clientConfig: {service: {name: gatekeeper-webhook-service, namespace: gatekeeper-system, path: /v1/admit}}
  failurePolicy: Ignore
  timeoutSeconds: 3
  namespaceSelector:
    matchExpressions:
    - {key: admission.gatekeeper.sh/ignore, operator: DoesNotExist}
    - {key: kubernetes.io/metadata.name, operator: NotIn, values: [gatekeeper-system]}
  rules: [{apiGroups: ['*'], apiVersions: ['*'], operations: [CREATE, UPDATE], resources: ['*', pods/exec]}]
- name: check-ignore-label.gatekeeper.sh
  clientConfig: {service: {name: gatekeeper-webhook-service, namespace: gatekeeper-system, path: /v1/admitlabel}}
  failurePolicy: Fail
  timeoutSeconds: 3
  namespaceSelector:
    matchExpressions:
    - {key: kubernetes.io/metadata.name, operator: NotIn, values: [gatekeeper-system]}
  rules: [{apiGroups: [''], apiVersions: ['*'], operations: [CREATE, UPDATE], resources: [namespaces]}]
`

func readManifest(t *testing.T, content string) (Manifest, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gatekeeper.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(path)
}

func TestWorkloadsAreLeftOut(t *testing.T) {
	m, err := readManifest(t, manifest)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Objects) != 1 || m.Objects[0].GetKind() != "Namespace" || len(m.Webhooks) != 2 {
		t.Errorf("got %v and %d webhook configurations, want the namespace and two", m.Objects, len(m.Webhooks))
	}
}

func TestManifestOfOtherProgramIsRefused(t *testing.T) {
	_, err := readManifest(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")
	if err == nil || !strings.Contains(err.Error(), "not a manifest of Gatekeeper") {
		t.Errorf("got %v", err)
	}
}

func TestBuildWebhooks(t *testing.T) {
	m, err := readManifest(t, manifest)
	if err != nil {
		t.Fatal(err)
	}
	configurations, err := m.BuildWebhooks("127.0.0.1:8443", []byte("authority"))
	if err != nil {
		t.Fatal(err)
	}
	var mutating admissionv1.MutatingWebhookConfiguration
	var validating admissionv1.ValidatingWebhookConfiguration
	for i, into := range []any{&mutating, &validating} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(configurations[i].Object, into, true); err != nil {
			t.Fatal(err)
		}
	}
	mutation := mutating.Webhooks[0]
	for _, w := range append(validating.Webhooks, admissionv1.ValidatingWebhook{
		ClientConfig: mutation.ClientConfig, FailurePolicy: mutation.FailurePolicy,
		TimeoutSeconds: mutation.TimeoutSeconds, NamespaceSelector: mutation.NamespaceSelector,
	}) {
		if w.ClientConfig.Service != nil || w.ClientConfig.URL == nil || !strings.HasPrefix(*w.ClientConfig.URL, "https://127.0.0.1:8443/v1/") {
			t.Errorf("%s: it points to %+v", w.Name, w.ClientConfig)
		}
		if string(w.ClientConfig.CABundle) != "authority" {
			t.Errorf("%s: wrong CA bundle: %q", w.Name, w.ClientConfig.CABundle)
		}
		if *w.FailurePolicy != admissionv1.Fail || *w.TimeoutSeconds != 10 {
			t.Errorf("%s: %s after %d s", w.Name, *w.FailurePolicy, *w.TimeoutSeconds)
		}
		names := w.NamespaceSelector.MatchExpressions[len(w.NamespaceSelector.MatchExpressions)-1].Values
		want := "gatekeeper-system kube-system kube-node-lease"
		if w.Name == "check-ignore-label.gatekeeper.sh" {
			want = "gatekeeper-system"
		} else if w.NamespaceSelector.MatchExpressions[0].Key != "admission.gatekeeper.sh/ignore" {
			t.Errorf("%s: the label of exempt namespaces is missing", w.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: it exempts %q, want %q", w.Name, got, want)
		}
	}
	if got := mutation.Rules[0].Resources; len(got) != 1+len(mutatedSubresources) || got[0] != "*" {
		t.Errorf("resources of the mutating webhook: %v", got)
	}
	if got := validating.Webhooks[0].Rules[0].Resources; len(got) != 2 {
		t.Errorf("resources of the validating webhook changed: %v", got)
	}
}
