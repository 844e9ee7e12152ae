package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/consequence"
)

func newDelete(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "delete",
		Short: "Delete a tenant or a pool from the cluster",
		Args:  cobra.NoArgs,
	}
	c.AddCommand(newDeleteTenant(a), newDeletePool(a))
	return c
}

func newDeleteTenant(a *app) *cobra.Command {
	var (
		yes     bool
		timeout time.Duration
	)
	c := &cobra.Command{
		Use:   "tenant NAME",
		Short: "Delete a tenant, after listing what is deleted and what stays",
		Args:  requireOneName("tenant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.newClient()
			if err != nil {
				return toFailure(err)
			}
			return a.deleteTenant(cmd.Context(), c, args[0], yes, timeout)
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	c.Flags().DurationVar(&timeout, "wait-timeout", 5*time.Minute, "how long to wait until the tenant is deleted")
	return c
}

func (a *app) deleteTenant(ctx context.Context, c client.Client, name string, yes bool, timeout time.Duration) error {
	var tenant v1alpha1.Tenant
	if err := c.Get(ctx, client.ObjectKey{Name: name}, &tenant); err != nil {
		if apierrors.IsNotFound(err) {
			return errNoTenant(name)
		}
		return toFailure(explainUnreachable(err))
	}
	if err := errProtected(tenant); err != nil {
		return err
	}
	consequences, err := describeDeletion(ctx, c, &tenant)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	printSafely(a.err, "Deleting tenant %s (deletion: %s):\n%s", name, tenant.Spec.Deletion, consequences)
	if !yes && !a.confirmTenant(name) {
		return failuref("nothing was deleted")
	}
	if err := client.IgnoreNotFound(c.Delete(ctx, &tenant)); err != nil {
		return toFailure(explainUnreachable(err))
	}
	return a.awaitTenantDeleted(ctx, c, &tenant, timeout)
}

// errNoTenant returns the error for the name of a tenant that does not exist.
func errNoTenant(name string) error {
	return fmt.Errorf("there is no tenant %s: `croft status` lists the tenants", name)
}

// describeDeletion describes the effects of deleting a tenant on each of its namespaces.
func describeDeletion(ctx context.Context, c client.Reader, tenant *v1alpha1.Tenant) (string, error) {
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces, client.MatchingLabels{v1alpha1.TenantLabel: tenant.Name}); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("  - its people lose their access\n")
	for _, n := range namespaces.Items {
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.InNamespace(n.Name)); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "  - %s\n", consequence.DescribeWithdrawal(&n, tenant.Spec.Deletion, len(pods.Items)))
		if tenant.Spec.Deletion != v1alpha1.DeletionDelete || n.Annotations[v1alpha1.CreatedAnnotation] == "" {
			if err := describePrivateAccess(ctx, c, n.Name, &b); err != nil {
				return "", err
			}
		}
	}
	return b.String(), nil
}

// describePrivateAccess names RoleBindings that give users access and that croft did not
// create: a tenant's operator or the platform team may have. croft does not delete them.
func describePrivateAccess(ctx context.Context, c client.Reader, namespace string, b *strings.Builder) error {
	var bindings rbacv1.RoleBindingList
	if err := c.List(ctx, &bindings, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, binding := range bindings.Items {
		people := slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Kind != rbacv1.ServiceAccountKind })
		if people && binding.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy {
			fmt.Fprintf(b, "    RoleBinding %s, which croft did not create, stays and gives people access: delete it to end that access, too\n", escapeLine(binding.Name))
		}
	}
	return nil
}

// confirmTenant asks for the tenant's name, to prevent deletion of the wrong tenant by habit.
func (a *app) confirmTenant(name string) bool { return a.confirmName("tenant", name) }

// confirmName asks for the name of a tenant or a pool. An interruption counts as a
// refusal.
func (a *app) confirmName(kind, name string) bool {
	printSafely(a.err, "Type the %s's name to continue: ", kind)
	return a.readAnswer() == name
}

// readAnswer reads a line from the user. An interruption returns an empty line.
func (a *app) readAnswer() string {
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.in).ReadString('\n')
		answered <- strings.TrimSpace(line)
	}()
	var over <-chan struct{}
	if a.interrupt != nil {
		over = a.interrupt.Done()
	}
	select {
	case line := <-answered:
		return line
	case <-over:
		printSafely(a.err, "\n")
		return ""
	}
}

func (a *app) awaitTenantDeleted(ctx context.Context, c client.Reader, tenant *v1alpha1.Tenant, timeout time.Duration) error {
	return a.awaitDeleted(ctx, c, tenant, "tenant", timeout)
}

func (a *app) awaitDeleted(ctx context.Context, c client.Reader, object client.Object, kind string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	p := newProgress(a.err)
	waiting := fmt.Sprintf("waiting until %s %s is deleted", kind, object.GetName())
	p.update("%s", waiting)
	holder := ""
	for {
		live, err := newEmptyLike(object)
		if err != nil {
			return toFailure(err)
		}
		err = c.Get(ctx, client.ObjectKeyFromObject(object), live)
		if apierrors.IsNotFound(err) || err == nil && live.GetUID() != object.GetUID() {
			p.update("%s %s deleted", kind, object.GetName())
			p.finish()
			return nil
		}
		if err == nil {
			holder = explainDeletionDelay(live)
			p.update("%s%s", waiting, holder)
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return newInterruption(fmt.Sprintf(": %s %s is being deleted; `croft status` lists it until then", kind, object.GetName()))
			}
			return failuref("%s %s is being deleted, but still exists%s: `croft why %s/%s` explains the delay, and `croft doctor` checks that croft's operator runs",
				kind, object.GetName(), holder, kind, object.GetName())
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// explainDeletionDelay returns the operator's reason why an object is not deleted yet.
func explainDeletionDelay(o client.Object) string {
	var conditions []metav1.Condition
	switch o := o.(type) {
	case *v1alpha1.Tenant:
		conditions = o.Status.Conditions
	case *v1alpha1.Pool:
		conditions = o.Status.Conditions
	}
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonDeleting && ready.Reason != v1alpha1.ReasonInUse {
		return ""
	}
	return ": " + ready.Message
}

// newEmptyLike returns an empty object of the same type.
func newEmptyLike(o client.Object) (client.Object, error) {
	empty, ok := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not a Kubernetes object", o)
	}
	return empty, nil
}
