// Command croft keeps tenants apart on a shared Kubernetes cluster.
package main

import (
	"os"

	"croft.dev/croft/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
