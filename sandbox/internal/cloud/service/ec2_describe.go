package service

import (
	"strconv"

	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/wire"
)

// timestamp is EC2's format of times.
const timestamp = "2006-01-02T15:04:05.000Z"

type instanceTypes struct {
	Types []instanceType `xml:"instanceTypeSet>item"`
}

type instanceType struct {
	Name            string      `xml:"instanceType"`
	Current         bool        `xml:"currentGeneration"`
	UsageClasses    []string    `xml:"supportedUsageClasses>item"`
	Virtualizations []string    `xml:"supportedVirtualizationTypes>item"`
	BareMetal       bool        `xml:"bareMetal"`
	Hypervisor      string      `xml:"hypervisor"`
	Burstable       bool        `xml:"burstablePerformanceSupported"`
	Processor       processor   `xml:"processorInfo"`
	VCPUs           int         `xml:"vCpuInfo>defaultVCpus"`
	MemoryMiB       int64       `xml:"memoryInfo>sizeInMiB"`
	Network         networkInfo `xml:"networkInfo"`
	EBSOptimized    string      `xml:"ebsInfo>ebsOptimizedSupport"`
	EBSEncryption   string      `xml:"ebsInfo>encryptionSupport"`
}

type processor struct {
	Architectures []string `xml:"supportedArchitectures>item"`
	Clock         float64  `xml:"sustainedClockSpeedInGhz"`
	Manufacturer  string   `xml:"manufacturer"`
}

type networkInfo struct {
	Interfaces      int           `xml:"maximumNetworkInterfaces"`
	Cards           []networkCard `xml:"networkCards>item"`
	DefaultCard     int           `xml:"defaultNetworkCardIndex"`
	Addresses       int           `xml:"ipv4AddressesPerInterface"`
	IPv6            bool          `xml:"ipv6Supported"`
	EFA             bool          `xml:"efaSupported"`
	EncryptsTransit bool          `xml:"encryptionInTransitSupported"`
}

type networkCard struct {
	Index      int `xml:"networkCardIndex"`
	Interfaces int `xml:"maximumNetworkInterfaces"`
}

func (s *Services) describeInstanceTypes(r *wire.Request) (any, error) {
	if err := checkDryRun(r); err != nil {
		return nil, err
	}
	var out instanceTypes
	for _, t := range account.Types() {
		out.Types = append(out.Types, instanceType{
			Name: t.Name, Current: true, UsageClasses: []string{account.OnDemand, account.Spot},
			Virtualizations: []string{"hvm"}, Hypervisor: "nitro", Burstable: t.Burstable,
			Processor: processor{[]string{t.Arch}, 3.1, t.Manufacturer},
			VCPUs:     t.VCPUs, MemoryMiB: t.MemoryMiB,
			Network: networkInfo{
				Interfaces: t.Interfaces, Addresses: t.Addresses, IPv6: true,
				Cards: []networkCard{{0, t.Interfaces}},
			},
			EBSOptimized: "default", EBSEncryption: "supported",
		})
	}
	return out, nil
}

type offerings struct {
	Offerings []offering `xml:"instanceTypeOfferingSet>item"`
}

type offering struct {
	Type         string `xml:"instanceType"`
	LocationType string `xml:"locationType"`
	Location     string `xml:"location"`
}

func (s *Services) describeInstanceTypeOfferings(*wire.Request) (any, error) {
	var out offerings
	for _, t := range account.Types() {
		for _, zone := range s.account.Zones {
			out.Offerings = append(out.Offerings, offering{t.Name, "availability-zone", zone})
		}
	}
	return out, nil
}

type spotPrices struct {
	Prices []spotPrice `xml:"spotPriceHistorySet>item"`
}

type spotPrice struct {
	Type    string `xml:"instanceType"`
	Product string `xml:"productDescription"`
	Price   string `xml:"spotPrice"`
	At      string `xml:"timestamp"`
	Zone    string `xml:"availabilityZone"`
}

func (s *Services) describeSpotPriceHistory(*wire.Request) (any, error) {
	var out spotPrices
	now := s.account.Time()
	for _, t := range account.Types() {
		price := strconv.FormatFloat(s.account.FindPrice(&t, account.Spot, now), 'f', 6, 64)
		for _, zone := range s.account.Zones {
			out.Prices = append(out.Prices, spotPrice{t.Name, "Linux/UNIX", price, now.UTC().Format(timestamp), zone})
		}
	}
	return out, nil
}

type zones struct {
	Zones []zone `xml:"availabilityZoneInfo>item"`
}

type zone struct {
	Name   string `xml:"zoneName"`
	ID     string `xml:"zoneId"`
	State  string `xml:"zoneState"`
	Region string `xml:"regionName"`
	Type   string `xml:"zoneType"`
}

func (s *Services) describeAvailabilityZones(*wire.Request) (any, error) {
	var out zones
	listed := map[string]bool{}
	for _, subnet := range s.account.ListSubnets(nil) {
		if listed[subnet.Zone] {
			continue
		}
		listed[subnet.Zone] = true
		out.Zones = append(out.Zones, zone{subnet.Zone, subnet.ZoneID, "available", s.account.Region, "availability-zone"})
	}
	return out, nil
}

type subnets struct {
	Subnets []subnet `xml:"subnetSet>item"`
}

type subnet struct {
	ID     string    `xml:"subnetId"`
	State  string    `xml:"state"`
	VPC    string    `xml:"vpcId"`
	CIDR   string    `xml:"cidrBlock"`
	Free   int       `xml:"availableIpAddressCount"`
	Zone   string    `xml:"availabilityZone"`
	ZoneID string    `xml:"availabilityZoneId"`
	Owner  string    `xml:"ownerId"`
	Tags   []tagItem `xml:"tagSet>item"`
}

func (s *Services) describeSubnets(r *wire.Request) (any, error) {
	var out subnets
	for _, n := range s.account.ListSubnets(r.Params.ReadFilters()) {
		out.Subnets = append(out.Subnets, subnet{n.ID, "available", n.VPC, n.CIDR, n.Free, n.Zone, n.ZoneID, account.ID, toTagItems(n.Tags)})
	}
	return out, nil
}

type securityGroups struct {
	Groups []securityGroup `xml:"securityGroupInfo>item"`
}

type securityGroup struct {
	Owner       string    `xml:"ownerId"`
	ID          string    `xml:"groupId"`
	Name        string    `xml:"groupName"`
	Description string    `xml:"groupDescription"`
	VPC         string    `xml:"vpcId"`
	Tags        []tagItem `xml:"tagSet>item"`
}

func (s *Services) describeSecurityGroups(r *wire.Request) (any, error) {
	var out securityGroups
	for _, g := range s.account.ListSecurityGroups(r.Params.ReadFilters()) {
		out.Groups = append(out.Groups, securityGroup{account.ID, g.ID, g.Name, g.Description, g.VPC, toTagItems(g.Tags)})
	}
	return out, nil
}

type images struct {
	Images []image `xml:"imagesSet>item"`
}

type image struct {
	ID      string    `xml:"imageId"`
	Name    string    `xml:"name"`
	State   string    `xml:"imageState"`
	Owner   string    `xml:"imageOwnerAlias"`
	Arch    string    `xml:"architecture"`
	Created string    `xml:"creationDate"`
	Tags    []tagItem `xml:"tagSet>item"`
}

func (s *Services) describeImages(r *wire.Request) (any, error) {
	var out images
	for _, i := range s.account.ListImages(r.Params.ReadFilters(), r.Params.ListStrings("ImageId"), r.Params.ListStrings("Owner")) {
		out.Images = append(out.Images, image{i.ID, i.Name, "available", i.Owner, i.Arch, i.Created, toTagItems(i.Tags)})
	}
	return out, nil
}

type reservations struct {
	Reservations []reservation `xml:"capacityReservationSet>item"`
}

type reservation struct {
	ID       string    `xml:"capacityReservationId"`
	Owner    string    `xml:"ownerId"`
	Type     string    `xml:"instanceType"`
	Zone     string    `xml:"availabilityZone"`
	Total    int       `xml:"totalInstanceCount"`
	Free     int       `xml:"availableInstanceCount"`
	State    string    `xml:"state"`
	Criteria string    `xml:"instanceMatchCriteria"`
	Kind     string    `xml:"reservationType"`
	Tags     []tagItem `xml:"tagSet>item"`
}

func (s *Services) describeCapacityReservations(r *wire.Request) (any, error) {
	var out reservations
	for _, c := range s.account.ListReservations(r.Params.ReadFilters(), r.Params.ListStrings("CapacityReservationId")...) {
		out.Reservations = append(out.Reservations, reservation{
			c.ID, account.ID, c.Type, c.Zone, c.Total, c.Free, "active", "targeted", "default", toTagItems(c.Tags),
		})
	}
	return out, nil
}

// describePlacementGroups returns no placement group.
func (*Services) describePlacementGroups(*wire.Request) (any, error) { return nothing{}, nil }
