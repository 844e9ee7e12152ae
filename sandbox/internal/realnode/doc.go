// Package realnode runs real nodes for a sandbox: for each Node that Karpenter creates, a
// containerd and a kubelet in namespaces of their own (process, mount, network, host name),
// as kind runs nodes in containers. Their network is a namespace, too, which the API server
// reaches through a proxy, as on managed clusters. So nothing outlives the sandbox but empty
// cgroups, which the next one removes, however the sandbox ends; the machine's sysctls, routes
// and links stay unchanged.
//
// It needs root, Linux, and the programs that `make nodes` builds.
package realnode

// MaxNodes is the number of real nodes of a sandbox; kwok simulates further ones.
const MaxNodes = 3
