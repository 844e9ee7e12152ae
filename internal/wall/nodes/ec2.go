package nodes

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/estate"
)

const (
	awsGroup         = "karpenter.k8s.aws"
	kindEC2NodeClass = "EC2NodeClass"
)

// ec2NodeClass is a pool's class as Karpenter has it. The estate has written out
// all of it, in fields that are named as Karpenter's are. It is unstructured: the
// AWS provider's types would bring the whole AWS SDK into this binary.
func ec2NodeClass(pool *estate.Pool) client.Object {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pool.Class.AWS)
	if err != nil {
		panic(err) // the type has nothing that JSON cannot say
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": awsGroup + "/v1",
		"kind":       kindEC2NodeClass,
		"metadata":   map[string]any{"name": pool.Name},
		"spec":       spec,
	}}
}
