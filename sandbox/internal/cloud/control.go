package cloud

import (
	"encoding/json"
	"net/http"
	"strings"

	"croft.dev/croft/sandbox/internal/cloud/account"
)

// own is the path of the requests of the sandbox's own commands.
const own = "/sandbox/"

func isOwn(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, own) }

// Holding is the resources in an account.
type Holding struct {
	Instances []account.Instance        `json:"instances"`
	Templates []account.LaunchTemplate  `json:"launchTemplates"`
	Profiles  []account.InstanceProfile `json:"instanceProfiles"`
	Subnets   []account.Subnet          `json:"subnets"`
	Groups    []account.SecurityGroup   `json:"securityGroups"`
	// Interfaces are all network interfaces, including the primary interfaces of instances.
	Interfaces []account.Interface `json:"interfaces"`
}

// ListLeft returns the resources that a cluster created and did not delete.
func (h *Holding) ListLeft() (out []string) {
	for _, i := range h.Instances {
		if i.State == account.Pending || i.State == account.Running {
			out = append(out, "instance/"+i.ID)
		}
	}
	for _, n := range h.Interfaces {
		if n.Attachment == nil || n.Attachment.DeviceIndex > 0 {
			out = append(out, "network-interface/"+n.ID) // AWS deletes the primary ones with their instances
		}
	}
	for _, t := range h.Templates {
		out = append(out, "launch-template/"+t.Name)
	}
	for _, p := range h.Profiles {
		if p.Path != "/" {
			out = append(out, "instance-profile"+p.Path+p.Name) // users created the ones at the root
		}
	}
	return out
}

// serveOwn answers the sandbox's own commands.
func (s *Server) serveOwn(w http.ResponseWriter, r *http.Request) {
	var answer any
	var err error
	switch what := strings.TrimPrefix(r.URL.Path, own); r.Method + " " + what {
	case "GET healthz":
		answer = "ok"
	case "GET calls":
		answer = s.ListCalls()
	case "GET holding":
		answer = s.buildHolding()
	case "GET faults":
		answer = s.account.ListFaults()
	case "POST faults":
		var f account.Fault
		if err = json.NewDecoder(r.Body).Decode(&f); err == nil {
			answer, err = s.account.AddFault(f)
		}
	case "DELETE faults":
		answer, err = s.account.ClearFaults(r.URL.Query()["id"]...)
	case "POST reservations":
		var c account.CapacityReservation
		if err = json.NewDecoder(r.Body).Decode(&c); err == nil {
			answer, err = s.account.Reserve(c)
		}
	case "POST subnets":
		var n account.Subnet
		if err = json.NewDecoder(r.Body).Decode(&n); err == nil {
			answer, err = s.account.AddSubnet(n.Zone, n.CIDR, n.Tags)
		}
	case "POST interrupt":
		err = s.account.Interrupt(r.URL.Query().Get("instance"))
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// A client that has disconnected gets an error of its own.
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *Server) buildHolding() Holding {
	return Holding{
		Instances: s.account.ListInstances(nil), Templates: s.account.ListTemplates(nil), Profiles: s.account.ListProfiles("/"),
		Subnets: s.account.ListSubnets(nil), Groups: s.account.ListSecurityGroups(nil), Interfaces: s.account.ListAllInterfaces(),
	}
}
