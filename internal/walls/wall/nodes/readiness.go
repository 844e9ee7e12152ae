package nodes

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// ReadinessRule is the kind of kubernetes-sigs/node-readiness-controller. The controller
// removes a taint from nodes once their conditions match a rule.
var ReadinessRule = schema.GroupVersionKind{
	Group: "readiness.node.x-k8s.io", Version: "v1alpha1", Kind: "NodeReadinessRule",
}

// longestRule is the maximum length of a rule's name, in bytes. The controller marks nodes
// with the annotation readiness.k8s.io/bootstrap-completed-NAME, and the part after the slash
// may have 63 bytes.
const longestRule = 63 - len("bootstrap-completed-")

// buildReadinessRule admits pods to the nodes of a pool as soon as croft's operator reports that
// they can start there. It has a single condition that summarizes all others, because a
// rule's conditions, taint, selector and mode are immutable.
//
// The mode is bootstrap-only, because running pods keep their interfaces even if Multus
// fails. A taint that is added again would replace nodes: Karpenter creates new ones for the
// pods that wait.
// wait.
func buildReadinessRule(pool *estate.Pool) client.Object {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"conditions": []any{map[string]any{
			"type": v1alpha1.ConditionPodNetworksReady, "requiredStatus": string(corev1.ConditionTrue),
		}},
		"enforcementMode": "bootstrap-only",
		"dryRun":          false,
		"taint": map[string]any{
			"key": networksTaint.Key, "value": networksTaint.Value, "effect": string(networksTaint.Effect),
		},
		"nodeSelector": map[string]any{"matchLabels": map[string]any{
			v1alpha1.NodeNetworksLabel: "true", karpenterv1.NodePoolLabelKey: pool.Name,
		}},
	}}}
	u.SetGroupVersionKind(ReadinessRule)
	u.SetName(formatRuleName(pool.Name))
	return u
}

// formatRuleName returns croft-POOL, or croft- and a hash if that is too long.
func formatRuleName(pool string) string {
	const prefix = "croft-"
	if len(prefix)+len(pool) <= longestRule {
		return prefix + pool
	}
	sum := sha256.Sum256([]byte(pool))
	return prefix + hex.EncodeToString(sum[:8])
}

// Readiness returns the pool's rule for the node readiness controller, or nothing for a pool
// without waitForNetworks. The rule is written only to clusters that serve the kind.
func (Wall) Readiness(pool *estate.Pool) []client.Object {
	if !pool.WaitForNetworks {
		return nil
	}
	return []client.Object{buildReadinessRule(pool)}
}
