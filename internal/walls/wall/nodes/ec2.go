package nodes

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
)

const (
	awsGroup         = "karpenter.k8s.aws"
	kindEC2NodeClass = "EC2NodeClass"
)

// buildEC2NodeClass returns a pool's EC2NodeClass. The estate has filled in all fields, under
// Karpenter's names. The object is unstructured because the AWS provider's types would add
// the whole AWS SDK to this binary.
func buildEC2NodeClass(pool *estate.Pool) client.Object {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pool.Class.AWS)
	if err != nil {
		panic(err) // JSON can encode every field of the type
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": awsGroup + "/v1",
		"kind":       kindEC2NodeClass,
		"metadata":   map[string]any{"name": pool.Name},
		"spec":       spec,
	}}
}
