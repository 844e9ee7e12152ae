// Package verify tries attacks on a cluster and reports their outcomes.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/prove/warning"
	"croft.dev/croft/internal/rules/attack"
)

// Runner tries attacks as members of tenants. Several attacks may run concurrently.
type Runner struct {
	config *rest.Config
	// admin prepares an attack's objects, and deletes them afterwards.
	admin client.Client
	// scheduler prepares pods that have a node.
	scheduler client.Client
	discovery discovery.DiscoveryInterface
	// members act with a role of a tenant, by impersonation.
	members map[string]map[v1alpha1.Role]*member
	// DryRunOnly leaves out the attacks that need prepared objects: the others have no side
	// effect at all.
	DryRunOnly bool

	// answered is called for each response to a request, if it is not nil.
	answered func(a attack.Attack, got client.Object, err error, warnings []string)

	mu sync.Mutex
	// policies and served are read once, when the first attack needs them.
	policies *netpol.Map
	served   *servedKinds
	// leftovers are objects that were prepared and could not be deleted.
	leftovers []leftover
}

// member is a user with a role of a tenant.
type member struct {
	client client.WithWatch
	// raw sends requests that typed clients cannot send.
	raw rest.Interface
}

// NewRunner returns a Runner that acts as the groups and users of the tenants' access. The
// configuration's user must be allowed to impersonate them and to write to the tenants'
// namespaces.
func NewRunner(config *rest.Config, s *runtime.Scheme, tenants ...*estate.Tenant) (*Runner, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	admin, err := client.New(config, client.Options{Scheme: s, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	found, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:kube-scheduler"}
	scheduler, err := client.New(as, client.Options{Scheme: s, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	r := &Runner{config: config, admin: admin, scheduler: scheduler, discovery: found, members: map[string]map[v1alpha1.Role]*member{}}
	for _, t := range tenants {
		if r.members[t.Name], err = newMembers(t, config, s, mapper); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func newMembers(t *estate.Tenant, config *rest.Config, s *runtime.Scheme, mapper meta.RESTMapper) (map[v1alpha1.Role]*member, error) {
	all := map[v1alpha1.Role]*member{}
	for role, as := range listIdentities(t) {
		m, err := newMember(as, config, s, mapper)
		if err != nil {
			return nil, err
		}
		all[role] = m
	}
	return all, nil
}

func newMember(as rest.ImpersonationConfig, config *rest.Config, s *runtime.Scheme, mapper meta.RESTMapper) (*member, error) {
	config = rest.CopyConfig(config)
	config.Impersonate = as
	config.WarningHandlerWithContext = warning.Handler{}
	c, err := client.NewWithWatch(config, client.Options{Scheme: s, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	raw, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &member{client: c, raw: raw}, nil
}

// newOutsider returns the user outside of the tenants who makes an attack.
func (r *Runner) newOutsider(a attack.Attack) (*member, error) {
	as := rest.ImpersonationConfig{UserName: cmp.Or(a.AsUser, attack.Verifier), Groups: append([]string{"system:authenticated"}, a.AsGroups...)}
	return newMember(as, r.config, r.admin.Scheme(), r.admin.RESTMapper())
}

// listIdentities returns one identity to impersonate for each role of the tenant's access: the
// first user with the role, or else attack.Verifier, as a member of all groups with the role.
func listIdentities(t *estate.Tenant) map[v1alpha1.Role]rest.ImpersonationConfig {
	all := map[v1alpha1.Role]rest.ImpersonationConfig{}
	for _, access := range t.Access {
		as, ok := all[access.Role]
		if !ok {
			as = rest.ImpersonationConfig{UserName: attack.Verifier, Groups: []string{"system:authenticated"}}
		}
		switch {
		case access.Group != "":
			as.Groups = append(as.Groups, access.Group)
		case as.UserName == attack.Verifier:
			as.UserName = access.User
		}
		all[access.Role] = as
	}
	return all
}

// Try tries one attack. Its requests are dry runs: they pass every wall and store nothing.
func (r *Runner) Try(ctx context.Context, a attack.Attack) Result {
	switch {
	case a.Flow != nil:
		return r.evaluateFlow(ctx, a)
	case a.Pairs != nil:
		return r.evaluatePairs(ctx, a)
	}
	role := a.Role
	if role == "" {
		role = v1alpha1.RoleOperator
	}
	m, ok := r.members[a.Attacker][role]
	if len(a.AsGroups) > 0 {
		var err error
		if m, err = r.newOutsider(a); err != nil {
			return newUnprepared(a, err)
		}
		ok = true
	}
	switch {
	case !ok:
		return newNotTried(a, fmt.Errorf("no user or group has the role %s in the tenant", role))
	case a.Sweep != nil:
		return r.runSweep(ctx, a, m)
	case len(a.Setup) > 0 && r.DryRunOnly:
		return newNotTried(a, errors.New("it needs a prepared object, which would be a side effect"))
	}
	cleanUp, err := r.setUp(ctx, a.Setup)
	defer cleanUp()
	if err != nil {
		return newUnprepared(a, err)
	}
	return r.sendAttack(ctx, a, m)
}

const (
	// settling is the maximum time until the API server observes a prepared object, and until
	// controllers stop writing an object's status.
	settling = 3 * time.Second
	again    = 50 * time.Millisecond
)

// sendAttack sends an attack's request. It retries while the API server has not observed the
// prepared objects yet, or on conflicts with other writers.
func (r *Runner) sendAttack(ctx context.Context, a attack.Attack, m *member) Result {
	var result Result
	_ = wait.PollUntilContextTimeout(ctx, again, settling, true, func(context.Context) (bool, error) {
		object, err := r.prepareObject(ctx, a.Request)
		if err != nil {
			result = newUnprepared(a, err)
			return true, nil
		}
		got := answer{}
		ctx, warnings := warning.Record(ctx)
		got.err = sendRequest(ctx, m.client, a.Request, object)
		got.warnings = slices.DeleteFunc(warnings.List(), isCostWarning)
		if r.answered != nil {
			r.answered(a, object, got.err, got.warnings)
		}
		if got.err == nil && dropsImageVolume(a.Request.Object, object) {
			result = newNotTried(a, errImageVolumes)
			return true, nil
		}
		if got.err == nil && a.Outcome != nil {
			got.outcome = a.Outcome(object)
		}
		result = classifyAnswer(a, got)
		if r.DryRunOnly && a.Kind == attack.Mirror && isQuotaExhausted(got.err) {
			result = newNotTried(a, fmt.Errorf("the tenant's share has no room for it now: %w", got.err))
		}
		// The API server may not have observed new rights yet, either.
		unseen := a.Kind == attack.Mirror && got.err != nil && attack.ByRBAC.IsRefusal(got.err)
		unsettled := len(a.Setup) > 0 && (result.Result == BlockedElsewhere || unseen) || apierrors.IsConflict(got.err)
		return !unsettled, nil
	})
	return result
}

// isBeyondBudget reports whether the stage of a tenant's budget refuses a pod. A budget is no wall: the refusal
// proves nothing, and hides whether another rule refuses the pod, too.
func isBeyondBudget(err error) bool {
	return err != nil && apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+install.BudgetsPolicy+"'")
}

// isCostWarning reports whether a warning is about a tenant's budget or about a price.
func isCostWarning(got string) bool {
	return attack.IsCroftWarning(got) && slices.ContainsFunc([]string{install.BudgetWarningsPolicy, install.PriceWarningsPolicy}, func(policy string) bool {
		return strings.Contains(got, "ValidatingAdmissionPolicy '"+policy+"'")
	})
}

// isQuotaExhausted reports whether a tenant has used up its quota, or has limits that refuse verify's
// small pods.
func isQuotaExhausted(err error) bool {
	return err != nil && (attack.ByQuota.IsRefusal(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), " usage per "))
}

// setUp creates an attack's objects. The returned clean-up function works even if the context
// is cancelled, and after a partial failure.
func (r *Runner) setUp(ctx context.Context, objects []client.Object) (func(), error) {
	var made []client.Object
	cleanUp := func() {
		for _, o := range slices.Backward(made) {
			r.removeObject(context.WithoutCancel(ctx), o)
		}
	}
	for _, o := range objects {
		object, err := copyObject(o)
		if err != nil {
			return cleanUp, err
		}
		// Recorded before the request: an interrupted request may still have created it.
		made = append(made, object)
		if err := r.createObject(ctx, object); err != nil {
			return cleanUp, fmt.Errorf("prepare the attack: %w", err)
		}
	}
	return cleanUp, nil
}

// leaving is the maximum time for the deletion of a namespace of an earlier attempt.
const leaving = 20 * time.Second

// createObject creates a missing object. It waits for one that is being deleted.
func (r *Runner) createObject(ctx context.Context, object client.Object) error {
	if binding, ok := object.(*corev1.Binding); ok {
		return r.bindPod(ctx, binding)
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, again, leaving, true, func(ctx context.Context) (bool, error) {
		fresh, err := copyObject(object)
		if err != nil {
			return false, err
		}
		last = r.admin.Create(ctx, fresh)
		if apierrors.IsConflict(last) { // with concurrent changes of the quota
			return false, nil
		}
		if !apierrors.IsAlreadyExists(last) {
			return true, last
		}
		if last = r.admin.Get(ctx, client.ObjectKeyFromObject(fresh), fresh); last != nil {
			return false, client.IgnoreNotFound(last)
		}
		return fresh.GetDeletionTimestamp() == nil, nil
	})
	if wait.Interrupted(err) && last != nil {
		return last
	}
	return err
}

// bindPod binds a pod to a node as the scheduler does. The binding is deleted with the pod.
func (r *Runner) bindPod(ctx context.Context, binding *corev1.Binding) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: binding.Namespace, Name: binding.Name}}
	return r.scheduler.SubResource("binding").Create(ctx, pod, binding)
}

func copyObject(o client.Object) (client.Object, error) {
	object, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return nil, errors.New("the object cannot be copied")
	}
	return object, nil
}
