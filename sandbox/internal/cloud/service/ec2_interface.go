package service

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/wire"
)

// largestPage and smallestPage are the limits of MaxResults.
const (
	largestPage  = 1000
	smallestPage = 5
)

type createdInterface struct {
	Interface networkInterface `xml:"networkInterface"`
	Token     string           `xml:"clientToken,omitempty"`
}

type describedInterfaces struct {
	Interfaces []networkInterface `xml:"networkInterfaceSet>item"`
	Next       string             `xml:"nextToken,omitempty"`
}

type networkInterface struct {
	ID               string            `xml:"networkInterfaceId"`
	Subnet           string            `xml:"subnetId"`
	VPC              string            `xml:"vpcId"`
	Zone             string            `xml:"availabilityZone"`
	Description      string            `xml:"description"`
	Owner            string            `xml:"ownerId"`
	RequesterManaged bool              `xml:"requesterManaged"`
	Status           string            `xml:"status"`
	MAC              string            `xml:"macAddress"`
	IP               string            `xml:"privateIpAddress,omitempty"`
	SourceDestCheck  bool              `xml:"sourceDestCheck"`
	Groups           []groupID         `xml:"groupSet>item"`
	Attachment       *attachment       `xml:"attachment"`
	Addresses        []privateAddress  `xml:"privateIpAddressesSet>item"`
	Prefixes         []delegatedPrefix `xml:"ipv4PrefixSet>item"`
	Tags             []tagItem         `xml:"tagSet>item"`
}

type attachment struct {
	ID                  string `xml:"attachmentId"`
	Instance            string `xml:"instanceId"`
	InstanceOwner       string `xml:"instanceOwnerId"`
	DeviceIndex         int    `xml:"deviceIndex"`
	Status              string `xml:"status"`
	At                  string `xml:"attachTime"`
	DeleteOnTermination bool   `xml:"deleteOnTermination"`
}

type privateAddress struct {
	IP      string `xml:"privateIpAddress"`
	Primary bool   `xml:"primary"`
}

type delegatedPrefix struct {
	Prefix string `xml:"ipv4Prefix"`
}

func toNetworkInterface(n account.Interface, now time.Time) networkInterface {
	out := networkInterface{
		ID: n.ID, Subnet: n.Subnet, VPC: n.VPC, Zone: n.Zone, Description: n.Description, Owner: account.ID, Status: n.Status(),
		MAC: n.MAC, SourceDestCheck: n.SourceDestCheck, Tags: toTagItems(n.Tags),
	}
	for i, address := range n.Addresses {
		if i == 0 {
			out.IP = address
		}
		out.Addresses = append(out.Addresses, privateAddress{address, i == 0})
	}
	for _, prefix := range n.Prefixes {
		out.Prefixes = append(out.Prefixes, delegatedPrefix{prefix})
	}
	for _, group := range n.Groups {
		out.Groups = append(out.Groups, groupID{group})
	}
	if t := n.Attachment; t != nil {
		out.Attachment = &attachment{t.ID, t.Instance, account.ID, t.DeviceIndex, t.Status(now), t.Began.UTC().Format(timestamp), t.DeleteOnTermination}
	}
	return out
}

// convertError returns EC2's answer to a call that the account refuses.
func convertError(err error) error {
	var invalid *account.Invalid
	if errors.As(err, &invalid) {
		return &wire.Error{Code: invalid.Code, Message: invalid.Message}
	}
	return err
}

func (s *Services) createNetworkInterface(r *wire.Request) (any, error) {
	if err := checkDryRun(r); err != nil {
		return nil, err
	}
	given := r.Params.ListAll()
	delete(given, "ClientToken")
	var parameters []string
	for _, key := range slices.Sorted(maps.Keys(given)) {
		parameters = append(parameters, key+"="+given[key])
	}
	order := account.NewInterface{
		Subnet: r.Params.String("SubnetId"), Description: r.Params.String("Description"), Groups: r.Params.ListStrings("SecurityGroupId"),
		Tags: readResourceTags(r.Params, "network-interface"), Token: r.Params.String("ClientToken"), Parameters: strings.Join(parameters, "&"),
		Wanted: account.Wanted{Count: r.Params.Int("SecondaryPrivateIpAddressCount"), PrefixCount: r.Params.Int("Ipv4PrefixCount")},
	}
	if one := r.Params.String("PrivateIpAddress"); one != "" {
		order.Wanted.Addresses = []string{one}
	}
	for _, address := range r.Params.ListStructures("PrivateIpAddresses") {
		order.Wanted.Addresses = append(order.Wanted.Addresses, address.String("PrivateIpAddress"))
	}
	for _, prefix := range r.Params.ListStructures("Ipv4Prefix") {
		order.Wanted.Prefixes = append(order.Wanted.Prefixes, prefix.String("Ipv4Prefix"))
	}
	made, err := s.account.CreateInterface(order)
	if err != nil {
		return nil, convertError(err)
	}
	return createdInterface{toNetworkInterface(made, s.account.Time()), order.Token}, nil
}

func (s *Services) describeNetworkInterfaces(r *wire.Request) (any, error) {
	if err := checkDryRun(r); err != nil {
		return nil, err
	}
	ids, size := r.Params.ListStrings("NetworkInterfaceId"), largestPage
	if r.Params.Has("MaxResults") {
		size = r.Params.Int("MaxResults")
		if len(ids) > 0 || size < smallestPage || size > largestPage {
			return nil, &wire.Error{Code: "InvalidParameterCombination", Message: fmt.Sprintf(
				"MaxResults is a number from %d to %d, without network interface IDs", smallestPage, largestPage)}
		}
	}
	all, err := s.account.ListInterfaces(r.Params.ReadFilters(), ids...)
	if err != nil {
		return nil, convertError(err)
	}
	from := 0
	if after := r.Params.String("NextToken"); after != "" {
		if from, err = strconv.Atoi(after); err != nil || from > len(all) {
			return nil, &wire.Error{Code: "InvalidNextToken", Message: "The simulated account did not issue this token"}
		}
	}
	var out describedInterfaces
	now, to := s.account.Time(), min(from+size, len(all))
	for _, n := range all[from:to] {
		out.Interfaces = append(out.Interfaces, toNetworkInterface(n, now))
	}
	if to < len(all) {
		out.Next = strconv.Itoa(to)
	}
	return out, nil
}

type attached struct {
	ID string `xml:"attachmentId"`
}

func (s *Services) attachNetworkInterface(r *wire.Request) (any, error) {
	if err := checkDryRun(r); err != nil {
		return nil, err
	}
	id, err := s.account.AttachInterface(r.Params.String("NetworkInterfaceId"), r.Params.String("InstanceId"), r.Params.Int("DeviceIndex"))
	if err != nil {
		return nil, convertError(err)
	}
	return attached{id}, nil
}

// runCall runs a call whose answer has no content.
func runCall(r *wire.Request, do func() error) (any, error) {
	if err := checkDryRun(r); err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, convertError(err)
	}
	return done{true}, nil
}

func (s *Services) detachNetworkInterface(r *wire.Request) (any, error) {
	return runCall(r, func() error { return s.account.DetachInterface(r.Params.String("AttachmentId")) })
}

func (s *Services) deleteNetworkInterface(r *wire.Request) (any, error) {
	return runCall(r, func() error { return s.account.DeleteInterface(r.Params.String("NetworkInterfaceId")) })
}

func (s *Services) modifyNetworkInterfaceAttribute(r *wire.Request) (any, error) {
	return runCall(r, func() error {
		change, given := account.InterfaceChange{}, 0
		if r.Params.Has("Attachment") {
			given++
			change.Attachment = r.Params.GetStructure("Attachment").String("AttachmentId")
			change.DeleteOnTermination = r.Params.GetStructure("Attachment").Bool("DeleteOnTermination")
		}
		if r.Params.Has("SourceDestCheck") {
			given++
			check := r.Params.GetStructure("SourceDestCheck").Bool("Value")
			change.SourceDestCheck = &check
		}
		if r.Params.Has("Description") {
			given++
			text := r.Params.GetStructure("Description").String("Value")
			change.Description = &text
		}
		if change.Groups = r.Params.ListStrings("SecurityGroupId"); len(change.Groups) > 0 {
			given++
		}
		if given != 1 {
			return &account.Invalid{Code: "InvalidParameterCombination", Message: "Exactly one attribute has to be given"}
		}
		return s.account.ModifyInterface(r.Params.String("NetworkInterfaceId"), change)
	})
}

type assigned struct {
	ID        string            `xml:"networkInterfaceId"`
	Addresses []assignedAddress `xml:"assignedPrivateIpAddressesSet>item"`
	Prefixes  []delegatedPrefix `xml:"assignedIpv4PrefixSet>item"`
}

type assignedAddress struct {
	IP string `xml:"privateIpAddress"`
}

func (s *Services) assignPrivateIPAddresses(r *wire.Request) (any, error) {
	id := r.Params.String("NetworkInterfaceId")
	addresses, prefixes, err := s.account.AssignAddresses(id, account.Wanted{
		Addresses: r.Params.ListStrings("PrivateIpAddress"), Count: r.Params.Int("SecondaryPrivateIpAddressCount"),
		Prefixes: r.Params.ListStrings("Ipv4Prefix"), PrefixCount: r.Params.Int("Ipv4PrefixCount"),
	}, r.Params.Bool("AllowReassignment"))
	if err != nil {
		return nil, convertError(err)
	}
	out := assigned{ID: id}
	for _, address := range addresses {
		out.Addresses = append(out.Addresses, assignedAddress{address})
	}
	for _, prefix := range prefixes {
		out.Prefixes = append(out.Prefixes, delegatedPrefix{prefix})
	}
	return out, nil
}

func (s *Services) unassignPrivateIPAddresses(r *wire.Request) (any, error) {
	return runCall(r, func() error {
		return s.account.UnassignAddresses(r.Params.String("NetworkInterfaceId"), r.Params.ListStrings("PrivateIpAddress"), r.Params.ListStrings("Ipv4Prefix"))
	})
}
