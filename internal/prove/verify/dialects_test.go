package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/network"
)

// dialects are the dialects of network policies other than Kubernetes', with the CRDs that they
// need.
var dialects = []struct {
	name, addon string
	network     v1alpha1.PlatformNetwork
}{
	{"calico", sandbox.Calico, v1alpha1.PlatformNetwork{Dialect: v1alpha1.DialectCalico, Calico: &v1alpha1.CalicoNetwork{TenantPolicies: true}}},
	{"calico-storage", sandbox.CalicoStorage, v1alpha1.PlatformNetwork{Dialect: v1alpha1.DialectCalico, Calico: &v1alpha1.CalicoNetwork{APIGroup: v1alpha1.CalicoStorageGroup}}},
	{"cluster-network-policy", sandbox.NetworkPolicyAPI, v1alpha1.PlatformNetwork{Dialect: v1alpha1.DialectClusterNetworkPolicy}},
	{"aws", sandbox.AmazonVPC, v1alpha1.PlatformNetwork{Dialect: v1alpha1.DialectAWS}},
}

// TestMutantsOfDialects is like TestMutants, for the objects of a single dialect of network
// policies. On a cluster that serves the dialect's kinds, every attack must be refused and
// every mutant detected. The evaluator must agree with the cluster.
func TestMutantsOfDialects(t *testing.T) {
	sandbox.Thorough(t)
	for _, dialect := range dialects {
		t.Run(dialect.name, func(t *testing.T) {
			started := time.Now()
			cluster := startBare(t)
			installKinds(t, cluster, dialect.addon)
			platform := newPlatform("ingress")
			dialect.network.PlatformNamespaces = platform.Spec.Network.PlatformNamespaces
			platform.Spec.Network = dialect.network
			platform.Spec.ClusterDNS = []string{"169.254.169.254", "fd00::a"} // the first is a metadata address
			l := &lab{t: t, compares: true}
			s := buildProving(t, cluster.Config, dialect.name, platform)
			l.addScene(s)
			fmt.Printf("%s: all attacks are stopped: %.0f s after the start\n", dialect.name, time.Since(started).Seconds())
			floor := slices.DeleteFunc(s.listPlatformObjects(), func(o client.Object) bool { return !strings.HasPrefix(o.GetName(), network.CalicoFloorPolicy) })
			if calico := dialect.network.Calico; calico == nil || !calico.TenantPolicies {
				floor = nil // without tenants' policies, no request gets that far
			}
			reportFindings(t, slices.Concat(l.runMutants(l.buildRuleMutants(floor)), l.runMutants(l.buildDialectMutants(s))), time.Since(started))
		})
	}
}

// buildDialectMutants returns mutants of the policies that only this dialect has: each is deleted,
// or evaluated last; and each of its rules is removed or, if it allows, made to allow
// everything. The parts of a policy for all namespaces, or all tenants, are changed together.
func (l *lab) buildDialectMutants(s *proving) []mutant {
	byName := map[string][]*unstructured.Unstructured{}
	var names []string
	for _, o := range s.scratch.Objects() {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		name := strings.TrimSuffix(strings.TrimSuffix(u.GetName(), "-"+s.by.Name), "-"+s.on.Name)
		if byName[name] == nil {
			names = append(names, name)
		}
		byName[name] = append(byName[name], u)
	}
	var all []mutant
	for _, name := range names {
		add := func(what string, change func(spec map[string]any)) {
			var each []mutation
			for _, o := range byName[name] {
				if change == nil {
					each = append(each, buildDeletion(o))
					continue
				}
				each = append(each, buildEdit(o, func(live client.Object) {
					change(live.(*unstructured.Unstructured).Object["spec"].(map[string]any))
				}))
			}
			all = append(all, mutant{
				name: byName[name][0].GetKind() + " " + name + ": " + what, object: "network", mutate: slices.Concat(each...),
				suspects: func(a attack.Attack) bool { return a.Flow != nil || a.Pairs != nil },
			})
		}
		add("deleted", nil)
		if strings.Contains(name, network.GuardPolicy) {
			add("comes last", func(spec map[string]any) {
				if spec["tier"] == "Admin" {
					spec["tier"] = "Baseline"
				} else {
					spec["order"] = int64(3000)
				}
			})
		}
		for _, direction := range []string{"ingress", "egress"} {
			most := 0
			for _, o := range byName[name] {
				rules, _, _ := unstructured.NestedSlice(o.Object, "spec", direction)
				most = max(most, len(rules))
			}
			for i := range most {
				add(fmt.Sprintf("without rule %d of %s", i+1, direction), func(spec map[string]any) {
					if rules, _ := spec[direction].([]any); i < len(rules) {
						spec[direction] = slices.Delete(rules, i, i+1)
					}
				})
				add(fmt.Sprintf("rule %d of %s lets everything through", i+1, direction), func(spec map[string]any) {
					rules, _ := spec[direction].([]any)
					if i >= len(rules) {
						return
					}
					switch rule := rules[i].(map[string]any); rule["action"] {
					case "Allow":
						rules[i] = map[string]any{"action": "Allow"}
					case "Pass":
						delete(rule, "protocols")
						delete(rule, "ports")
					default:
						rule["action"] = "Pass"
					}
				})
			}
		}
	}
	return all
}
