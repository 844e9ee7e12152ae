// Command dns is the DNS server of a sandbox's real nodes: CoreDNS, with the plugins that its
// configuration (bootstrap's dns.yaml) needs. CoreDNS' own program links the clients of
// several clouds, too.
package main

import (
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
)

func main() {
	dnsserver.Directives = []string{"errors", "ready", "kubernetes", "cache"}
	coremain.Run()
}
