package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/walls/elevation"
)

type elevateOptions struct {
	tenant    string
	namespace string
	role      string
	duration  time.Duration
	reason    string
	wait      time.Duration
	write     bool
}

func newElevate(a *app) *cobra.Command {
	o := &elevateOptions{}
	c := &cobra.Command{
		Use:   "elevate --tenant NAME --for DURATION --reason TEXT",
		Short: "Request more rights in a tenant for a limited time",
		Long: `Request the role operator in a tenant for a limited time, wait for the approval, and
print a kubeconfig with a token that expires.

Every user with access to the tenant may request it, if the Platform enables elevations
(platform.elevation). If it names approvers, one of them other than you approves with
` + "`croft elevate approve`" + `. The token is encrypted for a key that does not leave this
process: after an interruption, make a new request. The request stays as a record:
kubectl get elevations -A.`,
		Example: `  croft elevate --tenant shop --for 1h --reason "INC-42: the queue is stuck" --write
  croft elevate approve eve-7f3k2 --tenant shop`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runElevate(cmd.Context(), o) },
	}
	flags := c.Flags()
	flags.StringVar(&o.tenant, "tenant", "", "name of the tenant")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace to request it in; by default the tenant's first, or, where you may not list them, the one with its name or of the context")
	flags.StringVar(&o.role, "role", string(v1alpha1.ElevationOperator), "role to request")
	flags.DurationVar(&o.duration, "for", time.Hour, "duration, at least 15m")
	flags.StringVar(&o.reason, "reason", "", "reason, for the approver and the record")
	flags.DurationVar(&o.wait, "wait-timeout", 30*time.Minute, "how long to wait for the approval")
	flags.BoolVar(&o.write, "write", false, "merge the context into the kubeconfig file and make it the current one, instead of printing it")
	_, _ = c.MarkFlagRequired("tenant"), c.MarkFlagRequired("reason")
	c.AddCommand(newElevateApprove(a))
	return c
}

func newElevateApprove(a *app) *cobra.Command {
	var tenant, namespace string
	c := &cobra.Command{
		Use:   "approve NAME --tenant NAME",
		Short: "Approve another user's request for elevation",
		Long: `Approve another user's request for elevation, as a member of one of the Platform's
elevation.approvers. The API server refuses approvals of your own requests.`,
		Args: requireOneName("elevation"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.approveElevation(cmd.Context(), tenant, namespace, args[0])
		},
	}
	c.Flags().StringVar(&tenant, "tenant", "", "name of the tenant")
	c.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the request; the tenant's first if none is given")
	c.MarkFlagsOneRequired("tenant", "namespace")
	return c
}

// runElevate creates a request, waits until it is granted, and writes the kubeconfig.
func (a *app) runElevate(ctx context.Context, o *elevateOptions) error {
	switch {
	case o.role != string(v1alpha1.ElevationOperator):
		return fmt.Errorf("--role %s: only the role operator is supported: omit --role", escapeLine(o.role))
	case o.duration < elevation.Shortest || o.duration > elevation.Longest:
		return fmt.Errorf("--for %s: write between 15m and 24h", o.duration)
	case strings.TrimSpace(o.reason) == "":
		return fmt.Errorf("--reason is empty: write a reason, for the approver and the record")
	}
	cluster, err := (&kubeconfigOptions{}).buildClusterEntry(a)
	if err != nil {
		return err
	}
	c, user, err := a.newClientWithUser(ctx)
	if err != nil {
		return err
	}
	if o.namespace == "" {
		if o.namespace, err = findFirstNamespace(ctx, c, o.tenant, user, a.currentNamespace()); err != nil {
			return err
		}
	}
	key, public, err := elevation.NewKey()
	if err != nil {
		return toFailure(err)
	}
	e := elevation.NewRequest(o.namespace, user, o.duration, o.reason, public)
	if err := c.Create(ctx, e); err != nil {
		return toFailure(oneLineError{explainUnreachable(err)})
	}
	printSafely(a.err, "requested: elevation %s in namespace %s\n", e.Name, e.Namespace)
	if err := a.awaitGranted(ctx, c, e, o.wait); err != nil {
		return err
	}
	token, err := elevation.Open(key, e.Status.Token)
	if err != nil {
		return failuref("the token of elevation %s is not encrypted for this request: %w", e.Name, err)
	}
	printSafely(a.err, "granted (%s): you are %s until %s\n", e.Status.Message, e.Status.User, e.Status.Until.Local().Format(time.DateTime))
	name := "croft-" + o.tenant + "-elevated"
	return a.writeContext(name, o.namespace, cluster, &clientcmdapi.AuthInfo{Token: token}, o.write)
}

func (a *app) awaitGranted(ctx context.Context, c client.Client, e *v1alpha1.Elevation, patience time.Duration) error {
	message := ""
	err := wait.PollUntilContextTimeout(ctx, time.Second, patience, true, func(ctx context.Context) (bool, error) {
		switch err := c.Get(ctx, client.ObjectKeyFromObject(e), e); {
		case apierrors.IsNotFound(err):
			return false, fmt.Errorf("elevation %s was deleted before it was granted: kubectl get events -n %s shows why", e.Name, e.Namespace)
		case err != nil:
			return false, oneLineError{explainUnreachable(err)}
		}
		switch e.Status.Phase {
		case v1alpha1.ElevationActive:
			return true, nil
		case v1alpha1.ElevationRefused, v1alpha1.ElevationEnded:
			return false, fmt.Errorf("elevation %s was refused: %s", e.Name, escapeLine(e.Status.Message))
		case v1alpha1.ElevationPending:
		}
		if e.Status.Message != message {
			message = e.Status.Message
			printSafely(a.err, "%s\n", escapeLine(message))
		}
		return false, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return failuref("elevation %s was not granted within %s: ask an approver, and make a new request; `croft status` shows whether the operator runs", e.Name, patience)
	}
	return toFailure(err)
}

// approveElevation writes the approver's name into a request.
func (a *app) approveElevation(ctx context.Context, tenant, namespace, name string) error {
	c, user, err := a.newClientWithUser(ctx)
	if err != nil {
		return err
	}
	if namespace == "" {
		if namespace, err = findFirstNamespace(ctx, c, tenant, user, a.currentNamespace()); err != nil {
			return err
		}
	}
	e := &v1alpha1.Elevation{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, e); err != nil {
		return toFailure(oneLineError{explainUnreachable(err)})
	}
	printSafely(a.err, "%s requests the role %s in namespace %s for %s: %s\n", escapeLine(e.Spec.RequestedBy), e.Spec.Role, namespace, wording.FormatDuration(e.Spec.Duration.Duration), escapeLine(e.Spec.Reason))
	before := e.DeepCopy()
	e.Spec.ApprovedBy = user
	// The patch fails if the request changed since the approver read it.
	if err := c.Patch(ctx, e, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return toFailure(oneLineError{explainUnreachable(err)})
	}
	printSafely(a.out, "approved: elevation %s\n", name)
	return nil
}

// newClientWithUser returns a client, and the user name that the API server authenticates it as.
func (a *app) newClientWithUser(ctx context.Context) (client.Client, string, error) {
	c, err := a.newClient()
	if err != nil {
		return nil, "", toFailure(err)
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return nil, "", toFailure(oneLineError{explainUnreachable(err)})
	}
	return c, review.Status.UserInfo.Username, nil
}
