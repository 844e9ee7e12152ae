// Package rulefile reads the rules of admission policies from YAML files. A policy is a folder
// that is named like the policy. It has a file for each rule, named like the rule, and
// policy.yaml with the parts that its rules share:
//
//	# The requests that the policy matches. The operations are CREATE and UPDATE by default.
//	resources: [{group: networking.k8s.io, version: v1, resources: [ingresses]}]
//	# Labels of the namespaces in which the policy applies, with their values.
//	namespaceLabels: {croft.dev/budget: [DenyNewPods]}
//	# CEL expressions that must be true for the policy to apply, by name.
//	matchConditions: {has-class: has(object.spec.ingressClassName)}
//	# Limits of the lists that expressions iterate over: see admissionpolicy.Bound.
//	bounds: [{path: spec.rules, max: 250, reason: ..., advice: ..., sample: '{"host": "h%d"}'}]
//	# Variables of several rules. Each may use the ones before it.
//	variables: [{name: before, expression: ...}]
//	# The rules, in the order of their evaluation.
//	rules: [hosts, class]
//
// A rule file consists of two YAML documents: the rule, and its cases.
//
//	# The requirement in a line of text, for people who do not read CEL.
//	summary: the class is one of the tenant's ingressClasses
//	# The harm if the rule did not exist, and sources.
//	reason: a controller of the platform would serve it
//	references: [CVE-2021-25742]
//	# The field of a Tenant that allows more. The expression reads its value from TenantRules.
//	exception: policy.ingressClasses
//	# The settings of the two tenants with which croft verify tries the rule: see Tenants.
//	tenants: {restricted: {ingressClasses: [croft-verify]}, exempt: {ingressClasses: ["*"]}}
//	# A field that croft sets on pods without it, for rules on pods: see PodField.
//	sets: {path: spec.priorityClassName, from: [priorityClassDefault], ...}
//	# Variables of this rule alone. They come after the variables of the rules before it.
//	variables: [{name: class, expression: object.spec.ingressClassName}]
//	# A CEL expression that is true if the rule allows the request.
//	expression: variables.class in params.spec.ingressClasses
//	# Text for the refused user, or, if it depends on the request, messageExpression in CEL.
//	message: "spec.ingressClassName: name one of the tenant's classes"
//	---
//	cases: ...
//
// Type [Cases] documents the cases. fastPath, costly, loopFree and usuallyFast are described at
// [admissionpolicy.Rule]. A rule on pods applies to templates of pods, too, unless appliesTo is pods or
// templates. With settings it applies to templates, and to pods of tenants with enforced settings. A rule
// with trial: true warns instead of refusing if the tenant's policy.trial has the field in exception.
// Expressions are Go templates: {{clusterWide}} is replaced by the
// result of a function of the wall, {{template "hosts" "oldObject"}} by the policy's fragment of
// that name, in which {{.}} is the argument.
package rulefile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/template"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// policyFile is the file with the parts of a policy that its rules share.
const policyFile = "policy.yaml"

// Policy is the content of a folder.
type Policy struct {
	name   string
	shared sharedPart
	rules  []rulePart
	texts  map[string]*template.Template
}

// sharedPart is the content of policy.yaml.
type sharedPart struct {
	Resources          []resource          `json:"resources"`
	ExcludedResources  []resource          `json:"excludedResources"`
	Selection          string              `json:"selection"`
	ExcludingLabels    []string            `json:"excludingLabels"`
	NamespaceLabels    map[string][]string `json:"namespaceLabels"`
	IgnoresTenantRules bool                `json:"ignoresTenantRules"`
	ClusterWide        bool                `json:"clusterWide"`
	WarnOnly           bool                `json:"warnOnly"`
	MatchConditions    map[string]string   `json:"matchConditions"`
	Bounds             []bound             `json:"bounds"`
	EarlyVariables     []variable          `json:"earlyVariables"`
	Variables          []variable          `json:"variables"`
	Fragments          map[string]string   `json:"fragments"`
	Rules              []string            `json:"rules"`
}

// rulePart is the first document of a rule file.
type rulePart struct {
	Name              string     `json:"-"`
	Summary           string     `json:"summary"`
	Reason            string     `json:"reason"`
	References        []string   `json:"references"`
	Exception         string     `json:"exception"`
	Variables         []variable `json:"variables"`
	FastPath          string     `json:"fastPath"`
	Expression        string     `json:"expression"`
	Message           string     `json:"message"`
	MessageExpression string     `json:"messageExpression"`
	Costly            bool       `json:"costly"`
	LoopFree          bool       `json:"loopFree"`
	UsuallyFast       bool       `json:"usuallyFast"`
	Trial             bool       `json:"trial"`
	AppliesTo         string     `json:"appliesTo"`
	Tenants           Tenants    `json:"tenants"`
	Sets              *PodField  `json:"sets"`
}

// ReadPolicies reads the policies of all folders. The functions are available to the templates
// in expressions.
func ReadPolicies(fsys fs.FS, functions template.FuncMap) (map[string]*Policy, error) {
	folders, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	all := map[string]*Policy{}
	for _, folder := range folders {
		policy, err := readPolicy(fsys, folder.Name(), functions)
		if err != nil {
			return nil, err
		}
		all[folder.Name()] = policy
	}
	return all, nil
}

func readPolicy(fsys fs.FS, folder string, functions template.FuncMap) (*Policy, error) {
	p := &Policy{name: folder, texts: map[string]*template.Template{}}
	if err := readDocument(fsys, path.Join(folder, policyFile), 0, &p.shared); err != nil {
		return nil, err
	}
	for _, name := range p.shared.Rules {
		rule, err := readRule(fsys, path.Join(folder, name+".yaml"))
		if err != nil {
			return nil, err
		}
		p.rules = append(p.rules, rule)
	}
	if err := p.parseTemplates(functions); err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	return p, p.check(fsys)
}

// check compares the rules with the folder's files.
func (p *Policy) check(fsys fs.FS) error {
	file := path.Join(p.name, policyFile)
	if _, known := selections[p.shared.Selection]; !known {
		return fmt.Errorf("%s: selection: %q is unknown: write marked or unmarked", file, p.shared.Selection)
	}
	for _, r := range p.rules {
		if !slices.Contains([]string{"", appliesToPods, appliesToTemplates, appliesToSettings}, r.AppliesTo) {
			return fmt.Errorf("%s/%s.yaml: appliesTo: %q is unknown: write pods, templates or settings",
				p.name, r.Name, r.AppliesTo)
		}
	}
	files, err := fs.ReadDir(fsys, p.name)
	if err != nil {
		return err
	}
	for _, entry := range files {
		rule := strings.TrimSuffix(entry.Name(), ".yaml")
		if entry.Name() != policyFile && !slices.Contains(p.shared.Rules, rule) {
			return fmt.Errorf("%s: rules: list %s, since there is a file of this name", file, rule)
		}
	}
	return nil
}

func readRule(fsys fs.FS, file string) (rulePart, error) {
	rule := rulePart{Name: strings.TrimSuffix(path.Base(file), ".yaml")}
	if err := readDocument(fsys, file, 0, &rule); err != nil {
		return rule, err
	}
	for field, missing := range map[string]bool{
		"summary": rule.Summary == "", "reason": rule.Reason == "", "expression": rule.Expression == "",
	} {
		if missing {
			return rule, fmt.Errorf("%s: %s is required", file, field)
		}
	}
	if (rule.Message == "") == (rule.MessageExpression == "") {
		return rule, fmt.Errorf("%s: message: set either message or messageExpression", file)
	}
	return rule, nil
}

// separator separates the two documents of a rule file.
var separator = []byte("\n---\n")

// readDocument reads one document of a file. A missing second document is empty.
func readDocument(fsys fs.FS, file string, number int, into any) error {
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		return err
	}
	documents := bytes.Split(data, separator)
	if len(documents) > 2 {
		return fmt.Errorf("%s: it has %d documents: write the rule, and then its cases", file, len(documents))
	}
	if number >= len(documents) {
		return nil
	}
	if err := decodeStrictly(documents[number], into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// decodeStrictly reports unknown fields and fields that are set twice, with their paths.
func decodeStrictly(data []byte, into any) error {
	content, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return err
	}
	wrong, err := kjson.UnmarshalStrict(content, into)
	return errors.Join(append(wrong, err)...)
}
