package recent

import (
	"bytes"
	"testing"
)

// TestPack unpacks the same content. A small content that unpacks to a very large one is refused.
func TestPack(t *testing.T) {
	for _, size := range []int{0, 1000, mostUnpacked + 1} {
		data := make([]byte, size)
		packed, err := pack(data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := unpack(packed)
		if isRefused := size > mostUnpacked; (err != nil) != isRefused || !isRefused && !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %d packed: %d bytes, %v", size, len(packed), len(got), err)
		}
	}
}
