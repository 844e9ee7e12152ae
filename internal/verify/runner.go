// Package verify tries attacks on a cluster and tells what became of them.
package verify

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/reach"
)

// user is the name under which verify acts; its rights come from the groups
// that a tenant's access names.
const user = "croft-verify"

// Runner tries attacks as members of one tenant.
type Runner struct {
	// admin prepares what an attack needs, and cleans up after it.
	admin client.Client
	// members act with a role of the tenant, by impersonation.
	members map[v1alpha1.Role]client.Client
	// policies are read once, when the first flow is judged.
	policies *reach.Map
}

// NewRunner returns a Runner that acts as the groups and users of the tenant's
// access. The configuration must be of somebody who may impersonate them and
// write to the tenant's namespaces.
func NewRunner(config *rest.Config, scheme *runtime.Scheme, by *estate.Tenant) (*Runner, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	admin, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	r := &Runner{admin: admin, members: map[v1alpha1.Role]client.Client{}}
	for _, access := range by.Access {
		as := rest.CopyConfig(config)
		as.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
		if access.User != "" {
			as.Impersonate.UserName = access.User
		} else {
			as.Impersonate.Groups = append(as.Impersonate.Groups, access.Group)
		}
		if r.members[access.Role], err = client.New(as, client.Options{Scheme: scheme, Mapper: mapper}); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Try tries one attack. Requests are dry runs: they pass through every wall and
// leave nothing behind.
func (r *Runner) Try(ctx context.Context, a attack.Attack) Result {
	if a.Flow != nil {
		return r.judgeFlow(ctx, a)
	}
	role := a.As
	if role == "" {
		role = v1alpha1.RoleOperator
	}
	member, ok := r.members[role]
	if !ok {
		return notTried(a, fmt.Errorf("the tenant gives nobody the role %s", role))
	}
	cleanUp, err := r.setUp(ctx, a.Setup)
	defer cleanUp()
	if err != nil {
		return thwarted(a, err)
	}
	object, err := r.object(ctx, a.Request)
	if err != nil {
		return thwarted(a, err)
	}
	err = send(ctx, member, a.Request, object)
	if err == nil && a.Outcome != nil {
		return judge(a, a.Outcome(object), nil)
	}
	return judge(a, nil, err)
}

// judgeFlow asks whether the network policies that stand let a connection
// through.
func (r *Runner) judgeFlow(ctx context.Context, a attack.Attack) Result {
	if r.policies == nil {
		policies, err := reach.Read(ctx, r.admin)
		if err != nil {
			return thwarted(a, err)
		}
		r.policies = policies
	}
	allowed, err := r.policies.Allows(*a.Flow)
	if err != nil {
		return notTried(a, err)
	}
	switch {
	case a.Kind == attack.Breach && allowed:
		return resultOf(a, Breached, "the network policies let the connection through")
	case a.Kind == attack.Mirror && !allowed:
		return resultOf(a, Breached, "the network policies stop the connection")
	default:
		return resultOf(a, Held, "")
	}
}

// setUp creates what the attack needs. The clean-up runs even if the context is
// over, and whatever of it was created.
func (r *Runner) setUp(ctx context.Context, objects []client.Object) (func(), error) {
	var made []client.Object
	cleanUp := func() {
		for i := range made {
			_ = r.admin.Delete(context.WithoutCancel(ctx), made[len(made)-1-i], client.GracePeriodSeconds(0))
		}
	}
	for _, o := range objects {
		object, err := copyOf(o)
		if err != nil {
			return cleanUp, err
		}
		if err := r.admin.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return cleanUp, fmt.Errorf("preparing the attack: %w", err)
		}
		made = append(made, object)
	}
	return cleanUp, nil
}

// object is what the request sends: for an update, the object as it stands,
// changed.
func (r *Runner) object(ctx context.Context, request *attack.Request) (client.Object, error) {
	object, err := copyOf(request.Object)
	if err != nil || request.Verb != attack.Update {
		return object, err
	}
	if err := r.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, fmt.Errorf("reading what the attack would change: %w", err)
	}
	if request.Change != nil {
		return object, request.Change(object)
	}
	return object, nil
}

func send(ctx context.Context, c client.Client, request *attack.Request, object client.Object) error {
	switch request.Verb {
	case attack.Create:
		if request.Subresource != "" {
			body, err := copyOf(request.Body)
			if err != nil {
				return err
			}
			return c.SubResource(request.Subresource).Create(ctx, object, body, client.DryRunAll)
		}
		return c.Create(ctx, object, client.DryRunAll)
	case attack.Update:
		if request.Subresource != "" {
			return c.SubResource(request.Subresource).Update(ctx, object, client.DryRunAll)
		}
		return c.Update(ctx, object, client.DryRunAll)
	case attack.Delete:
		return c.Delete(ctx, object, client.DryRunAll)
	case attack.Get:
		return c.Get(ctx, client.ObjectKeyFromObject(object), object)
	case attack.List:
		gvk := object.GetObjectKind().GroupVersionKind()
		list, err := c.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			return err
		}
		objects, ok := list.(client.ObjectList)
		if !ok {
			return fmt.Errorf("%s cannot be listed", gvk.Kind)
		}
		return c.List(ctx, objects, client.InNamespace(object.GetNamespace()))
	default:
		return fmt.Errorf("no attack uses the verb %q", request.Verb)
	}
}

func copyOf(o client.Object) (client.Object, error) {
	object, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return nil, errors.New("the object cannot be copied")
	}
	return object, nil
}
