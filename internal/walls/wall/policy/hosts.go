package policy

// hostname is the required form of a host. It is checked first, because the parser in a rule
// and the parser in the controller may interpret hosts of any other form differently.
const hostname = `^([a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9])?[.])*[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`

// matchSafeHost returns the condition that a host, in lower case, is outside of the cluster as far
// as its name shows, or a Service in a namespace of the tenant or the platform.
//
// The last label must be a top-level domain: letters only, or xn--. This excludes addresses
// in any notation (127.1, 0x7f000001, 2130706433), and SERVICE.NAMESPACE if the namespace has
// a hyphen or a digit.
func matchSafeHost(host string) string {
	return replaceWords(`(NOT_INSIDE || HOST.matches("HOSTNAME") && `+matchClusterName("HOST")+`)`,
		"NOT_INSIDE", matchOutsideHost(host), "HOSTNAME", hostname, "HOST", host)
}

// matchOutsideHost returns the condition that a host, in lower case, is outside of the cluster as
// far as its name shows.
func matchOutsideHost(host string) string {
	return replaceWords(`(HOST.matches("HOSTNAME") &&
		HOST.matches("[.]([a-z]{2,63}|xn--[-a-z0-9]+)$") &&
		!HOST.matches("(^|[.])((svc|pod)([.]|$)|(local|localhost|localdomain|internal)$)") &&
		HOST != "metadata.goog")`,
		"HOSTNAME", hostname, "HOST", host)
}

// matchURLHost returns the condition that a text is a URL and that the condition asked is true
// for its host h, in lower case.
func matchURLHost(text, asked string) string {
	return replaceWords(`(isURL(TEXT) && url(TEXT).getScheme() != "" &&
		[url(TEXT).getHostname().lowerAscii()].all(h, ASKED))`, "ASKED", asked, "TEXT", text)
}

// matchClusterName returns the condition that a host is the in-cluster name of a Service in a
// namespace of the tenant or the platform.
func matchClusterName(host string) string {
	return replaceWords(`(params.spec.namespaces + params.spec.platformNamespaces).exists(n,
		HOST.endsWith("." + n + ".svc") || HOST.endsWith("." + n + ".svc.cluster.local"))`, "HOST", host)
}
