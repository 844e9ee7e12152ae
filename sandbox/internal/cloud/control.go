package cloud

import (
	"encoding/json"
	"net/http"
	"strings"

	"croft.dev/croft/sandbox/internal/cloud/account"
)

// own is where the sandbox's own commands ask.
const own = "/sandbox/"

func isOwn(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, own) }

// Holding is what an account holds that a cluster made.
type Holding struct {
	Instances []account.Instance        `json:"instances"`
	Templates []account.LaunchTemplate  `json:"launchTemplates"`
	Profiles  []account.InstanceProfile `json:"instanceProfiles"`
	Subnets   []account.Subnet          `json:"subnets"`
	Groups    []account.SecurityGroup   `json:"securityGroups"`
	// Interfaces are all network interfaces, also those that instances started with.
	Interfaces []account.Interface `json:"interfaces"`
}

// Left is what a cluster has made and not removed.
func (h *Holding) Left() (out []string) {
	for _, i := range h.Instances {
		if i.State == account.Pending || i.State == account.Running {
			out = append(out, "instance/"+i.ID)
		}
	}
	for _, n := range h.Interfaces {
		if n.Attachment == nil || n.Attachment.DeviceIndex > 0 {
			out = append(out, "network-interface/"+n.ID) // the others are their instances'
		}
	}
	for _, t := range h.Templates {
		out = append(out, "launch-template/"+t.Name)
	}
	for _, p := range h.Profiles {
		if p.Path != "/" {
			out = append(out, "instance-profile"+p.Path+p.Name) // those at the root are people's own
		}
	}
	return out
}

// control answers the sandbox's own commands.
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	var answer any
	var err error
	switch what := strings.TrimPrefix(r.URL.Path, own); r.Method + " " + what {
	case "GET healthz":
		answer = "ok"
	case "GET calls":
		answer = s.Calls()
	case "GET holding":
		answer = s.holding()
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
	// A client that does not listen any more has its own error.
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *Server) holding() Holding {
	return Holding{
		Instances: s.account.Instances(nil), Templates: s.account.Templates(nil), Profiles: s.account.Profiles("/"),
		Subnets: s.account.Subnets(nil), Groups: s.account.SecurityGroups(nil), Interfaces: s.account.AllInterfaces(),
	}
}
