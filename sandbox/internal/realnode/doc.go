// Package realnode runs real nodes for a sandbox: for each Node that Karpenter creates, a
// containerd and a kubelet in namespaces of their own (process, mount, network, host name),
// as kind runs nodes in containers. Their network is a namespace, too. The API server connects
// to it through a proxy, as on managed clusters. However the sandbox ends, only empty cgroups
// outlive it, which the next one removes; the machine's sysctls, routes and links stay
// unchanged.
//
// It needs root, Linux, and the programs that `make nodes` builds.
package realnode

// MaxNodes is the maximum number of real nodes of a sandbox. Further Nodes stay NotReady.
const MaxNodes = 3
