package service

import (
	"fmt"
	"net/http"

	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/wire"
)

type createdFleet struct {
	ID        string          `xml:"fleetId"`
	Errors    []fleetError    `xml:"errorSet>item"`
	Instances []fleetInstance `xml:"fleetInstanceSet>item"`
}

type fleetError struct {
	Offer     fleetOffer `xml:"launchTemplateAndOverrides"`
	Lifecycle string     `xml:"lifecycle"`
	Code      string     `xml:"errorCode"`
	Message   string     `xml:"errorMessage"`
}

type fleetInstance struct {
	Offer     fleetOffer `xml:"launchTemplateAndOverrides"`
	Lifecycle string     `xml:"lifecycle"`
	IDs       []string   `xml:"instanceIds>item"`
	Type      string     `xml:"instanceType"`
}

type fleetOffer struct {
	Template string `xml:"launchTemplateSpecification>launchTemplateName"`
	Version  string `xml:"launchTemplateSpecification>version"`
	Type     string `xml:"overrides>instanceType"`
	Subnet   string `xml:"overrides>subnetId"`
	Zone     string `xml:"overrides>availabilityZone"`
	Image    string `xml:"overrides>imageId,omitempty"`
}

func toFleetOffer(o account.Offer) fleetOffer {
	return fleetOffer{o.Template, "$Latest", o.Type, o.Subnet, o.Zone, o.Image}
}

func (s *Services) createFleet(r *wire.Request) (any, error) {
	target := r.Params.GetStructure("TargetCapacitySpecification")
	order := account.Order{
		Capacity: target.String("DefaultTargetCapacityType"),
		Count:    target.Int("TotalTargetCapacity"),
		Tags:     readResourceTags(r.Params, "instance"),
	}
	for _, config := range r.Params.ListStructures("LaunchTemplateConfigs") {
		name := config.GetStructure("LaunchTemplateSpecification").String("LaunchTemplateName")
		if s.account.FindTemplate(name) == nil {
			return nil, newNoTemplateError()
		}
		for _, o := range config.ListStructures("Overrides") {
			order.Offers = append(order.Offers, account.Offer{
				Template: name, Type: o.String("InstanceType"), Subnet: o.String("SubnetId"),
				Zone: o.String("AvailabilityZone"), Image: o.String("ImageId"),
			})
		}
	}
	if err := checkDryRun(r); err != nil {
		return nil, err
	}
	started, refused, err := s.account.Launch(order)
	if err != nil {
		return nil, err
	}
	out := createdFleet{ID: "fleet-" + r.ID}
	for _, no := range refused {
		out.Errors = append(out.Errors, fleetError{toFleetOffer(no.Offer), order.Capacity, no.Code, no.Message})
	}
	for _, yes := range started {
		out.Instances = append(out.Instances, fleetInstance{toFleetOffer(yes.Offer), order.Capacity, yes.IDs, yes.Type})
	}
	return out, nil
}

// runInstances supports only the dry run, by which Karpenter checks whether it may start
// instances.
func (s *Services) runInstances(r *wire.Request) (any, error) {
	if s.account.CountFault(account.PassRoleDenied, account.Case{Action: "ec2:RunInstances"}) != nil {
		return nil, &wire.Error{Code: "UnauthorizedOperation", Status: http.StatusForbidden, Message: s.account.DescribeDenial(account.Denied{
			Action: "iam:PassRole", Resource: s.account.ARN("iam", "role/KarpenterNodeRole-"+s.account.Cluster),
		})}
	}
	if invalid := s.account.CheckTemplate(r.Params.GetStructure("LaunchTemplate").String("LaunchTemplateName")); invalid != nil {
		return nil, &wire.Error{Code: invalid.Code, Message: invalid.Message}
	}
	if err := checkDryRun(r); err != nil {
		return nil, err
	}
	return nil, &wire.Error{Code: "UnsupportedOperation", Message: "the simulated account starts instances only by CreateFleet"}
}

type describedInstances struct {
	Reservations []instanceReservation `xml:"reservationSet>item"`
}

type instanceReservation struct {
	ID        string     `xml:"reservationId"`
	Owner     string     `xml:"ownerId"`
	Instances []instance `xml:"instancesSet>item"`
}

type instance struct {
	ID                string        `xml:"instanceId"`
	Image             string        `xml:"imageId"`
	State             instanceState `xml:"instanceState"`
	DNSName           string        `xml:"privateDnsName"`
	IP                string        `xml:"privateIpAddress"`
	Reason            string        `xml:"stateReason>message,omitempty"`
	Type              string        `xml:"instanceType"`
	Launched          string        `xml:"launchTime"`
	Zone              string        `xml:"placement>availabilityZone"`
	ZoneID            string        `xml:"placement>availabilityZoneId"`
	Tenancy           string        `xml:"placement>tenancy"`
	Subnet            string        `xml:"subnetId"`
	VPC               string        `xml:"vpcId"`
	Arch              string        `xml:"architecture"`
	Lifecycle         string        `xml:"instanceLifecycle,omitempty"`
	SpotRequest       string        `xml:"spotInstanceRequestId,omitempty"`
	Reservation       string        `xml:"capacityReservationId,omitempty"`
	ReservationTarget string        `xml:"capacityReservationSpecification>capacityReservationPreference,omitempty"`
	Groups            []groupID     `xml:"groupSet>item"`
	Tags              []tagItem     `xml:"tagSet>item"`
}

type instanceState struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

type groupID struct {
	ID string `xml:"groupId"`
}

func (s *Services) toInstance(i account.Instance) instance {
	out := instance{
		ID: i.ID, Image: i.Data.ImageID, State: toInstanceState(i), DNSName: i.DNSName(s.account.Region), IP: i.IP, Reason: i.Reason,
		Type: i.Type, Launched: i.Launched.UTC().Format(timestamp), Zone: i.Zone, ZoneID: i.ZoneID, Tenancy: "default",
		Subnet: i.Subnet, VPC: i.VPC, Arch: i.Arch, SpotRequest: i.SpotRequest, Tags: toTagItems(i.Tags),
	}
	if i.Capacity == account.Spot {
		out.Lifecycle = account.Spot
	}
	if i.Reservation != "" {
		out.Reservation, out.ReservationTarget = i.Reservation, "capacity-reservations-only"
	}
	for _, group := range i.Data.SecurityGroups {
		out.Groups = append(out.Groups, groupID{group})
	}
	return out
}

func toInstanceState(i account.Instance) instanceState {
	return instanceState{i.State.Code(), string(i.State)}
}

func (s *Services) describeInstances(r *wire.Request) (any, error) {
	ids := r.Params.ListStrings("InstanceId")
	for _, id := range ids {
		if s.account.FindInstance(id) == nil {
			return nil, newNoInstanceError(id)
		}
	}
	var out describedInstances
	for _, i := range s.account.ListInstances(r.Params.ReadFilters(), ids...) {
		out.Reservations = append(out.Reservations, instanceReservation{"r-" + i.ID[2:], account.ID, []instance{s.toInstance(i)}})
	}
	return out, nil
}

// describeInstanceStatus returns no impaired instance.
func (*Services) describeInstanceStatus(*wire.Request) (any, error) { return nothing{}, nil }

type terminated struct {
	Instances []terminatedInstance `xml:"instancesSet>item"`
}

type terminatedInstance struct {
	ID       string        `xml:"instanceId"`
	Current  instanceState `xml:"currentState"`
	Previous instanceState `xml:"previousState"`
}

func (s *Services) terminateInstances(r *wire.Request) (any, error) {
	ids := r.Params.ListStrings("InstanceId")
	var out terminated
	for _, id := range ids {
		i := s.account.FindInstance(id)
		if i == nil {
			return nil, newNoInstanceError(id)
		}
		out.Instances = append(out.Instances, terminatedInstance{ID: id, Previous: toInstanceState(*i)})
	}
	if err := s.account.Terminate(ids...); err != nil {
		return nil, err
	}
	for n, id := range ids {
		out.Instances[n].Current = toInstanceState(*s.account.FindInstance(id))
	}
	return out, nil
}

func (s *Services) createTags(r *wire.Request) (any, error) {
	for _, id := range r.Params.ListStrings("ResourceId") {
		found, err := s.account.AddTags(id, readTags(r.Params, "Tag"))
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, newNoInstanceError(id)
		}
	}
	return done{true}, nil
}

func newNoInstanceError(id string) error {
	return &wire.Error{Code: "InvalidInstanceID.NotFound", Message: fmt.Sprintf("The instance ID '%s' does not exist", id)}
}
