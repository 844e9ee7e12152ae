package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// robotFlags name a service account, and the lifetime of its tokens.
type robotFlags struct {
	name     string
	duration time.Duration
}

func (f *robotFlags) addFlags(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "robot", "", "name of a service account in the tenant's namespace")
	c.Flags().DurationVar(&f.duration, "duration", time.Hour, "lifetime of the service account's tokens; at least 10m, and the API server may shorten it")
}

// validate reports values that the API server would reject.
func (f *robotFlags) validate() error {
	switch {
	case len(validation.IsDNS1123Subdomain(f.name)) > 0:
		return fmt.Errorf("--robot %s: write the name of a service account: lower-case letters, digits, '-' and '.'", escapeLine(f.name))
	case f.duration < 10*time.Minute:
		return fmt.Errorf("--duration %s: write at least 10m", f.duration)
	default:
		return nil
	}
}

func newRobotToken(a *app) *cobra.Command {
	var robot robotFlags
	var namespace string
	c := &cobra.Command{
		Use:   "token --robot NAME -n NAMESPACE",
		Short: "Print a token of a service account for kubectl and other clients, as their credential plugin",
		Long: `Print an ExecCredential (client.authentication.k8s.io) with a new token of a service
account. The command requests the token with your rights; a tenant's role operator has
them. Clients call this command if they use a kubeconfig of ` + "`croft kubeconfig --robot`" + `.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := robot.validate(); err != nil {
				return err
			}
			request, err := a.readExecRequest()
			if err != nil {
				return err
			}
			c, err := a.newClient()
			if err != nil {
				return toFailure(err)
			}
			status, err := robot.requestToken(cmd.Context(), c, namespace)
			if err != nil {
				return err
			}
			return request.printToken(a.out, status.Token, status.ExpirationTimestamp.Time)
		},
	}
	robot.addFlags(c)
	c.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the service account")
	_, _ = c.MarkFlagRequired("robot"), c.MarkFlagRequired("namespace")
	return c
}

// requestToken requests a token.
func (f *robotFlags) requestToken(ctx context.Context, c client.Client, namespace string) (*authenticationv1.TokenRequestStatus, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: f.name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(f.duration.Seconds()))}}
	err := c.SubResource("token").Create(ctx, account, request)
	switch {
	case apierrors.IsNotFound(err):
		return nil, failuref("namespace %s has no service account %s: create it with kubectl create serviceaccount %s -n %s", namespace, f.name, f.name, namespace)
	case err != nil:
		return nil, toFailure(oneLineError{explainUnreachable(err)})
	}
	return &request.Status, nil
}

// buildRobotUser returns a service account's user. It sets o.namespace if it is empty.
func (a *app) buildRobotUser(ctx context.Context, o *kubeconfigOptions, name string) (*clientcmdapi.AuthInfo, error) {
	if err := o.robot.validate(); err != nil {
		return nil, err
	}
	own, context, config, err := a.findKubeContext()
	if err != nil {
		return nil, toFailure(err)
	}
	if own == name {
		return nil, fmt.Errorf("context %s is the robot's own, which cannot request its tokens: name yours with --context", name)
	}
	c, err := a.newClient()
	if err != nil {
		return nil, toFailure(err)
	}
	if o.namespace == "" {
		if o.namespace, err = findFirstNamespace(ctx, c, o.tenant, "the context in use", a.currentNamespace()); err != nil {
			return nil, err
		}
	}
	// The token is always requested, so that errors appear now.
	status, err := o.robot.requestToken(ctx, c, o.namespace)
	if err != nil {
		return nil, err
	}
	if o.embed {
		printSafely(a.err, "the token expires at %s\n", status.ExpirationTimestamp.Local().Format(time.DateTime))
		return &clientcmdapi.AuthInfo{Token: status.Token}, nil
	}
	args := []string{"kubeconfig", "token", "--robot=" + o.robot.name, "--namespace=" + o.namespace, "--duration=" + o.robot.duration.String(), "--context=" + own}
	// kubectl --kubeconfig does not pass the path of the file to the plugin.
	file := context.LocationOfOrigin
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster != nil && user != nil && cluster.LocationOfOrigin == file && user.LocationOfOrigin == file && file != "" {
		if file, err = filepath.Abs(file); err != nil {
			return nil, toFailure(err)
		}
		args = append(args, "--kubeconfig="+file)
	}
	return buildExecUser(findOwnCommand(), args, installHint), nil
}
