package iam

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// ways are the sets of options that change the output.
var ways = map[string]Options{
	"pod identity": {},
	"irsa":         {Identity: IRSA, OIDCProvider: "https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE", Namespace: "karpenter", ServiceAccount: "k"},
	"without CNI":  {WithoutCNI: true},
}

func planStack(t *testing.T, file string, o Options) *Stack {
	t.Helper()
	s, err := Plan(buildEstate(t, file), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCloudFormationReferences fails if the template refers to something that it does
// not contain.
func TestCloudFormationReferences(t *testing.T) {
	logical, pseudo := regexp.MustCompile(`^[A-Za-z0-9]{1,255}$`), regexp.MustCompile(`\$\{([^}]*)\}`)
	for name, o := range ways {
		t.Run(name, func(t *testing.T) {
			data, err := yaml.Marshal(planStack(t, everything, o).CloudFormation())
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), "!") {
				t.Error("a tag of YAML")
			}
			var template struct {
				Resources map[string]struct {
					Type       string
					Properties map[string]any
				}
			}
			if err := yaml.Unmarshal(data, &template); err != nil {
				t.Fatal(err)
			}
			for id, r := range template.Resources {
				if !logical.MatchString(id) || !strings.HasPrefix(r.Type, "AWS::") {
					t.Errorf("%s is a %s", id, r.Type)
				}
				visitEntries(r.Properties, func(key string, value any) {
					switch key {
					case "Ref":
						if _, ok := template.Resources[value.(string)]; !ok {
							t.Errorf("%s refers to %v, which is not there", id, value)
						}
					case "Fn::GetAtt":
						if _, ok := template.Resources[value.([]any)[0].(string)]; !ok {
							t.Errorf("%s refers to %v, which is not there", id, value)
						}
					case "Fn::Sub":
						for _, name := range pseudo.FindAllStringSubmatch(value.(string), -1) {
							if !slices.Contains([]string{"AWS::Partition", "AWS::Region", "AWS::AccountId", "AWS::URLSuffix"}, name[1]) {
								t.Errorf("%s: ${%s}", id, name[1])
							}
						}
					default:
						if text, ok := value.(string); ok && strings.Contains(text, "${") {
							t.Errorf("%s: %s: %s would stay as it is", id, key, text)
						}
					}
				})
			}
		})
	}
}

// TestTerraformReferences fails if an expression refers to nothing, or if a policy
// document is not valid JSON.
func TestTerraformReferences(t *testing.T) {
	expression := regexp.MustCompile(`\$\{(data\.)?([a-z_]+)\.([a-z0-9_]+)\.[a-z_]+\}`)
	for name, o := range ways {
		t.Run(name, func(t *testing.T) {
			content, err := planStack(t, everything, o).Terraform()
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(content)
			if err != nil {
				t.Fatal(err)
			}
			var file struct {
				Data, Resource map[string]map[string]map[string]any
			}
			if err := json.Unmarshal(data, &file); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(data), "${"); n != len(expression.FindAll(data, -1)) {
				t.Errorf("some of %d expressions is not written as those are that are checked", n)
			}
			for _, m := range expression.FindAllStringSubmatch(string(data), -1) {
				from := file.Resource
				if m[1] != "" {
					from = file.Data
				}
				if _, ok := from[m[2]][m[3]]; !ok {
					t.Errorf("%s leads to nothing", m[0])
				}
			}
			for kind, of := range file.Resource {
				for id, body := range of {
					for _, key := range []string{"policy", "assume_role_policy", "event_pattern"} {
						if text, ok := body[key].(string); ok && !json.Valid([]byte(text)) {
							t.Errorf("%s.%s: %s is no JSON", kind, id, key)
						}
					}
				}
			}
		})
	}
}

// TestNodeRolePolicies fails if nodes have any rights besides the four managed policies.
// Pods must get their AWS rights separately.
func TestNodeRolePolicies(t *testing.T) {
	content := planStack(t, everything, Options{}).JSON()
	for _, n := range content["nodeRoles"].([]any) {
		node := n.(map[string]any)
		var policies []string
		for _, arn := range node["managedPolicies"].([]any) {
			policies = append(policies, strings.TrimPrefix(arn.(string), "arn:${Partition}:iam::aws:policy/"))
		}
		slices.Sort(policies)
		if !slices.Equal(policies, []string{"AmazonEC2ContainerRegistryPullOnly", "AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonSSMManagedInstanceCore"}) {
			t.Errorf("%s: %v", node["name"], policies)
		}
		for key := range node {
			if !slices.Contains([]string{"name", "trust", "managedPolicies", "instanceProfile"}, key) {
				t.Errorf("%s has %s too", node["name"], key)
			}
		}
	}
	data, err := json.Marshal(planStack(t, everything, Options{WithoutCNI: true}).JSON())
	if err != nil || strings.Contains(string(data), "CNI") {
		t.Errorf("%v: the CNI's rights are there all the same", err)
	}
}

// TestResourcePoliciesRestrictPrincipals checks the resource-based policies: each allowing
// statement restricts its principal and, where that is possible, has conditions.
func TestResourcePoliciesRestrictPrincipals(t *testing.T) {
	for name, o := range ways {
		content := planStack(t, everything, o).JSON()
		visitEntries(content, func(key string, value any) {
			if key != "Statement" {
				return
			}
			for _, s := range value.([]any) {
				statement := s.(map[string]any)
				who, resourcePolicy := statement["Principal"]
				if !resourcePolicy || statement["Effect"] == "Deny" {
					continue
				}
				if _, guarded := statement["Condition"]; who == "*" || !guarded && statement["Sid"] != "Instances" {
					t.Errorf("%s: anybody: %v", name, statement)
				}
			}
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		o    Options
		want string
	}{
		"no pools on AWS":         {"platform: {clusterName: demo, nodeClass: {kwok: {}}}\npools: {apps: {nodeClass: {ref: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: own}}}}\n", Options{}, "no pool has nodeClass.aws"},
		"no pools":                {"platform: {clusterName: demo, nodeClass: {aws: {role: a}}}\n", Options{}, "no pool has nodeClass.aws"},
		"another way":             {everything, Options{Identity: "kiam"}, "--identity kiam: not supported: write pod-identity or irsa"},
		"no provider":             {everything, Options{Identity: IRSA}, "--identity irsa needs --oidc-provider"},
		"no real one":             {everything, Options{Identity: IRSA, OIDCProvider: "https://a b"}, "--oidc-provider https://a b: not a provider"},
		"a role that is any role": {strings.Replace(everything, "KarpenterNodeRole-demo", `"*"`, 1), Options{}, `nodeClass.aws.role: "*" is not valid in AWS: write the name of a role`},
		"a variable":              {strings.Replace(everything, "clusterName: demo", "clusterName: $CLUSTER_NAME", 1), Options{}, `platform.clusterName: "$CLUSTER_NAME" is not valid in AWS`},
		"any profile":             {strings.Replace(everything, "instanceProfile: nodes", `instanceProfile: "no?es"`, 1), Options{}, `nodeClass.aws.instanceProfile: "no?es" is not valid in AWS`},
		"any parameter":           {strings.Replace(everything, "/nodes/image", `"/*"`, 1), Options{}, `nodeClass.aws.amiSelectorTerms.ssmParameter: "/*" is not valid in AWS`},
		"any key":                 {strings.Replace(everything, "alias/nodes", `"alias/*"`, 1), Options{}, `nodeClass.aws.blockDeviceMappings.ebs.kmsKeyID: "alias/*" is not valid in AWS`},
		"one too many":            {everything, Options{OIDCProvider: "oidc.example.org"}, "--oidc-provider works only with --identity irsa"},
	} {
		if _, err := Plan(buildEstate(t, c.file), c.o); err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("x", 100)
	s := planStack(t, "platform: {clusterName: "+long+", nodeClass: {aws: {role: a}}}\npools: {apps: {}, more: {nodeClass: {aws: {role: a-b}}}, most: {nodeClass: {aws: {role: a_b}}}}\n", Options{})
	if len(s.controller) > maxRoleName || len(s.queue.name) > maxQueueName {
		t.Errorf("%s, %s", s.controller, s.queue.name)
	}
	seen := map[string]bool{}
	for _, r := range s.queue.rules {
		if len(r.name) > maxRuleName || seen[r.name] {
			t.Errorf("%s", r.name)
		}
		seen[r.name] = true
	}
	content, err := s.Terraform()
	if err != nil {
		t.Fatal(err)
	}
	roles := content["resource"].(map[string]any)["aws_iam_role"].(map[string]any)
	if len(roles) != 4 {
		t.Errorf("names that are alike became one: %v", roles)
	}
}

// visitEntries calls do for every entry of every nested map.
func visitEntries(v any, do func(key string, value any)) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			do(key, value)
			visitEntries(value, do)
		}
	case []any:
		for _, value := range v {
			visitEntries(value, do)
		}
	}
}
