package main

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/hack/internal/tenants"
)

// documentKey is the label of node pools in the recipe.
const documentKey = "node-pool"

// buildByHand returns the objects of the well-known recipe for one namespace per team on Karpenter:
// a namespace, and two Assigns that place its pods on its node pool. They are as in the recipe:
// without operations, and with a nodeSelector and tolerations that replace the pod's own.
func buildByHand(count int) ([][]*unstructured.Unstructured, error) {
	all := make([][]*unstructured.Unstructured, count)
	for i := range all {
		name := tenants.Name("a", i)
		pool := "pool-" + name
		all[i] = []*unstructured.Unstructured{
			{Object: map[string]any{
				"apiVersion": "v1", "kind": "Namespace",
				"metadata": map[string]any{"name": name, "labels": map[string]any{engineLabel: engineGatekeeper}},
			}},
			buildAssign("nodepool-selector-"+name, name, "spec.nodeSelector", map[string]any{documentKey: pool}),
			buildAssign("nodepool-toleration-"+name, name, "spec.tolerations",
				[]any{map[string]any{"key": documentKey, "operator": "Equal", "value": pool}}),
		}
	}
	return all, nil
}

func buildAssign(name, namespace, location string, value any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "mutations.gatekeeper.sh/v1", "kind": "Assign",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"applyTo": []any{map[string]any{"groups": []any{""}, "kinds": []any{"Pod"}, "versions": []any{"v1"}}},
			"match": map[string]any{
				"kinds":      []any{map[string]any{"apiGroups": []any{"*"}, "kinds": []any{"Pod"}}},
				"namespaces": []any{namespace},
				"scope":      "Namespaced",
			},
			"location":   location,
			"parameters": map[string]any{"assign": map[string]any{"value": value}},
		},
	}}
}
