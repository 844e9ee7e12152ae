package network

import "k8s.io/apimachinery/pkg/runtime/schema"

// awsKind is that of the Amazon VPC CNI. It differs from what network plugins share in
// how ports are written.
var awsKind = schema.GroupVersionKind{Group: "networking.k8s.aws", Version: "v1alpha1", Kind: "ClusterNetworkPolicy"}
