package attach

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// token is the client token of a request: the same for the same request, whichever
// replica makes it, and another if anything in the request is. EC2 refuses a token that
// comes back with other parameters, and takes up to 64 characters.
func token(c *Create, attempt int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%q %q %q %q %d", c.Claim.UID, c.Network, c.Subnet, c.Groups, attempt)
	for _, key := range slices.Sorted(maps.Keys(c.Tags)) {
		fmt.Fprintf(&text, " %q=%q", key, c.Tags[key])
	}
	if c.Prefixes > 0 { // without, the token is that of older versions
		fmt.Fprintf(&text, " prefixes %d", c.Prefixes)
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:])
}
