package boot

import (
	"strings"
	"time"
)

// Line is an entry of a log.
type Line struct {
	Time time.Time
	// Source is the program that wrote it: kernel, systemd, kubelet. It is empty in logs
	// of one program.
	Source string
	Text   string
}

// eventOf is the event that a line tells of; "" if it is none. Only lines of the program
// itself count, so that the text of a line that quotes another is no event.
func eventOf(l Line) Event {
	if e := ofCloudInit(l.Text); e != "" {
		return e
	}
	switch l.Source {
	case "kernel":
		if strings.HasPrefix(l.Text, "Linux version ") {
			return VMInitialized
		}
	case "systemd":
		return ofUnit(l.Text)
	case "kubelet":
		switch {
		case strings.Contains(l.Text, "Started kubelet"):
			return KubeletInitialized
		case strings.Contains(l.Text, "Successfully registered node"):
			return KubeletRegistered
		}
	case "containerd":
		return ofContainer(l.Text)
	case "":
		if strings.Contains(l.Text, "Successfully copied CNI plugin binary and config file") {
			return VPCCNIInitialized
		}
	}
	return ""
}

// ofCloudInit: "Cloud-init v. 22.2.2 running 'modules:final' at …". Its source differs: it
// is cloud-init in journals, and a file of its code in its own log.
func ofCloudInit(text string) Event {
	rest, is := strings.CutPrefix(text, "Cloud-init v. ")
	if !is {
		return ""
	}
	_, does, _ := strings.Cut(rest, " ")
	for begin, event := range map[string]Event{
		"running 'init' ": CloudInitInitialStart, "running 'modules:config' ": CloudInitConfigStart,
		"running 'modules:final' ": CloudInitFinalStart, "finished ": CloudInitFinalFinish,
	} {
		if strings.HasPrefix(does, begin) {
			return event
		}
	}
	return ""
}

// ofUnit is for lines of systemd. The description of a unit has changed over its versions
// ("Network (Pre)" is "Preparation for Network" since 247), and some distributions write
// the unit's name before it.
func ofUnit(text string) Event {
	for _, verb := range []string{"Starting ", "Started ", "Finished ", "Reached target "} {
		unit, is := strings.CutPrefix(text, verb)
		if !is {
			continue
		}
		unit = strings.TrimRight(unit, ".")
		if name, description, both := strings.Cut(unit, " - "); both && !strings.Contains(name, " ") {
			unit = description
		}
		if strings.HasPrefix(unit, "bootstrap container ") {
			unit = "Bootstrap Commands"
		}
		return units[verb+unit]
	}
	return ""
}

// units are events by what systemd does with a unit. A kubelet that has nothing to prepare
// starts without a line that says so.
var units = map[string]Event{
	"Reached target Network (Pre)":                NetworkStart,
	"Reached target Preparation for Network":      NetworkStart,
	"Reached target Network":                      NetworkReady,
	"Starting Bootstrap Commands":                 BootstrapStart,
	"Finished Bootstrap Commands":                 BootstrapFinish,
	"Starting EKS Nodeadm Config":                 NodeadmConfigStart,
	"Finished EKS Nodeadm Config":                 NodeadmConfigFinish,
	"Starting EKS Nodeadm Run":                    NodeadmRunStart,
	"Finished EKS Nodeadm Run":                    NodeadmRunFinish,
	"Starting containerd container runtime":       ContainerdStart,
	"Started containerd container runtime":        ContainerdInitialized,
	"Starting Kubernetes Kubelet":                 KubeletStart,
	"Started Kubernetes Kubelet":                  KubeletStart,
	"Starting Kubelet":                            KubeletStart,
	"Started Kubelet":                             KubeletStart,
	"Starting kubelet: The Kubernetes Node Agent": KubeletStart,
	"Started kubelet: The Kubernetes Node Agent":  KubeletStart,
}

// ofContainer: containerd has created a container of the node's own pods. Their names are
// fixed; a tenant's container may have the same, but comes later. The name is written as
// Name:kube-proxy, or, where the API of container runtimes is made by the newer generator
// of protocol buffers, as name:"kube-proxy".
func ofContainer(text string) Event {
	if !strings.Contains(text, "CreateContainer within sandbox ") || !strings.Contains(text, " returns container id ") {
		return ""
	}
	_, metadata, _ := strings.Cut(text, " for ")
	at := max(strings.Index(metadata, "Name:"), strings.Index(metadata, "name:"))
	if at < 0 {
		return ""
	}
	name := strings.TrimLeft(metadata[at+len("name:"):], `\"`)
	if end := strings.IndexAny(name, `,\" `); end >= 0 {
		name = name[:end]
	}
	return map[string]Event{
		"kube-proxy": KubeProxyStart, "aws-vpc-cni-init": VPCCNIInitStart, "aws-node": AWSNodeStart,
	}[name]
}
