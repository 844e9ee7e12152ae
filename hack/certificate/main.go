// Command certificate writes a self-signed certificate for 127.0.0.1 and its key, for servers
// of the demo.
package main

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/util/cert"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: certificate CERTIFICATE KEY")
		os.Exit(2)
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err == nil {
		err = errors.Join(os.WriteFile(os.Args[1], certificate, 0o600), os.WriteFile(os.Args[2], key, 0o600))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "certificate: %v\n", err)
		os.Exit(1)
	}
}
