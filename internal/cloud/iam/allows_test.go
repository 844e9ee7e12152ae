package iam

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "a", true}, {"a", "A", false}, {"*", "", true}, {"*", "abc", true}, {"a*", "a", true}, {"a*c", "abbc", true},
		{"a*c", "abcd", false}, {"a*b*c", "aXbYbZc", true}, {"*ab", "aab", true}, {"?", "", false}, {"?", "ü", true}, {"a?c", "abc", true}, {"a?c", "ac", false},
		{"**", "x", true}, {"a*?", "a", false}, {"a*?", "ab", true}, {"*.*", "a.b.c", true}, {strings.Repeat("*a", 50), strings.Repeat("a", 49), false},
	} {
		if got := matchesPattern(c.pattern, c.text); got != c.want {
			t.Errorf("matches(%q, %q) = %v", c.pattern, c.text, got)
		}
	}
}

func TestMatchesARN(t *testing.T) {
	for _, c := range []struct {
		pattern, arn string
		want         bool
	}{
		{"*", "arn:aws:ec2:eu-west-1:1:instance/i-1", true}, {"*", "*", true}, {"*", "anything", true},
		{"arn:aws:ec2:eu-west-1:1:instance/*", "arn:aws:ec2:eu-west-1:1:instance/i-1", true},
		{"arn:aws:ec2:eu-west-1:1:instance/*", "arn:aws:ec2:eu-west-2:1:instance/i-1", false},
		{"arn:aws:ec2:eu-west-1:1:instance/*", "arn:aws:ec2:eu-west-1:1:volume/v-1", false},
		{"arn:aws:ec2:eu-west-1:1:instance/*", "*", false},
		{"arn:aws:ec2:eu-west-1::image/*", "arn:aws:ec2:eu-west-1::image/ami-1", true},
		{"arn:aws:ec2:eu-west-1::image/*", "arn:aws:ec2:eu-west-1:1:image/ami-1", false},
		{"arn:aws:ec2:*:subnet/*", "arn:aws:ec2:eu-west-1:1:subnet/s-1", false}, // * does not match a colon
		{"arn:aws:ec2:eu-west-1:*:subnet/*", "arn:aws:ec2:eu-west-1:2:subnet/s-1", true},
		{"arn:aws:logs:eu-west-1:1:log-group:a:*", "arn:aws:logs:eu-west-1:1:log-group:a:b:c", true},
		{"arn:aws:ec2", "arn:aws:ec2", false},
	} {
		if got := matchesARN(c.pattern, c.arn); got != c.want {
			t.Errorf("matchesARN(%q, %q) = %v", c.pattern, c.arn, got)
		}
	}
}

func TestConditions(t *testing.T) {
	values := func(list ...string) map[string][]string { return map[string][]string{"aws:Key": list} }
	arns := []string{"arn:aws:events:r:1:rule/a", "arn:aws:events:r:1:rule/b*"}
	for _, c := range []struct {
		operator string
		patterns []string
		context  map[string][]string
		want     bool
	}{
		{"StringEquals", []string{"a", "b"}, values("b"), true},
		{"StringEquals", []string{"a"}, values("A"), false},
		{"StringEquals", []string{"*"}, values("a"), false},
		{"StringEquals", []string{"a"}, nil, false},
		{"StringEquals", []string{"a"}, values("a", "a"), false}, // a single value only
		{"StringEqualsIfExists", []string{"a"}, nil, true},
		{"StringEqualsIfExists", []string{"a"}, values("b"), false},
		{"StringLike", []string{"*"}, values(""), true},
		{"StringLike", []string{"*"}, nil, false},
		{"StringLike", []string{"x", "a?c*"}, values("abcd"), true},
		{"StringLikeIfExists", []string{"a*"}, values("b"), false},
		{"ForAllValues:StringEquals", []string{"a", "b"}, values("a", "b", "a"), true},
		{"ForAllValues:StringEquals", []string{"a", "b"}, values("a", "c"), false},
		{"ForAllValues:StringEquals", []string{"a"}, nil, true},
		{"ForAllValues:StringLike", []string{"a*"}, values("ab", "ac"), true},
		{"ForAnyValue:StringEquals", []string{"a"}, values("c", "a"), true},
		{"ForAnyValue:StringEquals", []string{"a"}, nil, false},
		{"ForAnyValue:StringEqualsIfExists", []string{"a"}, nil, true},
		{"ForSomeValues:StringEquals", []string{"a"}, values("a"), false},
		{"ArnEquals", arns, values("arn:aws:events:r:1:rule/bcd"), true},
		{"ArnEquals", arns, values("arn:aws:events:r:2:rule/a"), false},
		{"ArnLike", arns, values("arn:aws:events:r:1:rule/a"), true},
		{"Bool", []string{"true"}, values("True"), true},
		{"Bool", []string{"true"}, values("false"), false},
		{"Bool", []string{"false"}, nil, false},
		{"Null", []string{"true"}, nil, true},
		{"Null", []string{"true"}, values("a"), false},
		{"Null", []string{"false"}, values("a"), true},
		{"Null", []string{"false"}, nil, false},
		{"NumericEquals", []string{"1"}, values("1"), false}, // unknown to this package
	} {
		s := []Statement{{Actions: []string{"ec2:*"}, Resources: []string{"*"}, Conditions: Conditions{c.operator: {"AWS:key": c.patterns}}}}
		if got := Allows(s, Request{Action: "ec2:RunInstances", Context: c.context}); got != c.want {
			t.Errorf("%s %v of %v: %v", c.operator, c.patterns, c.context, got)
		}
	}
}

func TestAllows(t *testing.T) {
	const a, b = "arn:aws:s3:::a/x", "arn:aws:s3:::b/x"
	statements := []Statement{
		{Actions: []string{"s3:Get*"}, Resources: []string{"arn:aws:s3:::a/*"}},
		{Actions: []string{"s3:GetObject", "s3:ListBuckets"}, Resources: []string{"arn:aws:s3:::b/*"}, Conditions: newEquals("k", "v")},
		{Actions: []string{"s3:List*"}, Resources: []string{"*"}, Conditions: mergeConditions(newEquals("k", "v"), newLike("l", "*"))},
	}
	v := map[string][]string{"k": {"v"}}
	for name, c := range map[string]struct {
		r    Request
		want bool
	}{
		"the resource":                 {Request{"s3:GetObject", []string{a}, nil}, true},
		"in any case":                  {Request{"S3:getobject", []string{a}, nil}, true},
		"another action":               {Request{"s3:PutObject", []string{a}, nil}, false},
		"each by its own statement":    {Request{"s3:GetObject", []string{a, b}, v}, true},
		"each must be allowed":         {Request{"s3:GetObject", []string{a, b}, nil}, false},
		"no resource, all required":    {Request{"s3:ListBuckets", nil, map[string][]string{"K": {"v"}, "L": {""}}}, true},
		"one condition of two":         {Request{"s3:ListBuckets", nil, v}, false},
		"no resource, one in reach":    {Request{"s3:GetObject", nil, v}, false},
		"a resource, where all are":    {Request{"s3:ListParts", []string{b}, map[string][]string{"k": {"v"}, "l": {"x"}}}, true},
		"statements there are none of": {Request{"iam:PassRole", []string{a}, v}, false},
	} {
		if got := Allows(statements, c.r); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if Allows(nil, Request{Action: "s3:GetObject"}) {
		t.Error("nothing allows something")
	}
}

func TestResolve(t *testing.T) {
	before := []Statement{{Sid: "a", Actions: []string{"x:Y"}, Resources: []string{formatEC2ARN("instance/*")}, Conditions: newEquals("k", region)}}
	got := Location{Partition: "aws", Region: "eu-west-1", Account: "1"}.Resolve(before)
	if got[0].Resources[0] != "arn:aws:ec2:eu-west-1:1:instance/*" || got[0].Conditions[stringEquals]["k"][0] != "eu-west-1" {
		t.Errorf("%+v", got)
	}
	if before[0].Resources[0] != formatEC2ARN("instance/*") || before[0].Conditions[stringEquals]["k"][0] != region {
		t.Errorf("what was given has changed: %+v", before)
	}
}

// FuzzMatches compares matches with a slow and simple implementation.
func FuzzMatches(f *testing.F) {
	f.Add("a*b?c", "aXbYc")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 12 || len(text) > 12 {
			return
		}
		if got, want := matchesPattern(pattern, text), matchPlainly([]rune(pattern), []rune(text)); got != want {
			t.Errorf("matches(%q, %q) = %v, want %v", pattern, text, got, want)
		}
	})
}

func matchPlainly(p, t []rune) bool {
	switch {
	case len(p) == 0:
		return len(t) == 0
	case p[0] == '*':
		return matchPlainly(p[1:], t) || len(t) > 0 && matchPlainly(p, t[1:])
	default:
		return len(t) > 0 && (p[0] == '?' || p[0] == t[0]) && matchPlainly(p[1:], t[1:])
	}
}

// TestConditionOperatorsAreKnown fails if a statement uses an unknown operator, whose
// condition is never met.
func TestConditionOperatorsAreKnown(t *testing.T) {
	known := []string{stringEquals, stringEqualsIfExists, stringLike, allStringEquals, anyStringEquals, arnEquals, isTrue}
	for _, s := range ControllerRights(buildEstate(t, everything)) {
		for operator := range maps.Keys(s.Conditions) {
			if !slices.Contains(known, operator) {
				t.Errorf("%s: %s", s.Sid, operator)
			}
		}
	}
}
