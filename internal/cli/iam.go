package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"croft.dev/croft/internal/cloud/iam"
	"croft.dev/croft/internal/declare/estate"
)

const (
	formatCloudFormation format = "cloudformation"
	formatTerraform      format = "terraform"
)

func newIAM(a *app) *cobra.Command {
	var (
		files   fileFlags
		output  format
		options iam.Options
		account string
	)
	c := &cobra.Command{
		Use:   "iam -f FILE",
		Short: "Print the AWS resources that a file's pools require",
		Long: `Print the AWS resources that a file's pools require, without a cluster and without
an account: the role of Karpenter's controller with its trust, the roles of the nodes
with their access entries, the instance profiles that the file names, and the queue
for interruptions. Where a pool on AWS has secondary networks: also the role of croft's
operator, which creates and attaches the nodes' network interfaces.

The rights cover only the calls of Karpenter's provider for AWS, only on resources
with the cluster's tags, and iam:PassRole only for the file's roles. The output
therefore depends on the file: print it again when you add roles, images of your own,
disks' keys or capacity reservations.`,
		Example: `  croft iam -f croft.yaml > karpenter.yaml
  aws cloudformation deploy --template-file karpenter.yaml --stack-name karpenter --capabilities CAPABILITY_NAMED_IAM
  croft iam -f croft.yaml -o terraform > karpenter.tf.json
  croft iam -f croft.yaml --identity irsa --oidc-provider oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			e, err := files.buildEstate(a.in)
			if err != nil {
				return err
			}
			if options.Namespace, options.ServiceAccount, err = parseServiceAccount(account); err != nil {
				return err
			}
			stack, err := iam.Plan(e, options)
			if err != nil {
				return err
			}
			if own := listOwnClasses(e); len(own) > 0 {
				printSafely(a.err, "croft: the output lacks the resources of %s, since croft does not manage its EC2NodeClass\n", strings.Join(own, ", "))
			}
			return printStack(a, stack, output)
		},
	}
	files.addFlags(c)
	c.Flags().StringVar((*string)(&options.Identity), "identity", string(iam.PodIdentity), "how Karpenter's service account gets its role: pod-identity or irsa")
	c.Flags().StringVar(&options.OIDCProvider, "oidc-provider", "", "the cluster's OIDC provider, for --identity irsa")
	c.Flags().StringVar(&account, "service-account", "kube-system/karpenter", "namespace and name of Karpenter's service account")
	c.Flags().BoolVar(&options.WithoutCNI, "without-cni", false, "omit the rights of the VPC CNI from the nodes' roles, if aws-node has a role of its own")
	output.addFlags(c, formatCloudFormation, formatTerraform, formatJSON)
	return c
}

// parseServiceAccount splits a service account into namespace and name. They become part of an IAM
// condition, where no character may have a special meaning.
func parseServiceAccount(text string) (namespace, name string, err error) {
	namespace, name, _ = strings.Cut(text, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", "", fmt.Errorf("--service-account %s: write its namespace too, such as kube-system/karpenter", text)
	}
	return namespace, name, nil
}

func printStack(a *app, stack *iam.Stack, output format) error {
	switch output {
	case formatTerraform:
		content, err := stack.Terraform()
		if err != nil {
			return toFailure(err)
		}
		return formatJSON.print(a.out, content)
	case formatJSON:
		return formatJSON.print(a.out, stack.JSON())
	default:
		return formatYAML.print(a.out, stack.CloudFormation())
	}
}

// listOwnClasses returns the pools whose EC2NodeClass is managed by the platform team.
func listOwnClasses(e *estate.Estate) []string {
	var own []string
	for _, p := range e.Pools {
		if p.Class.Ref != nil && p.Class.Ref.Kind == "EC2NodeClass" {
			own = append(own, "pool "+p.Name)
		}
	}
	slices.Sort(own)
	return own
}
