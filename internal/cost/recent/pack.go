package recent

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// mostUnpacked limits the size of an hour, so that a small ConfigMap cannot fill the memory.
const mostUnpacked = 64 << 20

// pack compresses the file of an hour. Its totals are not compressed.
func pack(data []byte) ([]byte, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err := w.Close()
	return packed.Bytes(), err
}

// unpack returns the file of an hour.
func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, mostUnpacked+1))
	if err == nil && len(data) > mostUnpacked {
		err = fmt.Errorf("the content has more than %d bytes", mostUnpacked)
	}
	return data, err
}
