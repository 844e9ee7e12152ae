package calico

import (
	"fmt"
	"slices"
	"strings"
)

// Selector is an expression over labels in Calico's selector language.
type Selector struct {
	text    string
	matches func(labels map[string]string) bool
	// pairs are the labels that the expression tests.
	pairs []pair
}

type pair struct{ key, value string }

// Everything matches everything.
var Everything = Selector{text: "all()", matches: func(map[string]string) bool { return true }}

// Parse reads a selector. An empty selector matches everything.
func Parse(text string) (Selector, error) {
	p := &parser{rest: text}
	p.next()
	if p.isAtEnd() && p.err == nil {
		return Everything, nil
	}
	matches := p.parseOr(0)
	if p.err == nil && !p.isAtEnd() {
		p.fail("%q follows its end", p.token)
	}
	if p.err != nil {
		return Selector{}, fmt.Errorf("selector %q: %w", text, p.err)
	}
	return Selector{text: text, matches: matches, pairs: p.pairs}, nil
}

// Matches reports whether the selector matches labels.
func (s Selector) Matches(labels map[string]string) bool { return s.matches(labels) }

// Samples returns labels that the selector distinguishes from no labels.
func (s Selector) Samples() []map[string]string {
	together := map[string]string{}
	var all []map[string]string
	for _, p := range s.pairs {
		together[p.key] = p.value
		all = append(all, map[string]string{p.key: p.value})
	}
	if len(together) > 1 {
		all = append(all, together)
	}
	return all
}

// String returns the source text of the selector.
func (s Selector) String() string { return s.text }

type predicate = func(map[string]string) bool

// deepest is the maximum nesting of parentheses and negations.
const deepest = 100

// parser reads a selector with one token of look-ahead.
type parser struct {
	rest, token string
	// literal is set if the token was quoted.
	literal bool
	pairs   []pair
	err     error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.token, p.literal, p.rest = "", false, ""
}

// blanks may occur between two tokens. space may occur within a token that Calico reads as a
// whole: a function with its parentheses, and an operator of two words.
const blanks, space = " \t", " \t\n\f\r"

func (p *parser) next() { p.nextAfter(blanks) }

// nextAfter skips the given characters and reads the next token.
func (p *parser) nextAfter(skipped string) {
	p.rest = strings.TrimLeft(p.rest, skipped)
	p.token, p.literal = "", false
	if p.rest == "" {
		return
	}
	take := func(n int) { p.token, p.rest = p.rest[:n], p.rest[n:] }
	switch c := p.rest[0]; {
	case c == '\'' || c == '"':
		value, after, closed := strings.Cut(p.rest[1:], string(c))
		if !closed {
			p.fail("a string is not closed")
			return
		}
		p.token, p.rest, p.literal = value, after, true
	case slices.ContainsFunc([]string{"==", "!=", "&&", "||"}, func(two string) bool { return strings.HasPrefix(p.rest, two) }):
		take(2)
	case strings.ContainsRune("(){},!", rune(c)):
		take(1)
	case isKey(c):
		n := 1
		for n < len(p.rest) && isKey(p.rest[n]) {
			n++
		}
		take(n)
	default:
		p.fail("%q is not understood", p.rest)
	}
}

func isKey(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_./-", c) >= 0
}

func (p *parser) isAtEnd() bool { return p.token == "" && !p.literal }

// isToken reports whether the next token is the given one, without quotes.
func (p *parser) isToken(token string) bool { return p.token == token && !p.literal }

func (p *parser) expect(token string) {
	if !p.isToken(token) {
		p.fail("%q is missing before %q", token, p.token)
		return
	}
	p.next()
}

func (p *parser) parseOr(depth int) predicate {
	left := p.parseAnd(depth)
	for p.isToken("||") {
		p.next()
		l, r := left, p.parseAnd(depth)
		left = func(labels map[string]string) bool { return l(labels) || r(labels) }
	}
	return left
}

func (p *parser) parseAnd(depth int) predicate {
	left := p.parseUnary(depth)
	for p.isToken("&&") {
		p.next()
		l, r := left, p.parseUnary(depth)
		left = func(labels map[string]string) bool { return l(labels) && r(labels) }
	}
	return left
}

func (p *parser) parseUnary(depth int) predicate {
	switch {
	case depth > deepest:
		p.fail("it is nested more than %d deep", deepest)
	case p.isToken("!"):
		p.next()
		operand := p.parseUnary(depth + 1)
		return func(labels map[string]string) bool { return !operand(labels) }
	case p.isToken("("):
		p.next()
		operand := p.parseOr(depth + 1)
		p.expect(")")
		return operand
	case p.token == "" || p.literal || !isKey(p.token[0]):
		p.fail("a label, has(), all() or global() is missing before %q", p.token)
	default:
		return p.parseOperation()
	}
	return matchesNothing
}

func matchesNothing(map[string]string) bool { return false }

// parseOperation reads a function, or a label and its condition.
func (p *parser) parseOperation() predicate {
	key := p.token
	if strings.HasPrefix(p.rest, "(") {
		p.next()
		return p.parseFunction(key)
	}
	p.next()
	with := func(sample string, ask func(value string, ok bool) bool) predicate {
		p.pairs = append(p.pairs, pair{key, sample})
		return func(labels map[string]string) bool {
			value, ok := labels[key]
			return ask(value, ok)
		}
	}
	// The two words of an operator may be written as one: startswith.
	word := p.token
	literal := p.literal
	if second := map[string]string{"not": "in", "starts": "with", "ends": "with"}[word]; second != "" && !literal {
		p.nextAfter(space)
		if p.isToken(second) {
			word += second
			p.next()
		}
	} else {
		p.next()
	}
	switch {
	case literal:
	case word == "==":
		want := p.parseValue()
		return with(want, func(value string, ok bool) bool { return ok && value == want })
	case word == "!=":
		want := p.parseValue()
		return with(want, func(value string, ok bool) bool { return !ok || value != want })
	case word == "in":
		want := p.parseSet()
		return with(firstOrAny(want), func(value string, ok bool) bool { return ok && slices.Contains(want, value) })
	case word == "notin":
		want := p.parseSet()
		return with(firstOrAny(want), func(value string, ok bool) bool { return !ok || !slices.Contains(want, value) })
	case word == "contains":
		want := p.parseValue()
		return with(want, func(value string, ok bool) bool { return ok && strings.Contains(value, want) })
	case word == "startswith":
		want := p.parseValue()
		return with(want, func(value string, ok bool) bool { return ok && strings.HasPrefix(value, want) })
	case word == "endswith":
		want := p.parseValue()
		return with(want, func(value string, ok bool) bool { return ok && strings.HasSuffix(value, want) })
	}
	p.fail("after label %s an operator is expected, not %q", key, word)
	return matchesNothing
}

func (p *parser) parseFunction(name string) predicate {
	p.nextAfter(space)
	switch name {
	case "all", "global":
		p.expect(")")
		return func(labels map[string]string) bool {
			// An object in a namespace has the namespace's name as a label, and the namespace
			// has its own name.
			_, isNamespace := labels[nameLabel]
			_, inNamespace := labels[namespaceLabel]
			return name == "all" || !isNamespace && !inNamespace
		}
	case "has":
		key := p.token
		if key == "" || p.literal || !isKey(key[0]) {
			p.fail("has() wants a label")
			return matchesNothing
		}
		p.nextAfter(space)
		p.expect(")")
		p.pairs = append(p.pairs, pair{key, "any"})
		return func(labels map[string]string) bool { _, ok := labels[key]; return ok }
	default:
		p.fail("there is no %s()", name)
		return matchesNothing
	}
}

func (p *parser) parseValue() string {
	value := p.token
	if !p.literal {
		p.fail("a value in quotes is missing before %q", p.token)
		return ""
	}
	p.next()
	return value
}

func (p *parser) parseSet() []string {
	p.expect("{")
	var all []string
	for p.err == nil && !p.isToken("}") {
		all = append(all, p.parseValue())
		if !p.isToken("}") {
			p.expect(",")
		}
	}
	p.expect("}")
	return all
}

func firstOrAny(values []string) string {
	if len(values) == 0 {
		return "any"
	}
	return values[0]
}
