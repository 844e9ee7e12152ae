package account

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// The times of attaching and detaching. Most attachments are complete after one to three
// seconds; a few take much longer, as in every large account.
var (
	untilAttached = span{time.Second, 3 * time.Second}
	untilDetached = span{time.Second, 4 * time.Second}
	attachTail    = span{5 * time.Second, 15 * time.Second}
)

// slowAttach is the percentage of attachments that take as long as attachTail.
const slowAttach = 5

// AttachInterface attaches an interface to a running instance, and returns the attachment's ID.
func (a *Account) AttachInterface(id, instance string, index int) (attachment string, err error) {
	err = a.changeState(func(s *state) error {
		n, i := a.findVisible(s, id), s.Instances[instance]
		switch {
		case n == nil:
			return newNoInterfaceError(id)
		case i == nil:
			return &Invalid{"InvalidInstanceID.NotFound", fmt.Sprintf("The instance ID '%s' does not exist", instance)}
		case i.State != Running:
			return &Invalid{"IncorrectState", fmt.Sprintf("Instance '%s' is not 'running' or 'stopped': it is '%s'", instance, i.State)}
		case n.Attachment != nil:
			return &Invalid{"InvalidNetworkInterface.InUse", fmt.Sprintf("Interface: [%s] in use.", id)}
		case n.Zone != i.Zone:
			return &Invalid{"InvalidParameterCombination", "You may not attach a network interface to an instance if they are not in the same availability zone"}
		}
		if err := s.checkRoom(a.now(), i, n, index); err != nil {
			return err
		}
		now := a.now()
		n.Attachment = &Attachment{ID: newID("eni-attach"), Instance: instance, DeviceIndex: index, Began: now, AttachedAt: now.Add(a.scaleDuration(drawAttachTime()))}
		attachment = n.Attachment.ID
		return nil
	})
	return attachment, err
}

func drawAttachTime() time.Duration {
	if rand.N(100) < slowAttach {
		return attachTail.drawDuration()
	}
	return untilAttached.drawDuration()
}

// checkRoom returns an error if an instance cannot have an interface at a device index.
func (s *state) checkRoom(now time.Time, i *Instance, n *Interface, index int) error {
	attached := s.listAttached(now, i.ID)
	for _, other := range attached {
		if other.Attachment.DeviceIndex == index {
			return &Invalid{"InvalidParameterValue", fmt.Sprintf("Instance '%s' already has an interface attached at device index '%d'.", i.ID, index)}
		}
	}
	t := FindType(i.Type)
	if t == nil {
		return nil
	}
	if len(attached) >= t.Interfaces {
		return &Invalid{"AttachmentLimitExceeded", fmt.Sprintf("Interface count %d exceeds the limit for %s", len(attached)+1, i.Type)}
	}
	return s.checkAddressRoom(n, i.ID, 0)
}

// checkAddressRoom returns an error if an interface on an instance cannot have that many more
// addresses and prefixes.
func (s *state) checkAddressRoom(n *Interface, instance string, more int) error {
	i := s.Instances[instance]
	if i == nil {
		return nil
	}
	if t := FindType(i.Type); t != nil && len(n.Addresses)+len(n.Prefixes)+more > t.Addresses {
		return &Invalid{"PrivateIpAddressLimitExceeded", fmt.Sprintf("Number of private addresses will exceed limit of %d for %s.", t.Addresses, i.Type)}
	}
	return nil
}

// listAttached returns the interfaces of an instance.
func (s *state) listAttached(now time.Time, instance string) (all []*Interface) {
	for _, n := range s.Interfaces {
		if current := n.copyAt(now); current.Attachment != nil && current.Attachment.Instance == instance {
			all = append(all, n)
		}
	}
	return all
}

// DetachInterface begins to detach an interface.
func (a *Account) DetachInterface(attachment string) error {
	return a.changeState(func(s *state) error {
		for id := range s.Interfaces {
			n := a.findVisible(s, id)
			if n == nil || n.Attachment == nil || n.Attachment.ID != attachment {
				continue
			}
			if n.Attachment.DeviceIndex == 0 {
				return &Invalid{"OperationNotPermitted", "The network interface at device index 0 cannot be detached."}
			}
			if n.Attachment.DetachedAt.IsZero() {
				n.Attachment.DetachedAt = a.now().Add(a.scaleDuration(untilDetached.drawDuration()))
			}
			return nil
		}
		return newNoAttachmentError(attachment)
	})
}

func newNoAttachmentError(id string) error {
	return &Invalid{"InvalidAttachmentID.NotFound", fmt.Sprintf("The attachment ID '%s' does not exist", id)}
}

// InterfaceChange is a change of one attribute of an interface: EC2 accepts only one in a call.
type InterfaceChange struct {
	SourceDestCheck *bool
	Description     *string
	Groups          []string
	// Attachment is the ID of the attachment whose DeleteOnTermination changes.
	Attachment          string
	DeleteOnTermination bool
}

// ModifyInterface changes one attribute of an interface.
func (a *Account) ModifyInterface(id string, change InterfaceChange) error {
	return a.changeState(func(s *state) error {
		n := a.findVisible(s, id)
		switch {
		case n == nil:
			return newNoInterfaceError(id)
		case change.Attachment != "":
			if n.Attachment == nil || n.Attachment.ID != change.Attachment {
				return newNoAttachmentError(change.Attachment)
			}
			n.Attachment.DeleteOnTermination = change.DeleteOnTermination
		case change.SourceDestCheck != nil:
			n.SourceDestCheck = *change.SourceDestCheck
		case change.Description != nil:
			n.Description = *change.Description
		case len(change.Groups) > 0:
			n.Groups = slices.Clone(change.Groups)
		}
		return nil
	})
}

// releaseInterfaces deletes the interfaces of a terminated instance that have DeleteOnTermination, and
// detaches the others, as EC2 does.
func (s *state) releaseInterfaces(now time.Time, instance string) {
	for _, n := range s.listAttached(now, instance) {
		if n.Attachment.DeleteOnTermination {
			s.dropInterface(n)
		} else {
			n.Attachment = nil
		}
	}
}
