package agent

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Constants of linux/if_link.h and linux/ip.h.
const (
	inetConf     = 1 // IFLA_INET_CONF
	confRPFilter = 8 // IPV4_DEVCONF_RP_FILTER
)

// linux is a node with Linux.
type linux struct{ files }

// ThisMachine returns the node on which the program runs, in the program's network
// namespace.
func ThisMachine() (Machine, error) { return linux{files("/")}, nil }

// Links implements Machine.
func (linux) Links() ([]Link, error) {
	found, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	all := make([]Link, len(found))
	for i, l := range found {
		a := l.Attrs()
		all[i] = Link{
			Index: a.Index, Name: a.Name, AltNames: a.AltNames, MAC: a.HardwareAddr.String(), MTU: a.MTU,
			Up: a.Flags&net.FlagUp != 0, RPFilter: readRPFilter(a.Name),
		}
		if l.Type() != "device" {
			all[i].Kind = l.Type()
		}
	}
	return all, nil
}

// readRPFilter returns an interface's rp_filter, or -1 if it cannot be read.
func readRPFilter(link string) int {
	text, err := os.ReadFile("/proc/sys/net/ipv4/conf/" + link + "/rp_filter")
	if err != nil {
		return -1
	}
	value, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return -1
	}
	return value
}

// Do implements Machine.
func (m linux) Do(s Step) error {
	link := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: s.Index, Name: s.Link}}
	switch s.Action {
	case RemoveName:
		return netlink.LinkDelAltName(link, s.Value)
	case AddName:
		return netlink.LinkAddAltName(link, s.Value)
	case SetUp:
		return netlink.LinkSetUp(link)
	case SetMTU, SetFilter:
		number, err := strconv.Atoi(s.Value)
		if err != nil {
			return err
		}
		if s.Action == SetMTU {
			return netlink.LinkSetMTU(link, number)
		}
		return setFilter(s.Index, uint32(number)) //nolint:gosec // it is 2
	case WriteFile:
		return m.writeFile(s.Value, s.Content)
	default:
		return fmt.Errorf("unknown step: %s", s)
	}
}

// setFilter sets rp_filter by netlink. To use /proc/sys the agent would have to be
// privileged, because container runtimes mount it read-only.
func setFilter(index int, value uint32) error {
	request := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	message := nl.NewIfInfomsg(unix.AF_UNSPEC)
	message.Index = int32(index) //nolint:gosec // the kernel's own number
	request.AddData(message)
	family := nl.NewRtAttr(unix.IFLA_AF_SPEC, nil)
	family.AddRtAttr(unix.AF_INET, nil).AddRtAttr(inetConf, nil).AddRtAttr(confRPFilter, nl.Uint32Attr(value))
	request.AddData(family)
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// Watch implements Machine. It renews a subscription that breaks, for example because its
// buffer overflows.
func (linux) Watch(ctx context.Context, changed func()) error {
	for ctx.Err() == nil {
		updates := make(chan netlink.LinkUpdate)
		if err := netlink.LinkSubscribe(updates, ctx.Done()); err != nil {
			return fmt.Errorf("watch interfaces: %w", err)
		}
		changed()
		for open := true; open; {
			select {
			case <-ctx.Done():
				return nil
			case _, open = <-updates:
				changed()
			}
		}
	}
	return nil
}
