package account

import (
	"encoding/json"
	"slices"
	"time"
)

// Message is a message in the interruption queue, as EventBridge sends it.
type Message struct {
	ID, Receipt, Body string
	Sent              time.Time
	// HiddenUntil is the time until which no other call receives the message.
	HiddenUntil time.Time
}

// event is an event of EventBridge.
type event struct {
	Version    string         `json:"version"`
	ID         string         `json:"id"`
	DetailType string         `json:"detail-type"`
	Source     string         `json:"source"`
	Account    string         `json:"account"`
	Time       time.Time      `json:"time"`
	Region     string         `json:"region"`
	Resources  []string       `json:"resources"`
	Detail     map[string]any `json:"detail"`
}

func newStateEvent(a *Account, i *Instance) event {
	return a.newEvent("EC2 Instance State-change Notification", i, map[string]any{"instance-id": i.ID, "state": string(i.State)})
}

func newSpotEvent(a *Account, i *Instance) event {
	return a.newEvent("EC2 Spot Instance Interruption Warning", i, map[string]any{"instance-id": i.ID, "instance-action": "terminate"})
}

func (a *Account) newEvent(detailType string, i *Instance, detail map[string]any) event {
	return event{
		Version: "0", ID: newID("e"), DetailType: detailType, Source: "aws.ec2", Account: ID, Region: a.Region,
		Time: a.now().UTC().Truncate(time.Second), Resources: []string{a.ARN("ec2", "instance/"+i.ID)}, Detail: detail,
	}
}

// sendEvent adds an event to the queue.
func (a *Account) sendEvent(s *state, e event) {
	body, err := json.Marshal(e)
	if err != nil {
		return // cannot happen: it has only strings and a time
	}
	s.Messages = append(s.Messages, &Message{ID: newID("m"), Body: string(body), Sent: a.now()})
}

// ReceiveMessages returns visible messages, and hides them from other calls for some time.
func (a *Account) ReceiveMessages(most int, hidden time.Duration) (out []Message, err error) {
	now := a.now()
	visible := func(m *Message) bool { return !m.HiddenUntil.After(now) }
	if !readState(a, func(s *state) bool { return slices.ContainsFunc(s.Messages, visible) }) {
		return nil, nil
	}
	err = a.changeState(func(s *state) error {
		for _, m := range s.Messages {
			if len(out) < most && visible(m) {
				m.Receipt, m.HiddenUntil = newID("r"), now.Add(hidden)
				out = append(out, *m)
			}
		}
		return nil
	})
	return out, err
}

// DeleteMessage deletes a message by the receipt of the call that received it.
func (a *Account) DeleteMessage(receipt string) error {
	return a.changeState(func(s *state) error {
		s.Messages = slices.DeleteFunc(s.Messages, func(m *Message) bool { return m.Receipt == receipt })
		return nil
	})
}
