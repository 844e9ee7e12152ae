package policy

// hostname is the required form of a host, which is checked first. The parser of a rule
// and that of the controller may disagree about hosts of any other form.
const hostname = `^([a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9])?[.])*[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`

// outside is true if a host, in lower case, is outside of the cluster as far as its name
// shows, or a Service of the tenant's or the platform's namespaces.
//
// Its last label is a top-level domain: letters only, or xn--. So addresses in any
// notation (127.1, 0x7f000001, 2130706433) are excluded, and so is SERVICE.NAMESPACE if
// the namespace has a hyphen or a digit.
func outside(host string) string {
	return with(`(NOT_INSIDE || HOST.matches("HOSTNAME") && `+clusterNames("HOST")+`)`,
		"NOT_INSIDE", notInside(host), "HOSTNAME", hostname, "HOST", host)
}

// notInside is true if a host, in lower case, is outside of the cluster as far as its
// name shows.
func notInside(host string) string {
	return with(`(HOST.matches("HOSTNAME") &&
		HOST.matches("[.]([a-z]{2,63}|xn--[-a-z0-9]+)$") &&
		!HOST.matches("(^|[.])((svc|pod)([.]|$)|(local|localhost|localdomain|internal)$)") &&
		HOST != "metadata.goog")`,
		"HOSTNAME", hostname, "HOST", host)
}

// urlWithin is true if a text is a URL, and the condition asked holds for its host h in
// lower case.
func urlWithin(text, asked string) string {
	return with(`(isURL(TEXT) && url(TEXT).getScheme() != "" &&
		[url(TEXT).getHostname().lowerAscii()].all(h, ASKED))`, "ASKED", asked, "TEXT", text)
}
