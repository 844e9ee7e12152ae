package account

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Offer is one of a fleet's alternatives: a type in a subnet, with a launch template.
type Offer struct {
	Template, Type, Subnet, Zone, Image string
}

// findOfferPrice returns the present price of an hour.
func (a *Account) findOfferPrice(o Offer, capacity string) float64 {
	if t := FindType(o.Type); t != nil {
		return a.FindPrice(t, capacity, a.now())
	}
	return math.Inf(1)
}

// Order is the request of a fleet.
type Order struct {
	Offers   []Offer
	Capacity string
	Count    int
	Tags     Tags
}

// Refusal is the reason why no instance could be started with an offer.
type Refusal struct {
	Offer
	Code, Message string
}

// Launched are the instances that were started with one offer.
type Launched struct {
	Offer
	IDs []string
}

// Launch starts instances with the cheapest offers that are available.
func (a *Account) Launch(order Order) (started []Launched, refused []Refusal, err error) {
	offers := slices.Clone(order.Offers)
	slices.SortStableFunc(offers, func(x, y Offer) int {
		return cmp.Compare(a.findOfferPrice(x, order.Capacity), a.findOfferPrice(y, order.Capacity))
	})
	err = a.changeState(func(s *state) error {
		left := order.Count
		for _, offer := range offers {
			if left == 0 {
				return nil
			}
			var ids []string
			for left > 0 {
				refusal := a.checkOffer(s, offer, order.Capacity)
				if refusal != nil {
					refused = append(refused, *refusal)
					break
				}
				ids = append(ids, a.startInstance(s, offer, order))
				left--
			}
			if len(ids) > 0 {
				started = append(started, Launched{Offer: offer, IDs: ids})
			}
		}
		return nil
	})
	return started, refused, err
}

// checkOffer returns the reason why no instance can be started with an offer; nil if one can.
func (a *Account) checkOffer(s *state, o Offer, capacity string) *Refusal {
	no := func(code, message string) *Refusal { return &Refusal{Offer: o, Code: code, Message: message} }
	now := Case{Action: "ec2:CreateFleet", Type: o.Type, Zone: o.Zone, Capacity: capacity, Subnet: o.Subnet}
	template := s.findTemplate(o.Template)
	if template == nil {
		return no("InvalidLaunchTemplateName.NotFoundException",
			"The specified launch template, with template name "+o.Template+", does not exist.")
	}
	if err := s.checkProfile(template.Data.Profile); err != nil {
		return no(err.Code, err.Message)
	}
	if s.countFault(PassRoleDenied, now) != nil {
		role := a.ARN("iam", "role/"+s.Profiles[template.Data.Profile].Role)
		return no("UnauthorizedOperation", a.describeDenial(Denied{Action: "iam:PassRole", Resource: role}))
	}
	if capacity == Spot && s.countFault(SpotRoleMissing, now) != nil {
		return no("AuthFailure.ServiceLinkedRoleCreationNotPermitted",
			"The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.")
	}
	if capacity == Spot && s.countFault(SpotQuota, now) != nil {
		return no("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
	}
	if f := s.findFault(VCPUQuota, now); f != nil && s.countVCPUs()+findVCPUs(o.Type) > f.Limit {
		return no("VcpuLimitExceeded", fmt.Sprintf("You have requested more vCPU capacity than your current vCPU limit of %d "+
			"allows for the instance bucket that the specified instance type belongs to. "+
			"Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.", f.Limit))
	}
	if FindType(o.Type) == nil {
		return no("InvalidParameterValue", "The following supplied instance types do not exist: ["+o.Type+"]")
	}
	if subnet := s.findSubnet(o.Subnet); subnet == nil || subnet.Free == 0 || s.countFault(SubnetFull, now) != nil {
		return no("InsufficientFreeAddressesInSubnet",
			"There are not enough free addresses in subnet '"+o.Subnet+"' to satisfy the requested number of instances.")
	}
	if s.countFault(NoCapacity, now) != nil {
		return no("InsufficientInstanceCapacity", fmt.Sprintf("We currently do not have sufficient %s capacity in the "+
			"Availability Zone you requested (%s). Our system will be working on provisioning additional capacity.", o.Type, o.Zone))
	}
	return a.checkReservation(s, template, o)
}

// checkReservation returns a refusal if the template's capacity reservation has no free capacity.
func (a *Account) checkReservation(s *state, t *LaunchTemplate, o Offer) *Refusal {
	if t.Data.Reservation == "" {
		return nil
	}
	for _, r := range s.Reservations {
		if r.ID == t.Data.Reservation && r.Type == o.Type && r.Zone == o.Zone && s.countReserved(r.ID) < r.Total {
			return nil
		}
	}
	return &Refusal{Offer: o, Code: "ReservationCapacityExceeded",
		Message: "The requested reservation does not have sufficient compatible and available capacity for this request."}
}

// Invalid is the error of a call that EC2 refuses as invalid.
type Invalid struct{ Code, Message string }

func (i *Invalid) Error() string { return i.Code + ": " + i.Message }

// checkProfile returns EC2's error if an instance profile does not exist.
func (s *state) checkProfile(name string) *Invalid {
	if _, ok := s.Profiles[name]; ok {
		return nil
	}
	return &Invalid{"InvalidParameterValue",
		"Value (" + name + ") for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"}
}

// CheckTemplate returns EC2's error if no instance can be started with a launch template.
func (a *Account) CheckTemplate(nameOrID string) *Invalid {
	return readState(a, func(s *state) *Invalid {
		t := s.findTemplate(nameOrID)
		if t == nil {
			return &Invalid{"InvalidLaunchTemplateName.NotFoundException",
				"The specified launch template, with template name " + nameOrID + ", does not exist."}
		}
		return s.checkProfile(t.Data.Profile)
	})
}

func (a *Account) startInstance(s *state, o Offer, order Order) string {
	template, subnet := s.findTemplate(o.Template), s.findSubnet(o.Subnet)
	given, err := s.allotAddresses(subnet, Wanted{}, true)
	if err != nil {
		given.addresses = []string{""} // cannot happen: the subnet has a free address
	}
	n := a.addInterface(s, subnet, given, template.Data.SecurityGroups, template.Data.InterfaceTags)
	i := &Instance{
		ID: newID("i"), Type: o.Type, Arch: FindType(o.Type).Arch, Zone: subnet.Zone, ZoneID: subnet.ZoneID, Subnet: subnet.ID, VPC: vpc,
		IP: given.addresses[0], Capacity: order.Capacity, Template: template.ID,
		Data: template.Data, Tags: maps.Clone(order.Tags), State: Pending, Reservation: template.Data.Reservation,
	}
	if o.Image != "" {
		i.Data.ImageID = o.Image
	}
	if order.Capacity == Spot {
		i.SpotRequest = "sir-" + strings.ToLower(newID("")[1:9])
	}
	now := Case{Type: i.Type, Zone: i.Zone, Capacity: i.Capacity}
	i.Lost, i.Unready, i.Untainted = s.countFault(NeverRegisters, now) != nil, s.countFault(NeverReady, now) != nil, s.countFault(TaintLost, now) != nil
	a.planTimes(i)
	s.Instances[i.ID] = i
	n.Attachment = &Attachment{ID: newID("eni-attach"), Instance: i.ID, DeleteOnTermination: true, Began: i.Launched, AttachedAt: i.Launched}
	a.sendEvent(s, newStateEvent(a, i))
	return i.ID
}

func (s *state) countVCPUs() (sum int) {
	for _, i := range s.Instances {
		if i.State == Pending || i.State == Running {
			sum += findVCPUs(i.Type)
		}
	}
	return sum
}

func findVCPUs(name string) int {
	if t := FindType(name); t != nil {
		return t.VCPUs
	}
	return 0
}
