// Package scheme registers every kind that croft reads or writes as a Go type. The command
// line and the operator share it.
package scheme

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	kwokv1alpha1 "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
)

// New returns a scheme with the kinds of Kubernetes, croft and Karpenter, and
// CustomResourceDefinitions.
func New() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	addKarpenter(s)
	return s
}

// addKarpenter exists because Karpenter's packages register their kinds only with
// client-go's global scheme.
func addKarpenter(s *runtime.Scheme) {
	karpenter := schema.GroupVersion{Group: karpenterapis.Group, Version: "v1"}
	s.AddKnownTypes(karpenter,
		&karpenterv1.NodePool{}, &karpenterv1.NodePoolList{},
		&karpenterv1.NodeClaim{}, &karpenterv1.NodeClaimList{},
	)
	metav1.AddToGroupVersion(s, karpenter)

	kwok := schema.GroupVersion{Group: kwokapis.Group, Version: "v1alpha1"}
	s.AddKnownTypes(kwok, &kwokv1alpha1.KWOKNodeClass{}, &kwokv1alpha1.KWOKNodeClassList{})
	metav1.AddToGroupVersion(s, kwok)
}
