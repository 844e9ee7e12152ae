// Package secondary plans secondary networks: the definitions that attach pods, the
// reservations for pods' addresses, and the interfaces of a pool's instance types. It is
// pure, and does not depend on tenants.
package secondary

import (
	"crypto/sha256"
	"encoding/hex"
)

const (
	linkPrefix = "croft-"
	// longestLink is the maximum length of an interface's name in all versions of the
	// kernel and the CNI plugins: IFNAMSIZ of linux/if.h, without the final zero.
	longestLink = 15
)

// LinkName returns the name of a node's interface in a network. It is an alternative name, in
// addition to the kernel's ethN or ensN; croft's agent finds the interface by its hardware
// address and sets the name. The name is croft-NETWORK, or croft- and a hash if that is too
// long.
func LinkName(network string) string {
	if len(linkPrefix)+len(network) <= longestLink {
		return linkPrefix + network
	}
	sum := sha256.Sum256([]byte(network))
	return linkPrefix + hex.EncodeToString(sum[:])[:longestLink-len(linkPrefix)]
}
