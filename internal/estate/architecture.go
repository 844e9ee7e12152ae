package estate

import (
	"regexp"
	"strings"

	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// awsType is the form of AWS's names: a family, made of a series, a generation and
// attributes, and a size. Families with other suffixes than -flex are left out: their
// attributes alone do not tell the architecture, as with p6e-gb200.
var awsType = regexp.MustCompile(`^([a-z]+)(\d+)([a-z]*)(?:-flex)?\.(?:nano|micro|small|medium|\d*x?large|metal(?:-\d+xl)?)$`)

// architectureOf tells the architecture of an instance type by its name; empty if the
// name does not show it. AWS marks its ARM processors with a g among the letters after
// the generation, as in t4g, c7gn and x2gd; the first ones, a1, are older than that.
// Macs are of either kind and run no Linux.
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
