package iam

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"croft.dev/croft/internal/declare/estate"
)

// Identity is the way in which Karpenter's service account gets its role.
type Identity string

const (
	// PodIdentity is EKS Pod Identity: an agent on the node provides the role's
	// credentials.
	PodIdentity Identity = "pod-identity"
	// IRSA is IAM roles for service accounts: the role trusts the cluster's OIDC provider.
	IRSA Identity = "irsa"
)

// Options are the settings that are not in a file.
type Options struct {
	// Identity defaults to PodIdentity.
	Identity Identity
	// OIDCProvider is the cluster's OIDC provider, for IRSA, with or without https://.
	OIDCProvider string
	// Namespace and ServiceAccount identify Karpenter's service account. The defaults are
	// kube-system and karpenter.
	Namespace, ServiceAccount string
	// WithoutCNI omits the rights of the VPC CNI from the nodes' roles, for a cluster whose
	// aws-node has its own role.
	WithoutCNI bool
}

// Stack is the set of AWS resources for an estate.
type Stack struct {
	cluster string
	options Options
	// controller is the name of the controller's role.
	controller string
	policies   []Policy
	nodes      []nodeRole
	queue      queue
	// operator is nil if no pool has secondary networks. operating are its rights.
	operator           *operatorRole
	operatorStatements []Statement
}

// nodeRole is a role for nodes.
type nodeRole struct {
	name string
	// profile requests an instance profile of the same name.
	profile bool
	// managed are the names of AWS managed policies.
	managed []string
}

// ErrNoPools reports that no pool of a file needs resources in AWS that croft describes.
var ErrNoPools = errors.New("no pool has nodeClass.aws, so there are no AWS resources to print: " +
	"write platform.nodeClass: {aws: {role: …}}; you manage the roles of an EC2NodeClass that nodeClass.ref names")

// Plan computes the AWS resources for an estate. Its errors concern the options and the
// estate.
func Plan(e *estate.Estate, o Options) (*Stack, error) {
	n := collectNeeds(e)
	if !n.hasNodeClass() {
		return nil, ErrNoPools
	}
	if err := n.validateNames(); err != nil {
		return nil, err
	}
	if o.Namespace == "" {
		o.Namespace = "kube-system"
	}
	if o.ServiceAccount == "" {
		o.ServiceAccount = "karpenter"
	}
	var err error
	switch o.Identity {
	case "", PodIdentity:
		o.Identity = PodIdentity
		if o.OIDCProvider != "" {
			err = errors.New("--oidc-provider works only with --identity irsa")
		}
	case IRSA:
		o.OIDCProvider, err = parseProvider(o.OIDCProvider)
	default:
		err = fmt.Errorf("--identity %s: not supported: write %s or %s", o.Identity, PodIdentity, IRSA)
	}
	if err != nil {
		return nil, err
	}
	s := &Stack{
		cluster: n.cluster, options: o, controller: shortenName("KarpenterController-"+n.cluster, maxRoleName),
		policies: buildPolicies(n), queue: buildQueue(n),
	}
	if s.operatorStatements = allowInterfaces(n); len(s.operatorStatements) > 0 {
		name := shortenName("CroftOperator-"+n.cluster, maxRoleName)
		s.operator = &operatorRole{name: name, policy: shortenName("CroftOperator-interfaces-"+n.cluster, maxPolicyName)}
	}
	for _, name := range n.listNodeRoles() {
		s.nodes = append(s.nodes, nodeRole{name: name, profile: slices.Contains(n.profiles, name), managed: listManagedPolicies(o)})
	}
	return s, nil
}

// listManagedPolicies returns the policies of a node's role: to join the cluster, to assign addresses
// to pods, to pull images, and to be managed by Systems Manager. Pods have no access to
// these rights.
func listManagedPolicies(o Options) []string {
	all := []string{"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore"}
	if !o.WithoutCNI {
		all = append(all, "AmazonEKS_CNI_Policy")
	}
	return all
}

// parseProvider returns an OIDC provider without its scheme, as ARNs and conditions need it.
func parseProvider(url string) (string, error) {
	provider := strings.TrimSuffix(strings.TrimPrefix(url, "https://"), "/")
	switch {
	case provider == "":
		return "", errors.New("--identity irsa needs --oidc-provider, the cluster's: " +
			"aws eks describe-cluster --name CLUSTER --query cluster.identity.oidc.issuer")
	case strings.ContainsAny(provider, " :*?${}\"") || !strings.Contains(provider, "."):
		return "", fmt.Errorf("--oidc-provider %s: not a provider; write one such as oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE", url)
	}
	return provider, nil
}
