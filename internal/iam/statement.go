package iam

import (
	"maps"
	"slices"
	"strings"
)

// Statement allows actions on resources where all conditions hold. Resources and
// values of conditions may hold placeholders for where they are, which a Location
// fills in.
type Statement struct {
	// Sid names the statement within a policy: letters and digits.
	Sid        string
	Actions    []string
	Resources  []string
	Conditions Conditions
}

// Conditions are operators, the keys of a request that each looks at, and the
// values that it wants there: one of them, of every key.
type Conditions map[string]map[string][]string

// The placeholders for what a file does not say.
const (
	partition = "${Partition}"
	region    = "${Region}"
	account   = "${Account}"
	// urlSuffix is what names of services end in, which only trust policies say.
	urlSuffix = "${URLSuffix}"
)

// Location is where statements hold.
type Location struct {
	// Partition is aws, aws-cn or aws-us-gov.
	Partition string
	// Region is one such as eu-west-1.
	Region string
	// Account is its number.
	Account string
}

// Resolve fills in the placeholders of statements, and leaves those given as they
// are.
func (l Location) Resolve(statements []Statement) []Statement {
	fill := strings.NewReplacer(partition, l.Partition, region, l.Region, account, l.Account)
	all := make([]Statement, len(statements))
	for i, s := range statements {
		all[i] = Statement{Sid: s.Sid, Actions: slices.Clone(s.Actions), Resources: replaced(fill, s.Resources)}
		for operator, keys := range s.Conditions {
			for key, values := range keys {
				all[i].when(operator, key, replaced(fill, values)...)
			}
		}
	}
	return all
}

func replaced(fill *strings.Replacer, list []string) []string {
	all := make([]string, len(list))
	for i, text := range list {
		all[i] = fill.Replace(text)
	}
	return all
}

// when adds a condition.
func (s *Statement) when(operator, key string, values ...string) {
	if s.Conditions == nil {
		s.Conditions = Conditions{}
	}
	if s.Conditions[operator] == nil {
		s.Conditions[operator] = map[string][]string{}
	}
	s.Conditions[operator][key] = values
}

// conditions puts together those of several.
func conditions(of ...Conditions) Conditions {
	all := Conditions{}
	for _, c := range of {
		for operator, keys := range c {
			if all[operator] == nil {
				all[operator] = map[string][]string{}
			}
			maps.Copy(all[operator], keys)
		}
	}
	return all
}

// The operators that statements use.
const (
	stringEquals         = "StringEquals"
	stringEqualsIfExists = "StringEqualsIfExists"
	stringLike           = "StringLike"
	allStringEquals      = "ForAllValues:StringEquals"
	anyStringEquals      = "ForAnyValue:StringEquals"
	arnEquals            = "ArnEquals"
	isTrue               = "Bool"
)

func equals(key string, values ...string) Conditions {
	return Conditions{stringEquals: {key: values}}
}

func like(key string, values ...string) Conditions { return Conditions{stringLike: {key: values}} }
