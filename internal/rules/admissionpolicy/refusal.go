package admissionpolicy

import "regexp"

// Refusal is a rule's answer in a message of the API server.
type Refusal struct {
	// Policy is the name of the ValidatingAdmissionPolicy.
	Policy string
	// Rule is empty for policies whose messages name no rule.
	Rule string
	// Message is the text after the rule's name, with all that follows in the API server's message.
	Message string
}

var (
	denied = regexp.MustCompile(`(?s)` + byPolicy + ` denied request: ` + ruleAndMessage)
	warned = regexp.MustCompile(`(?s)^Validation failed for ` + byPolicy + `: ` + ruleAndMessage)
)

const (
	byPolicy       = `ValidatingAdmissionPolicy '([^']+)' with binding '[^']+'`
	ruleAndMessage = `(?:\[([a-z0-9-]+)\] )?(.*)`
)

// ParseRefusal parses the API server's message about a refused request. It returns false if no policy refused
// the request.
func ParseRefusal(text string) (Refusal, bool) { return parseAnswer(denied, text) }

// ParseWarning parses a warning of the API server. It returns false if it is not from a policy.
func ParseWarning(text string) (Refusal, bool) { return parseAnswer(warned, text) }

func parseAnswer(pattern *regexp.Regexp, text string) (Refusal, bool) {
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		return Refusal{}, false
	}
	return Refusal{Policy: found[1], Rule: found[2], Message: found[3]}, true
}

// FormatMessage returns the message as the policy wrote it, with the name of the rule.
func (r Refusal) FormatMessage() string {
	if r.Rule == "" {
		return r.Message
	}
	return RefusalPrefix(r.Rule) + r.Message
}
