package iam

import (
	"fmt"
	"regexp"
	"slices"
)

// Names become parts of ARNs, where a * would match any name. AWS allows no * in these
// names.
var (
	clusterName   = regexp.MustCompile(`^[0-9A-Za-z][-0-9A-Za-z_]{0,99}$`)
	roleName      = regexp.MustCompile(`^[-0-9A-Za-z_+=,.@]+$`)
	parameterName = regexp.MustCompile(`^(arn:[-0-9A-Za-z_.:]+:parameter/)?[-0-9A-Za-z_./]+$`)
	subnetID      = regexp.MustCompile(`^subnet-[0-9a-z]+$`)
	groupID       = regexp.MustCompile(`^sg-[0-9a-z]+$`)
	keyName       = regexp.MustCompile(`^(arn:[-0-9A-Za-z_.:]+:)?(key/|alias/)?[-0-9A-Za-z_/]+$`)
)

// validateNames returns an error for names that are not valid in AWS.
func (n *needs) validateNames() error {
	for _, c := range []struct {
		what, such string
		form       *regexp.Regexp
		names      []string
	}{
		{"platform.clusterName", "the cluster's name in EKS", clusterName, []string{n.cluster}},
		{"nodeClass.aws.role", "the name of a role without its path, such as KarpenterNodeRole-demo", roleName, n.roles},
		{"nodeClass.aws.instanceProfile", "the name of an instance profile without its path", roleName, n.profiles},
		{"nodeClass.aws.amiSelectorTerms.ssmParameter", "a parameter's name or its ARN, without *", parameterName, n.parameters},
		{"nodeClass.aws.blockDeviceMappings.ebs.kmsKeyID", "a key's id, alias or ARN, without *", keyName, n.keys},
		{"secondaryNetworks.zones.subnet", "a subnet's id, such as subnet-0abc1234", subnetID, n.subnets},
		{"secondaryNetworks.zones.securityGroups", "a security group's id, such as sg-0abc1234", groupID, n.groups},
	} {
		if i := slices.IndexFunc(c.names, func(name string) bool { return !c.form.MatchString(name) }); i >= 0 {
			return fmt.Errorf("%s: %q is not valid in AWS: write %s", c.what, c.names[i], c.such)
		}
	}
	return nil
}
