package iam

import (
	"maps"
	"slices"
	"strings"
)

// Statement allows actions on resources if all conditions are met. Resources and the values
// of conditions may contain placeholders for the location. Location.Resolve replaces them.
type Statement struct {
	// Sid is the statement's name within a policy. It has letters and digits only.
	Sid        string
	Actions    []string
	Resources  []string
	Conditions Conditions
}

// Conditions maps operators to the condition keys that they compare, and each key to its
// allowed values. A request must have one of the values for each key.
type Conditions map[string]map[string][]string

// Placeholders for values that are not in a file.
const (
	partition = "${Partition}"
	region    = "${Region}"
	account   = "${Account}"
	// urlSuffix is the suffix of service names. Only trust policies contain it.
	urlSuffix = "${URLSuffix}"
)

// Location identifies the partition, region and account of statements.
type Location struct {
	// Partition is aws, aws-cn or aws-us-gov.
	Partition string
	// Region is a region, such as eu-west-1.
	Region string
	// Account is the number of the account.
	Account string
}

// Resolve returns copies of statements with their placeholders replaced.
func (l Location) Resolve(statements []Statement) []Statement {
	fill := strings.NewReplacer(partition, l.Partition, region, l.Region, account, l.Account)
	all := make([]Statement, len(statements))
	for i, s := range statements {
		all[i] = Statement{Sid: s.Sid, Actions: slices.Clone(s.Actions), Resources: replaceAll(fill, s.Resources)}
		for operator, keys := range s.Conditions {
			for key, values := range keys {
				all[i].addCondition(operator, key, replaceAll(fill, values)...)
			}
		}
	}
	return all
}

func replaceAll(fill *strings.Replacer, list []string) []string {
	all := make([]string, len(list))
	for i, text := range list {
		all[i] = fill.Replace(text)
	}
	return all
}

// addCondition adds a condition.
func (s *Statement) addCondition(operator, key string, values ...string) {
	if s.Conditions == nil {
		s.Conditions = Conditions{}
	}
	if s.Conditions[operator] == nil {
		s.Conditions[operator] = map[string][]string{}
	}
	s.Conditions[operator][key] = values
}

// mergeConditions merges several Conditions.
func mergeConditions(list ...Conditions) Conditions {
	all := Conditions{}
	for _, c := range list {
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

func newEquals(key string, values ...string) Conditions {
	return Conditions{stringEquals: {key: values}}
}

func newLike(key string, values ...string) Conditions { return Conditions{stringLike: {key: values}} }
