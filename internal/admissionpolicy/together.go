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

// together merges several rules into one validation. A CEL comment with its name precedes
// each rule.
func together(rules []Rule) admissionv1.Validation {
	fine := []string{"variables." + withinVariable}
	var holds, says []string
	for _, r := range rules {
		asked := "(" + clean(r.Holds) + ")"
		if text := "(" + clean(r.Fine) + ")"; !slices.Contains(fine, text) {
			fine = append(fine, text)
		}
		holds = append(holds, heading(r.Name)+asked)
		says = append(says, heading(r.Name)+"!"+asked+" ? "+r.says()+" :\n")
	}
	allFine := strings.Join(fine, " &&\n")
	return admissionv1.Validation{
		Expression:        allFine + " ||\n" + strings.Join(holds, " &&\n"),
		MessageExpression: allFine + ` ? "" :` + "\n" + strings.Join(says, "") + `""`,
		Reason:            ptr.To(metav1.StatusReasonForbidden),
	}
}

func heading(rule string) string { return "// " + strings.TrimSpace(Refusal(rule)) + "\n" }

// headings matches the comments that heading writes, and inMessage the name at the start of a
// message.
var (
	headings  = regexp.MustCompile(`(?m)^// \[([a-z0-9-]+)\]\n`)
	inMessage = regexp.MustCompile(`"\[([a-z0-9-]+)\] `)
)

// MessageOf returns a CEL expression for the message of a validation.
func MessageOf(v admissionv1.Validation) string { return cmp.Or(v.MessageExpression, Quote(v.Message)) }

// Asked is a rule as it appears in a policy.
type Asked struct {
	// Rule is the rule's name.
	Rule string
	// Message is a CEL expression for the message if the rule is violated.
	Message string
}

// AskedBy returns the rules of a validation: one, or several that are merged.
func AskedBy(v admissionv1.Validation) []Asked {
	message := MessageOf(v)
	found := headings.FindAllStringSubmatchIndex(message, -1)
	if len(found) == 0 {
		one := Asked{Rule: message, Message: message}
		if match := inMessage.FindStringSubmatch(message); match != nil {
			one.Rule = match[1]
		}
		return []Asked{one}
	}
	var all []Asked
	for i, at := range found {
		end := len(message)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		all = append(all, Asked{Rule: message[at[2]:at[3]], Message: message[at[1]:end]})
	}
	return all
}

// Waive disables one rule of a validation.
func Waive(v *admissionv1.Validation, rule string) {
	found := headings.FindAllStringSubmatchIndex(v.Expression, -1)
	if len(found) == 0 {
		v.Expression = "true"
		return
	}
	for i, at := range found {
		if v.Expression[at[2]:at[3]] != rule {
			continue
		}
		rest := ""
		if i+1 < len(found) {
			rest = " &&\n" + v.Expression[found[i+1][0]:]
		}
		v.Expression = v.Expression[:at[1]] + "true" + rest
		return
	}
}
