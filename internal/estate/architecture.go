package estate

import (
	"regexp"
	"strings"

	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// awsType is the shape of AWS's names: a family, made of a series, a generation
// and attributes, and a size. Families with other additions than -flex are left
// out: the attributes alone do not tell theirs, as with p6e-gb200.
var awsType = regexp.MustCompile(`^([a-z]+)(\d+)([a-z]*)(?:-flex)?\.(?:nano|micro|small|medium|\d*x?large|metal(?:-\d+xl)?)$`)

// architectureOf tells the architecture of an instance type by its name, or
// nothing where the name does not tell. AWS marks its ARM processors with a g
// among the letters after the generation, as in t4g, c7gn and x2gd; the first
// ones, a1, came before that. Macs are of either kind and run no Linux.
func architectureOf(instanceType string) string {
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
