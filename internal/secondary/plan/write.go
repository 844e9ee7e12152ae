package plan

import (
	"fmt"
	"strconv"
	"strings"

	"croft.dev/croft/internal/secondary"
)

const (
	// explicit reserves addresses that AWS assigns to nobody by itself.
	explicit = "explicit"
	// prefix reserves addresses from which AWS gives interfaces prefixes, and nothing else.
	prefix = "prefix"
)

// networkTag names a reservation's network.
const networkTag = "croft.dev/network"

// Commands are the calls of the AWS CLI, as a script for a shell. A reservation that is
// there already is refused by EC2, which changes nothing.
func (p *Plan) Commands() string {
	var b strings.Builder
	for i := range p.Ranges {
		r := &p.Ranges[i]
		fmt.Fprintf(&b, "aws ec2 create-subnet-cidr-reservation --subnet-id %s --cidr %s --reservation-type %s \\\n"+
			"  --description %s \\\n  --tag-specifications %s\n",
			quote(r.Subnet), quote(r.PodCIDR), r.Type, quote(r.description()),
			quote("ResourceType=subnet-cidr-reservation,Tags=[{Key="+networkTag+",Value="+r.Network+"}]"))
	}
	return b.String()
}

// quote is a word for a shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// CloudFormation is a template with the reservations.
func (p *Plan) CloudFormation() map[string]any {
	resources := map[string]any{}
	for i := range p.Ranges {
		r := &p.Ranges[i]
		id := r.logicalID()
		for n := 2; resources[id] != nil; n++ {
			id = r.logicalID() + strconv.Itoa(n)
		}
		resources[id] = map[string]any{
			"Type": "AWS::EC2::SubnetCidrReservation",
			"Properties": map[string]any{
				"SubnetId": r.Subnet, "Cidr": r.PodCIDR, "ReservationType": r.Type, "Description": r.description(),
				"Tags": []any{map[string]any{"Key": networkTag, "Value": r.Network}},
			},
		}
	}
	return map[string]any{
		"AWSTemplateFormatVersion": "2010-09-09",
		"Description":              "croft: addresses of secondary networks",
		"Resources":                resources,
	}
}

// logicalID has letters and digits only, as CloudFormation wants it.
func (r *Range) logicalID() string {
	id := "Pods"
	for word := range strings.SplitSeq(secondary.InZone(r.Network, r.Zone), "-") {
		if word != "" {
			id += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return id
}

// Terraform is the reservations in Terraform's JSON syntax, for a file that ends in
// .tf.json; the provider is the caller's to configure.
func (p *Plan) Terraform() map[string]any {
	resources := map[string]any{}
	for i := range p.Ranges {
		r := &p.Ranges[i]
		resources["pods-"+secondary.InZone(r.Network, r.Zone)] = map[string]any{
			"subnet_id": r.Subnet, "cidr_block": r.PodCIDR, "reservation_type": r.Type, "description": r.description(),
		}
	}
	return map[string]any{"resource": map[string]any{"aws_ec2_subnet_cidr_reservation": resources}}
}
