package iam

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"croft.dev/croft/internal/estate"
)

// Identity is how Karpenter's service account comes by its role.
type Identity string

const (
	// PodIdentity is EKS Pod Identity: an agent on the node hands out the role.
	PodIdentity Identity = "pod-identity"
	// IRSA is a role for a service account: the cluster's OIDC provider vouches for it.
	IRSA Identity = "irsa"
)

// Options are what a file does not say.
type Options struct {
	// Identity is PodIdentity if empty.
	Identity Identity
	// OIDCProvider is that of the cluster, for IRSA, with or without https://.
	OIDCProvider string
	// Namespace and ServiceAccount are where Karpenter runs; kube-system and
	// karpenter if empty.
	Namespace, ServiceAccount string
	// WithoutCNI leaves the rights of the VPC CNI out of the nodes' roles, for a
	// cluster whose aws-node has a role of its own.
	WithoutCNI bool
}

// Stack is all that has to exist in AWS for an estate.
type Stack struct {
	cluster string
	options Options
	// controller is the name of the controller's role.
	controller string
	policies   []Policy
	nodes      []nodeRole
	queue      queue
	// operator is nil if no pool has secondary networks; operating is what it may do.
	operator  *operatorRole
	operating []Statement
}

// nodeRole is a role of nodes.
type nodeRole struct {
	name string
	// profile says that an instance profile of the same name is to be made.
	profile bool
	// managed are the names of policies that AWS keeps.
	managed []string
}

// ErrNoPools says that a file has nothing that croft keeps in AWS.
var ErrNoPools = errors.New("no pool has nodeClass.aws, so there is nothing to make in AWS: " +
	"write platform.nodeClass: {aws: {role: …}}; the roles of an EC2NodeClass that nodeClass.ref names are yours to keep")

// Plan says what has to exist. Its errors are about the options and the estate.
func Plan(e *estate.Estate, o Options) (*Stack, error) {
	n := needsOf(e)
	if !n.any() {
		return nil, ErrNoPools
	}
	if err := n.check(); err != nil {
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
			err = errors.New("--oidc-provider is for --identity irsa: leave one of them out")
		}
	case IRSA:
		o.OIDCProvider, err = providerOf(o.OIDCProvider)
	default:
		err = fmt.Errorf("--identity %s: there is no such way: write %s or %s", o.Identity, PodIdentity, IRSA)
	}
	if err != nil {
		return nil, err
	}
	s := &Stack{
		cluster: n.cluster, options: o, controller: shortened("KarpenterController-"+n.cluster, maxRoleName),
		policies: policies(n), queue: queueOf(n),
	}
	if s.operating = operating(n); len(s.operating) > 0 {
		name := shortened("CroftOperator-"+n.cluster, maxRoleName)
		s.operator = &operatorRole{name: name, policy: shortened("CroftOperator-interfaces-"+n.cluster, maxPolicyName)}
	}
	for _, name := range n.nodeRoles() {
		s.nodes = append(s.nodes, nodeRole{name: name, profile: slices.Contains(n.profiles, name), managed: managed(o)})
	}
	return s, nil
}

// managed are the rights of a node: to join the cluster, to give pods addresses, to
// pull images, and to be looked after by Systems Manager. Pods never get at them.
func managed(o Options) []string {
	all := []string{"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore"}
	if !o.WithoutCNI {
		all = append(all, "AmazonEKS_CNI_Policy")
	}
	return all
}

// providerOf is an OIDC provider as ARNs and conditions have it.
func providerOf(url string) (string, error) {
	provider := strings.TrimSuffix(strings.TrimPrefix(url, "https://"), "/")
	switch {
	case provider == "":
		return "", errors.New("--identity irsa needs --oidc-provider, the cluster's: " +
			"aws eks describe-cluster --name CLUSTER --query cluster.identity.oidc.issuer")
	case strings.ContainsAny(provider, " :*?${}\"") || !strings.Contains(provider, "."):
		return "", fmt.Errorf("--oidc-provider %s: is no provider; write one such as oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE", url)
	}
	return provider, nil
}
