package admissionpolicy

import (
	"regexp"
	"slices"
	"strings"
)

// A pod is evaluated by dozens of expressions, and the cost of each hardly depends on the
// pod: for each request, the API server appends every declared variable to a map three times,
// and evaluates each variable that is read as a separate program. So the policies on pods are
// written with variables, for readability, and rendered without variables that are read once
// or that only rename another one.

var variableRead = regexp.MustCompile(`variables\.([A-Za-z]+)`)

// otherName matches an expression that costs no more than a variable.
var otherName = regexp.MustCompile(
	`^((object|oldObject|request)(\.[A-Za-z]+)*|"[^"\\]*"|\[\]|true|false|request\.operation == "CREATE")$`)

// isOptionalField reports whether the variable is an optional field, and empty if the field is
// absent.
func (v Variable) isOptionalField() bool {
	field, rest, _ := strings.Cut(strings.TrimPrefix(v.Expression, "has("), ") ? ")
	return otherName.MatchString(field) && strings.HasPrefix(v.Expression, "has(") &&
		(rest == field+" : []" || rest == field+" : {}")
}

// inlineVariables replaces reads of variables by their expressions, and removes unused variables.
//
// few is the number of reads up to which variables for a tenant's rules are inlined. For
// rules it is 2: the rules read a tenant's allowances only if a pod uses them, which is rare.
// Two such reads are cheaper than one variable for all pods.
func inlineVariables(variables []Variable, rules []Rule, few int) ([]Variable, []Rule) {
	variables, rules = slices.Clone(variables), slices.Clone(rules)
	for _, v := range slices.Clone(variables) {
		if otherName.MatchString(v.Expression) || v.isOptionalField() {
			v.inlineInto(variables, rules, true)
		}
	}
	for again := true; again; {
		again = false
		live := findReadVariables(variables, listRuleExpressions(rules))
		for _, v := range slices.Backward(variables) {
			if live[v.Name] && v.isReadOnce(variables, rules, live, few) {
				v.inlineInto(variables, rules, false)
				again = true
				break
			}
		}
	}
	// Variables that only messages read are inlined, too: a declared variable has a cost even
	// if it is not read.
	live := findReadVariables(variables, listRuleExpressions(rules))
	for _, v := range slices.Backward(variables) {
		if !live[v.Name] && v.isOutsideLoops(variables, rules) {
			v.inlineInto(variables, rules, true)
		}
	}
	texts := listRuleExpressions(rules)
	for _, r := range rules {
		texts = append(texts, r.Message, r.FastPath)
	}
	read := findReadVariables(variables, texts)
	return slices.DeleteFunc(variables, func(v Variable) bool { return !read[v.Name] }), rules
}

func listRuleExpressions(rules []Rule) []string {
	all := make([]string, 0, len(rules))
	for _, r := range rules {
		all = append(all, r.Expression)
	}
	return all
}

// findReadVariables returns the variables that the texts read, directly or through other variables.
func findReadVariables(variables []Variable, texts []string) map[string]bool {
	read := map[string]bool{}
	for len(texts) > 0 {
		var more []string
		for _, text := range texts {
			for _, match := range variableRead.FindAllStringSubmatch(text, -1) {
				if read[match[1]] {
					continue
				}
				read[match[1]] = true
				for _, v := range variables {
					if v.Name == match[1] {
						more = append(more, v.Expression)
					}
				}
			}
		}
		texts = more
	}
	return read
}

// findReads returns the positions in a text that read the variable.
func (v Variable) findReads(text string) [][]int {
	if !strings.Contains(text, "variables."+v.Name) {
		return nil
	}
	return slices.DeleteFunc(variableRead.FindAllStringSubmatchIndex(text, -1), func(at []int) bool {
		return text[at[2]:at[3]] != v.Name
	})
}

// isReadOnce reports whether the variable is read in one position, or at most few positions for a
// variable of a tenant's rules, and only once for an object in each of them.
func (v Variable) isReadOnce(variables []Variable, rules []Rule, live map[string]bool, few int) bool {
	reads, once := 0, true
	if !strings.HasPrefix(v.Name, rulesVariable) {
		few = 1
	}
	look := func(text string) {
		for _, at := range v.findReads(text) {
			reads++
			once = once && !isRepeated(text[:at[0]])
		}
	}
	for _, other := range variables {
		if live[other.Name] {
			look(other.Expression)
		}
	}
	for _, r := range rules {
		look(r.Expression)
	}
	return reads <= few && once
}

// isOutsideLoops reports whether no position reads the variable more than once for an object.
func (v Variable) isOutsideLoops(variables []Variable, rules []Rule) bool {
	var texts []string
	for _, other := range variables {
		texts = append(texts, other.Expression)
	}
	for _, r := range rules {
		texts = append(texts, r.Message, r.FastPath)
	}
	return !slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(v.findReads(text), func(at []int) bool { return isRepeated(text[:at[0]]) })
	})
}

// inlineInto replaces reads of the variable by its expression in rules and other variables, and
// also in messages if messages is set.
func (v Variable) inlineInto(variables []Variable, rules []Rule, messages bool) {
	written := v.Expression
	if !otherName.MatchString(written) || strings.Contains(written, "==") {
		written = "(" + written + ")"
	}
	write := func(text string) string {
		for _, at := range slices.Backward(v.findReads(text)) {
			text = text[:at[0]] + written + text[at[1]:]
		}
		return text
	}
	for i := range variables {
		variables[i].Expression = write(variables[i].Expression)
	}
	for i := range rules {
		rules[i].Expression, rules[i].FastPath = write(rules[i].Expression), write(rules[i].FastPath)
		if messages {
			rules[i].Message = write(rules[i].Message)
		}
	}
}

// loops are the macros whose arguments are evaluated for each entry of a list.
var loops = map[string]bool{
	"all": true, "exists": true, "exists_one": true, "filter": true, "map": true,
	"transformList": true, "transformMap": true, "sortBy": true,
}

// endsWithLoop reports whether a text ends with the name of such a macro.
func endsWithLoop(text string) bool {
	begin := len(text)
	for begin > 0 && isNameCharacter(text[begin-1]) {
		begin--
	}
	return begin > 0 && text[begin-1] == '.' && loops[text[begin:]]
}

// isNameCharacter reports whether a character can be part of a macro's name.
func isNameCharacter(c byte) bool {
	return c == '_' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// isRepeated reports whether the expression after a text is evaluated more than once.
func isRepeated(text string) bool {
	var open []bool
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case strings.IndexByte("([{", c) >= 0:
			open = append(open, c == '(' && endsWithLoop(text[:i]))
		case strings.IndexByte(")]}", c) >= 0:
			open = open[:len(open)-1]
		}
	}
	return slices.Contains(open, true)
}
