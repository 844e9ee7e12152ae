package admissionpolicy

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// For each validation of a policy the API server runs one program, and another for its
// message even if the validation is true: some 25 allocations before any evaluation. croft
// has two dozen rules on pods, most of them on fields that are rare. These are merged into
// one validation, in which one program finds that a pod has none of the fields.

// mergeRules merges several rules into one validation. A CEL comment with its name precedes
// each rule.
func mergeRules(rules []Rule) admissionv1.Validation {
	fine := []string{"variables." + withinVariable}
	var expressions, messages []string
	for _, r := range rules {
		asked := "(" + removeIndentation(r.Expression) + ")"
		if text := "(" + removeIndentation(r.FastPath) + ")"; !slices.Contains(fine, text) {
			fine = append(fine, text)
		}
		expressions = append(expressions, formatHeading(r.Name)+asked)
		messages = append(messages, formatHeading(r.Name)+"!"+asked+" ? "+r.buildRefusalMessage()+" :\n")
	}
	allFine := strings.Join(fine, " &&\n")
	return admissionv1.Validation{
		Expression:        allFine + " ||\n" + strings.Join(expressions, " &&\n"),
		MessageExpression: allFine + ` ? "" :` + "\n" + strings.Join(messages, "") + `""`,
		Reason:            ptr.To(metav1.StatusReasonForbidden),
	}
}

func formatHeading(rule string) string { return "// " + strings.TrimSpace(RefusalPrefix(rule)) + "\n" }

// headings matches the comments that heading writes, and inMessage the name at the start of a
// message.
var (
	headings  = regexp.MustCompile(`(?m)^// \[([a-z0-9-]+)\]\n`)
	inMessage = regexp.MustCompile(`"\[([a-z0-9-]+)\] `)
)

// GetMessage returns a CEL expression for the message of a validation.
func GetMessage(v admissionv1.Validation) string {
	return cmp.Or(v.MessageExpression, Quote(v.Message))
}

// ParsedRule is a rule as it appears in a policy.
type ParsedRule struct {
	// Rule is the rule's name.
	Rule string
	// Message is a CEL expression for the message if the rule is violated.
	Message string
}

// ParseRules returns the rules of a validation: one, or several that are merged.
func ParseRules(v admissionv1.Validation) []ParsedRule {
	message := GetMessage(v)
	found := headings.FindAllStringSubmatchIndex(message, -1)
	if len(found) == 0 {
		one := ParsedRule{Rule: message, Message: message}
		if match := inMessage.FindStringSubmatch(message); match != nil {
			one.Rule = match[1]
		}
		return []ParsedRule{one}
	}
	var all []ParsedRule
	for i, at := range found {
		end := len(message)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		all = append(all, ParsedRule{Rule: message[at[2]:at[3]], Message: message[at[1]:end]})
	}
	return all
}
