// Package gatekeeper converts Gatekeeper's own manifest to the objects of a sandbox: it leaves
// out the workloads, and its webhooks point to a process on this machine.
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

// ManifestPath returns the path of a binary's manifest.
func ManifestPath(binary string) string { return binary + ".yaml" }

// Manifest is the objects that Gatekeeper needs in the cluster.
type Manifest struct {
	// Objects must exist before Gatekeeper starts: its namespace, CRDs and rights.
	Objects []*unstructured.Unstructured
	// Webhooks are written when Gatekeeper answers: from then on the API server calls it.
	Webhooks []*unstructured.Unstructured
}

// objectKinds are the kinds of Objects: all kinds except the workloads, and the objects that
// only workloads need.
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

// NewPod returns a pod that represents the process. Gatekeeper's status objects have its pod as
// owner, and it writes none without a pod. The pod is never scheduled.
func NewPod() *unstructured.Unstructured {
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
			"annotations": map[string]any{"croft.dev/sandbox": "represents a process of the sandbox, and is never scheduled"},
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
