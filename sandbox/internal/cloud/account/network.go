package account

import "strings"

// vpc is the account's only network.
const vpc = "vpc-0c0ffee0c0ffee0c0"

// Subnet is a subnet of the VPC.
type Subnet struct {
	ID, Zone, ZoneID, VPC, CIDR string
	// Free is the number of free addresses.
	Free int
	// Next is the position in the subnet at which the search for a free address begins.
	Next int
	Tags Tags
}

// SecurityGroup is a security group. It filters no packets.
type SecurityGroup struct {
	ID, Name, Description, VPC string
	Tags                       Tags
}

// formatZoneID returns the zone's ID, which is the same in all accounts: usw2-az1 for us-west-2a.
func (a *Account) formatZoneID(zone string) string {
	parts := strings.Split(a.Region, "-")
	short := parts[0] + parts[1][:1] + parts[len(parts)-1]
	letter := int(zone[len(zone)-1]-'a') + 1
	return short + "-az" + string(rune('0'+letter))
}

// ListSubnets returns the subnets that match.
func (a *Account) ListSubnets(f Filters) []Subnet {
	return readState(a, func(s *state) (out []Subnet) {
		for _, subnet := range s.Subnets {
			attributes := map[string][]string{
				"subnet-id": {subnet.ID}, "vpc-id": {subnet.VPC},
				"availability-zone": {subnet.Zone}, "availability-zone-id": {subnet.ZoneID},
			}
			if f.matches(attributes, subnet.Tags) {
				shown := *subnet
				if fault := s.findFault(SubnetFull, Case{Subnet: subnet.ID, Zone: subnet.Zone}); fault != nil {
					shown.Free = 0
				}
				out = append(out, shown)
			}
		}
		return out
	})
}

// ListSecurityGroups returns the security groups that match.
func (a *Account) ListSecurityGroups(f Filters) []SecurityGroup {
	return readState(a, func(s *state) (out []SecurityGroup) {
		for _, group := range s.SecurityGroups {
			if f.matches(map[string][]string{"group-id": {group.ID}, "group-name": {group.Name}, "vpc-id": {group.VPC}}, group.Tags) {
				out = append(out, *group)
			}
		}
		return out
	})
}
