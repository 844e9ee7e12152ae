package attach

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// computeToken returns the client token of a request. The token depends on all parameters of the
// request, and not on the replica that makes it. EC2 refuses a token that is reused with
// other parameters, and accepts up to 64 characters.
func computeToken(c *Create, attempt int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%q %q %q %q %d", c.Claim.UID, c.Network, c.Subnet, c.Groups, attempt)
	for _, key := range slices.Sorted(maps.Keys(c.Tags)) {
		fmt.Fprintf(&text, " %q=%q", key, c.Tags[key])
	}
	if c.Prefixes > 0 { // without prefixes, the token is the same as in older versions
		fmt.Fprintf(&text, " prefixes %d", c.Prefixes)
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:])
}
