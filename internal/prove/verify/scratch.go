package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/prove/scratch"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/network"
	"croft.dev/croft/internal/walls/wall/policy"
)

// Scratch is a pair of tenants that exist only while verify runs, so that attacks affect no
// other tenant. Their names have a random suffix, so that several runs do not collide.
type Scratch struct {
	platform         *estate.Platform
	attacker, target *estate.Tenant
}

// NewScratch creates the two tenants of a platform. One is as restricted as possible, the other
// has every exception: so every rule is tried where it refuses and where it does not,
// regardless of the platform's defaults.
func NewScratch(platform v1alpha1.Platform) (*Scratch, error) {
	restrict := restrictTenant
	if platform.Spec.Placement == v1alpha1.PlacementGatekeeper {
		restrict = func(t *v1alpha1.TenantSpec, other string) {
			restrictTenant(t, other)
			t.Policy.PriorityClass = &v1alpha1.PodPriorityClass{} // Gatekeeper cannot set it
		}
	}
	return newScratch(platform, restrict, allowExceptions)
}

// AddConnections adds the connections to which the cluster's own tenants have agreed. An attack on
// all tenants leaves them out.
func (s *Scratch) AddConnections(all []estate.Connection) {
	s.platform.Connections = append(s.platform.Connections, all...)
}

// newScratch creates two tenants with pools of their own, unless the functions set others. Each
// function gets the name of the other tenant.
func newScratch(platform v1alpha1.Platform, editBy, editOn func(t *v1alpha1.TenantSpec, other string)) (*Scratch, error) {
	prefix := scratch.Prefix + utilrand.String(5) + "-"
	tenant := func(letter, other string, edit func(*v1alpha1.TenantSpec, string)) v1alpha1.Tenant {
		name := prefix + letter
		t := v1alpha1.Tenant{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.TenantSpec{
				Pools:      []string{name, name + "-2"},
				Namespaces: []string{name, name + "-2"},
				Access: []v1alpha1.Access{
					{Group: name + "-operators", Role: v1alpha1.RoleOperator},
					{Group: name + "-viewers", Role: v1alpha1.RoleViewer},
				},
				Quota:    corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("50")},
				Domains:  []string{name + ".croft-verify.example", "*." + name + ".croft-verify.example"},
				Deletion: v1alpha1.DeletionDelete,
			},
		}
		edit(&t.Spec, prefix+other)
		return t
	}
	declaration := &manifest.Declaration{Platforms: []v1alpha1.Platform{platform}}
	for _, t := range []v1alpha1.Tenant{tenant("a", "b", editBy), tenant("b", "a", editOn)} {
		declaration.Tenants = append(declaration.Tenants, t)
		for _, pool := range t.Spec.Pools {
			if slices.ContainsFunc(declaration.Pools, func(p v1alpha1.Pool) bool { return p.Name == pool }) {
				continue
			}
			declaration.Pools = append(declaration.Pools, v1alpha1.Pool{
				ObjectMeta: metav1.ObjectMeta{Name: pool}, Spec: v1alpha1.PoolSpec{SecondaryNetworks: t.Spec.Networks},
			})
		}
		for _, name := range t.Spec.Networks {
			declaration.Networks = append(declaration.Networks, newScratchNetwork(name))
		}
		if t.Spec.SelfService.Namespaces > 0 {
			declaration.Requests = append(declaration.Requests, v1alpha1.TenantNamespace{
				ObjectMeta: metav1.ObjectMeta{Namespace: t.Name, Name: t.Name + "-3"},
				Status:     v1alpha1.TenantNamespaceStatus{Tenant: t.Name},
			})
		}
		if from := t.Spec.Network.CallersFrom; len(from) > 0 {
			declaration.Callers = append(declaration.Callers, newScratchCaller(t.Name+"-2", from[0]))
		}
	}
	e, problems := estate.Build(declaration)
	if len(problems) > 0 {
		return nil, problems
	}
	return &Scratch{platform: &e.Platform, attacker: e.Tenants[0], target: e.Tenants[1]}, nil
}

// networkName is the network that is granted to one of the two tenants, for the rules only: no
// interface and no definition is created for it.
const networkName = scratch.Prefix + "network"

func newScratchNetwork(name string) v1alpha1.SecondaryNetwork {
	return v1alpha1.SecondaryNetwork{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.SecondaryNetworkSpec{Zones: []v1alpha1.SecondaryNetworkZone{
			{Zone: scratch.Prefix + "zone", Subnet: "none", CIDR: "198.51.100.0/24", PodCIDR: "198.51.100.32/27"},
		}},
	}
}

// newScratchCaller returns a TenantCaller that accepts connections in one namespace, on one port more than
// the other tenant calls. It exists for the policies only, and never in the cluster.
func newScratchCaller(namespace, caller string) v1alpha1.TenantCaller {
	return v1alpha1.TenantCaller{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "croft-verify"},
		Spec: v1alpha1.TenantCallerSpec{
			Tenant: caller, Ports: v1alpha1.ConsentPorts{intstr.FromInt32(9445), intstr.FromInt32(9446)}, Pods: agreedPods,
		},
		Status: v1alpha1.TenantCallerStatus{Giver: "croft-verify", Receiver: "croft-verify"},
	}
}

// agreedPods are labels of the pods between which the tenants agree on connections.
var agreedPods = map[string]v1alpha1.LabelValue{"croft-verify": "agreed"}

// restrictTenant allows as little as possible. The rule files have the settings of policy. The tenant agrees to
// connections from the other tenant on one port more than the other, and to connections to the other alone.
func restrictTenant(t *v1alpha1.TenantSpec, other string) {
	t.Quota[policy.LeaseCount] = resource.MustParse("0")
	t.Network = v1alpha1.TenantNetwork{
		Egress: v1alpha1.EgressOpen,
		Callers: map[string]v1alpha1.Caller{other: {
			Ports: v1alpha1.ConsentPorts{intstr.FromInt32(9443), intstr.FromInt32(9444)}, Pods: agreedPods,
			Services: []v1alpha1.ConsentReference{"croft-verify"}, Gateways: []v1alpha1.ConsentReference{"croft-verify"},
		}},
		Calls: map[string]v1alpha1.Call{other: {}}, CallersFrom: []string{other},
	}
	t.Policy = v1alpha1.TenantPolicy{
		PodSecurity: v1alpha1.PodSecurityBaseline, Allowances: policy.BuildRestrictedAllowances(t.Namespaces[0]),
	}
	t.Policy.Trial = []string{}
}

// allowExceptions gives a tenant every exception, and is restricted otherwise. The rule files have the settings of
// policy.
func allowExceptions(t *v1alpha1.TenantSpec, other string) {
	t.SelfService.Namespaces = 2
	t.Networks = []string{networkName}
	t.Network = v1alpha1.TenantNetwork{
		Egress: v1alpha1.EgressRestricted, AllowCIDRs: []string{"198.51.100.0/24"},
		Calls: map[string]v1alpha1.Call{other: {Ports: v1alpha1.ConsentPorts{intstr.FromInt32(9443), intstr.FromInt32(9445)}, Pods: agreedPods}},
	}
	t.Policy = v1alpha1.TenantPolicy{
		PodSecurity: v1alpha1.PodSecurityRestricted, Allowances: policy.BuildExemptAllowances(t.Namespaces[0]),
	}
}

// Attacks returns all attacks of the first tenant on the second, and attacks that only the
// second can try.
func (s *Scratch) Attacks() []attack.Attack {
	all := wall.Attacks(s.platform, s.attacker, s.target)
	known := map[string]bool{}
	for _, a := range all {
		known[a.Name] = true
	}
	for _, a := range wall.Attacks(s.platform, s.target, s.attacker) {
		if !known[a.Name] {
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b attack.Attack) int { return cmp.Compare(rankWall(a), rankWall(b)) })
	return all
}

func rankWall(a attack.Attack) int {
	return slices.IndexFunc(wall.All(), func(w wall.Wall) bool { return w.Name() == a.Wall })
}

// Rules returns the rules of the policies.
func (s *Scratch) Rules() []wall.Rule { return wall.Rules(s.platform) }

// NewRunner returns a Runner that acts as the tenants' members.
func (s *Scratch) NewRunner(config *rest.Config, scheme *runtime.Scheme) (*Runner, error) {
	return NewRunner(config, scheme, s.attacker, s.target)
}

// Objects returns the walls' objects for the two tenants. Their pools exist by name only: no
// attack needs a node, since every pod that verify creates waits for a scheduling gate, or for
// a node that cannot exist; and a NodePool would only cause work for Karpenter, and perhaps
// costs.
func (s *Scratch) Objects() []client.Object {
	all := append(wall.TenantObjects(s.platform, s.attacker), wall.TenantObjects(s.platform, s.target)...)
	// The API server refuses pods with a class that does not exist. Another name is the Platform's
	// default, whose class verify must neither change nor delete.
	if class := s.attacker.Allowances.RuntimeClass.Force; class == s.attacker.Namespaces[0] {
		all = append(all, &nodev1.RuntimeClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: nodev1.SchemeGroupVersion.String(), Kind: "RuntimeClass"},
			ObjectMeta: metav1.ObjectMeta{Name: class}, Handler: "runc",
		})
	}
	if class := s.attacker.Allowances.PriorityClass.Default; class == s.attacker.Namespaces[0] {
		// The value differs from the priority of pods without a class, and pre-empts no pod.
		all = append(all, &schedulingv1.PriorityClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: schedulingv1.SchemeGroupVersion.String(), Kind: "PriorityClass"},
			ObjectMeta: metav1.ObjectMeta{Name: class}, Value: -1, PreemptionPolicy: ptr.To(corev1.PreemptNever),
		})
	}
	// Many clusters do not have these kinds, and no attack needs one.
	return slices.DeleteFunc(all, func(o client.Object) bool {
		kind := o.GetObjectKind().GroupVersionKind()
		return kind == network.DefinitionKind || kind == network.GrantKind
	})
}

// removal is the time limit for deleting the tenants, in addition to the run's own time limit.
const removal = 20 * time.Second

// Run builds the tenants, tries the attacks that want selects, passes each result to report,
// and deletes the tenants again, even if the context ends early.
func (s *Scratch) Run(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, want func(attack.Attack) bool, report func(Result)) (results []Result, err error) {
	runner, err := s.NewRunner(config, scheme)
	if err != nil {
		return nil, err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
		defer cancel()
		removeErr := s.Remove(ending, runner.admin)
		var deleted []string
		if removeErr == nil {
			deleted = slices.Concat(s.attacker.Namespaces, s.target.Namespaces)
		}
		err = errors.Join(err, removeErr, runner.ReportLeftovers(deleted...))
	}()
	if err := s.Build(ctx, runner); err != nil {
		return nil, err
	}
	attacks := slices.DeleteFunc(s.Attacks(), func(a attack.Attack) bool { return !want(a) })
	return runner.Run(ctx, attacks, report)
}

// Build writes the tenants' walls, and waits until they are in force.
func (s *Scratch) Build(ctx context.Context, runner *Runner) error {
	if _, err := apply.New(runner.admin).Apply(ctx, s.markObjects(ctx)...); err != nil {
		return fmt.Errorf("create the scratch tenants: %w", err)
	}
	return s.awaitReady(ctx, runner)
}

// Remove deletes the tenants' namespaces and cluster-scoped objects. Its error names the
// objects that it could not delete.
func (s *Scratch) Remove(ctx context.Context, c client.Client) error {
	return apply.New(c).Discard(ctx, s.Objects()...)
}
