// Package secondary plans secondary networks: the definitions that pods are attached by,
// the reservations that their addresses come from, and the interfaces that a pool's
// instance types have for them. It is pure, and knows nothing of tenants.
package secondary

import (
	"crypto/sha256"
	"encoding/hex"
)

const (
	linkPrefix = "croft-"
	// longestLink is the longest name that every version of the kernel and of the CNI
	// plugins finds an interface by: IFNAMSIZ of linux/if.h, less the final zero.
	longestLink = 15
)

// Link is the name that a node's interface in a network has: an alternative name, which
// croft's agent gives it by its hardware address, beside the ethN or ensN that the kernel
// chose. It is croft-NETWORK, or croft- and a hash where that is too long for a name.
func Link(network string) string {
	if len(linkPrefix)+len(network) <= longestLink {
		return linkPrefix + network
	}
	sum := sha256.Sum256([]byte(network))
	return linkPrefix + hex.EncodeToString(sum[:])[:longestLink-len(linkPrefix)]
}
