// Package gatekeeper turns Gatekeeper's own manifest into the objects of a sandbox: all
// of it except the workloads, and webhooks that point to a process on this machine.
package gatekeeper

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Gatekeeper's names in a cluster. PodName is the name in its status.
const (
	Namespace      = "gatekeeper-system"
	ServiceAccount = "gatekeeper-admin"
	PodName        = "gatekeeper"
)

// ManifestOf is where the manifest that belongs to a binary lies.
func ManifestOf(binary string) string { return binary + ".yaml" }

// Manifest is what Gatekeeper wants to find in the cluster.
type Manifest struct {
	// Objects exist before it starts: its namespace, kinds and rights.
	Objects []*unstructured.Unstructured
	// Webhooks come when it answers: from then on the API server asks it.
	Webhooks []*unstructured.Unstructured
}

// objectKinds leaves out the workloads, and what only those need.
var objectKinds = []string{
	"Namespace", "CustomResourceDefinition", "ServiceAccount",
	"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding",
}

var webhookKinds = []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}

// Read reads a release's manifest, deploy/gatekeeper.yaml of its module.
func Read(path string) (Manifest, error) {
	var m Manifest
	content, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return m, fmt.Errorf("%s: %w", path, err)
		}
		switch {
		case slices.Contains(objectKinds, u.GetKind()):
			m.Objects = append(m.Objects, u)
		case slices.Contains(webhookKinds, u.GetKind()):
			m.Webhooks = append(m.Webhooks, u)
		}
	}
	if len(m.Objects) == 0 || len(m.Webhooks) != len(webhookKinds) {
		return m, fmt.Errorf("%s is not a manifest of Gatekeeper: it has %d objects and %d webhook configurations",
			path, len(m.Objects), len(m.Webhooks))
	}
	return m, nil
}

// Pod represents the process: Gatekeeper makes its reports owned by its pod, and reports
// nothing without one. It is never scheduled.
func Pod() *unstructured.Unstructured {
	restricted := map[string]any{
		"allowPrivilegeEscalation": false,
		"capabilities":             map[string]any{"drop": []any{"ALL"}},
		"runAsNonRoot":             true,
		"seccompProfile":           map[string]any{"type": "RuntimeDefault"},
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Pod",
		"metadata": map[string]any{
			"name":        PodName,
			"namespace":   Namespace,
			"labels":      map[string]any{"gatekeeper.sh/system": "yes"},
			"annotations": map[string]any{"croft.dev/sandbox": "stands for a process of the sandbox, and is never scheduled"},
		},
		"spec": map[string]any{
			"serviceAccountName":           ServiceAccount,
			"automountServiceAccountToken": false,
			"schedulerName":                "none",
			"containers": []any{map[string]any{
				"name": "manager", "image": "gatekeeper", "securityContext": restricted,
			}},
		},
	}}
}
