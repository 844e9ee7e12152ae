package network

import "k8s.io/apimachinery/pkg/runtime/schema"

// awsKind is the kind of the Amazon VPC CNI. It differs from the API that network plugins
// share in the notation of ports.
var awsKind = schema.GroupVersionKind{Group: "networking.k8s.aws", Version: "v1alpha1", Kind: "ClusterNetworkPolicy"}
