package rulefile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"croft.dev/croft/api/v1alpha1"
)

// Cases are the second document of a rule file: requests, and whether the rule refuses them.
//
//	# The tenant of all cases, merged over one without exceptions.
//	tenant: {policy: {priorityClasses: [low]}}
//	# The object that the cases modify.
//	object: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}
//	cases:
//	- name: a class that is not the tenant's
//	  set: {spec: {priorityClassName: high}}
//	  refused: true
//	- name: a pod that had the class before
//	  old: {spec: {priorityClassName: high}}
//	  set: {spec: {priorityClassName: high}}
//	# croft verify sends these two to a cluster as well.
//	- {attack: take-priority, goal: ask for a class, set: {spec: {priorityClassName: high}}, refused: true}
//	- {mirror: take-low-priority, goal: ask for one's own class, set: {spec: {priorityClassName: low}}}
//
// `set`, `old` and `tenant` are JSON merge patches: null removes a field, and lists are
// replaced. {$repeat: N, of: VALUE} is a list of N copies of VALUE. {$text: N, of: "ab"} is a
// string of N copies of ab. {$each: PATCH} is the list of the object, with the patch merged over
// each item. INDEX in a string of a list is replaced by the index of its item.
// $(own) and $(other) are a namespace of the tenant and a namespace of another tenant, $(host) and
// $(otherHost) a host of each, and $(otherDomain) is the domain above $(otherHost). $(deviceClass),
// $(gatewayClass), $(ingressClass), $(issuer) and $(sourceHost) are classes of devices, Gateways and
// Ingresses, a ClusterIssuer and a host of sources that the tenant may use. $(otherRuntimeClass) is the
// runtime class that another tenant forces. $(agreedService) and $(agreedGateway) are a Service and a
// Gateway in $(agreedNamespace) that its routes may name by an agreement with another tenant.
type Cases struct {
	// Policy and Rule are the policy and the rule of the file. A file with only cases names its
	// policy, and each case its rule.
	Policy   string         `json:"policy"`
	Rule     string         `json:"-"`
	Platform map[string]any `json:"platform"`
	Tenant   map[string]any `json:"tenant"`
	Object   map[string]any `json:"object"`
	Cases    []Case         `json:"cases"`
	// Namespace, if set, has the labels and annotations of a namespace that is created for each
	// attack and mirror. The user of the request gets the permission for it.
	Namespace *Namespace `json:"namespace"`

	reason     string
	references []string
}

// Namespace is the metadata of a namespace that is created for an attack.
type Namespace struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// Case is a request, and whether a rule refuses it.
type Case struct {
	// Name defaults to the name of the attack or mirror.
	Name string `json:"name"`
	// Policy is the policy under test, if it is not the file's: croft-pod-templates warns by the
	// rules of croft-pods.
	Policy string `json:"policy"`
	// Rule is the rule under test. Only Rule and the rules in OtherRules may refuse the request.
	Rule       string   `json:"rule"`
	Refused    bool     `json:"refused"`
	OtherRules []string `json:"also"`
	// Message is a part of the rule's message. Empty matches any message.
	Message string `json:"message"`
	// Warning is a part of the warning that Rule must send. If empty, Rule must not warn.
	Warning string `json:"warning"`
	// Set is merged over the file's object. Old is merged over it too, as the old object:
	// with Old the request is an update.
	Set map[string]any `json:"set"`
	Old map[string]any `json:"old"`
	// Object replaces the file's object, and so does the object of the wall that Base names. The
	// policy wall has pod and deployment, which every rule allows, ingress for tenants with a host,
	// and edge, which is a Service for tenants without one.
	Object map[string]any `json:"object"`
	Base   string         `json:"base"`
	Tenant map[string]any `json:"tenant"`
	// User is the user, or a service account as NAMESPACE/NAME. It defaults to a user of the
	// tenant. flux-system/kustomize-controller is a controller of the whole cluster.
	User string `json:"by"`
	// Groups are additional groups of the user.
	Groups []string `json:"groups"`
	// Verb is create, update, patch or delete. It defaults to update with Old, and to create
	// without.
	Verb        string `json:"verb"`
	Subresource string `json:"subresource"`

	// Attack is the name of the attack that sends the same request to a cluster. Mirror is the
	// name of the mirror, for a request that is allowed. Goal completes "a tenant tries to …".
	Attack string `json:"attack"`
	Mirror string `json:"mirror"`
	Goal   string `json:"goal"`
	// Harm and References replace the rule's reason and references.
	Harm       string   `json:"harm"`
	References []string `json:"references"`
	// Role is the role of the attacker. It defaults to the strongest.
	Role v1alpha1.Role `json:"role"`
	// Granted is set for a request that no role permits: the platform grants the permission by
	// mistake, so that the rule has to refuse the request. RefusedByRBAC is set if the platform
	// grants no permission, and so RBAC refuses the request.
	Granted       bool `json:"granted"`
	RefusedByRBAC bool `json:"refusedByRBAC"`
	// ClusterOnly is set for a request that only an API server can answer, such as one that it
	// converts to another version.
	ClusterOnly bool `json:"clusterOnly"`
	// Only and Unless limit the attack to tenants whose TenantRules have all of these values,
	// or none of them: {serviceTypes: NodePort}. A list has alternatives. An attack with $(host)
	// is limited to tenants with a host, and so for all words.
	Only   map[string]any `json:"only"`
	Unless map[string]any `json:"unless"`
}

// FindPolicy returns the policy under test.
func (f *Cases) FindPolicy(c Case) string { return cmp.Or(c.Policy, f.Policy) }

// ReadCases reads the cases of all policies, by their paths.
func ReadCases(fsys fs.FS) (map[string]Cases, error) {
	all := map[string]Cases{}
	files, err := fs.Glob(fsys, "*/*.yaml")
	for _, file := range files {
		cases := Cases{Policy: path.Dir(file)}
		if path.Base(file) != policyFile {
			rule, err := readRule(fsys, file)
			if err != nil {
				return nil, err
			}
			cases.Rule, cases.reason, cases.references = rule.Name, rule.Reason, rule.References
		}
		if err := readDocument(fsys, file, 1, &cases); err != nil {
			return nil, err
		}
		if err := cases.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all[strings.TrimSuffix(file, ".yaml")] = cases
	}
	return all, err
}

// ParseCases parses a file with only cases.
func ParseCases(data []byte) (Cases, error) {
	var cases Cases
	if err := decodeStrictly(data, &cases); err != nil {
		return cases, err
	}
	return cases, cases.check()
}

// check completes the names of cases, and reports incomplete attacks.
func (f *Cases) check() error {
	var errs []error
	for i := range f.Cases {
		c := &f.Cases[i]
		c.Name, c.Rule = cmp.Or(c.Name, c.Attack, c.Mirror), cmp.Or(c.Rule, f.Rule)
		var wrong string
		switch stopped := c.Refused || c.Warning != ""; {
		case c.Name == "":
			wrong = "name is required"
		case c.Rule == "":
			wrong = "rule is required"
		case c.Attack == "" && c.Mirror == "" && c.Goal != "":
			wrong = "goal is only for attacks and mirrors"
		case c.Attack != "" && !stopped:
			wrong = "the rule must refuse an attack, or warn of it"
		case c.Mirror != "" && c.Refused:
			wrong = "the rule must allow a mirror"
		case (c.Attack != "" || c.Mirror != "") && c.Goal == "":
			wrong = "goal is required"
		default:
			continue
		}
		errs = append(errs, fmt.Errorf("cases[%d] (%s): %s", i, c.Name, wrong))
	}
	return errors.Join(errs...)
}
