package plan

import (
	"fmt"
	"strconv"
	"strings"

	"croft.dev/croft/internal/declare/secondary"
)

const (
	// explicit reserves addresses that AWS never assigns automatically.
	explicit = "explicit"
	// prefix reserves addresses that AWS assigns only as prefixes of interfaces.
	prefix = "prefix"
)

// networkTag is the tag with the name of a reservation's network.
const networkTag = "croft.dev/network"

// Commands returns a shell script of AWS CLI calls. EC2 refuses a reservation that exists
// already, which changes nothing.
func (p *Plan) Commands() string {
	var b strings.Builder
	for i := range p.Ranges {
		r := &p.Ranges[i]
		fmt.Fprintf(&b, "aws ec2 create-subnet-cidr-reservation --subnet-id %s --cidr %s --reservation-type %s \\\n"+
			"  --description %s \\\n  --tag-specifications %s\n",
			quoteWord(r.Subnet), quoteWord(r.PodCIDR), r.Type, quoteWord(r.description()),
			quoteWord("ResourceType=subnet-cidr-reservation,Tags=[{Key="+networkTag+",Value="+r.Network+"}]"))
	}
	return b.String()
}

// quoteWord quotes a word for a shell.
func quoteWord(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// CloudFormation returns a template with the reservations.
func (p *Plan) CloudFormation() map[string]any {
	resources := map[string]any{}
	for i := range p.Ranges {
		r := &p.Ranges[i]
		id := r.makeLogicalID()
		for n := 2; resources[id] != nil; n++ {
			id = r.makeLogicalID() + strconv.Itoa(n)
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

// makeLogicalID returns an ID of letters and digits only, as CloudFormation requires.
func (r *Range) makeLogicalID() string {
	id := "Pods"
	for word := range strings.SplitSeq(secondary.ZoneDefinitionName(r.Network, r.Zone), "-") {
		if word != "" {
			id += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return id
}

// Terraform returns the reservations in Terraform's JSON syntax, for a file with the
// extension .tf.json. The caller configures the provider.
func (p *Plan) Terraform() map[string]any {
	resources := map[string]any{}
	for i := range p.Ranges {
		r := &p.Ranges[i]
		resources["pods-"+secondary.ZoneDefinitionName(r.Network, r.Zone)] = map[string]any{
			"subnet_id": r.Subnet, "cidr_block": r.PodCIDR, "reservation_type": r.Type, "description": r.description(),
		}
	}
	return map[string]any{"resource": map[string]any{"aws_ec2_subnet_cidr_reservation": resources}}
}
