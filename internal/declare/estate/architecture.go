package estate

import (
	"regexp"
	"strings"

	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// awsType is the format of AWS's instance type names: a family, consisting of a series, a
// generation and attributes, and a size. It does not match families with other suffixes than
// -flex, such as p6e-gb200: their attributes alone do not show the architecture.
var awsType = regexp.MustCompile(`^([a-z]+)(\d+)([a-z]*)(?:-flex)?\.(?:nano|micro|small|medium|\d*x?large|metal(?:-\d+xl)?)$`)

// ParseArchitecture returns the architecture of an instance type, or "" if its name does not show
// it. In AWS's names, a g among the letters after the generation marks ARM processors, as in
// t4g, c7gn and x2gd; a1, the first ARM family, is older than this convention. Macs have either
// architecture and do not run Linux.
func ParseArchitecture(instanceType string) string {
	match := awsType.FindStringSubmatch(instanceType)
	if match == nil || match[1] == "mac" {
		return ""
	}
	series, generation, attributes := match[1], match[2], match[3]
	if strings.Contains(attributes, "g") || series+generation == "a1" {
		return karpenterv1.ArchitectureArm64
	}
	return karpenterv1.ArchitectureAmd64
}
