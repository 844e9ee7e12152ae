package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"croft.dev/croft/sandbox/internal/cloud/account"
)

// Client is a client of a sandbox's account, at its address.
type Client struct{ Address string }

// ListCalls returns the calls to AWS, the oldest first.
func (c Client) ListCalls(ctx context.Context) (out []Call, err error) {
	return out, c.sendRequest(ctx, http.MethodGet, "calls", nil, nil, &out)
}

// GetHolding returns the resources in the account.
func (c Client) GetHolding(ctx context.Context) (out Holding, err error) {
	return out, c.sendRequest(ctx, http.MethodGet, "holding", nil, nil, &out)
}

// ListFaults returns the active faults.
func (c Client) ListFaults(ctx context.Context) (out []account.Fault, err error) {
	return out, c.sendRequest(ctx, http.MethodGet, "faults", nil, nil, &out)
}

// AddFault injects a fault, and returns it with its ID.
func (c Client) AddFault(ctx context.Context, f account.Fault) (out account.Fault, err error) {
	return out, c.sendRequest(ctx, http.MethodPost, "faults", nil, f, &out)
}

// ClearFaults removes faults, all if none are named, and returns their number.
func (c Client) ClearFaults(ctx context.Context, ids ...string) (cleared int, err error) {
	return cleared, c.sendRequest(ctx, http.MethodDelete, "faults", url.Values{"id": ids}, nil, &cleared)
}

// Interrupt interrupts a spot instance, two minutes after a notice.
func (c Client) Interrupt(ctx context.Context, instance string) error {
	return c.sendRequest(ctx, http.MethodPost, "interrupt", url.Values{"instance": {instance}}, nil, new(any))
}

// Reserve reserves capacity for the account, and returns the reservation's ID.
func (c Client) Reserve(ctx context.Context, r account.CapacityReservation) (id string, err error) {
	return id, c.sendRequest(ctx, http.MethodPost, "reservations", nil, r, &id)
}

// AddSubnet creates a subnet in a zone. Node classes find it only by its tags.
func (c Client) AddSubnet(ctx context.Context, zone, cidr string, tags account.Tags) (made account.Subnet, err error) {
	return made, c.sendRequest(ctx, http.MethodPost, "subnets", nil, account.Subnet{Zone: zone, CIDR: cidr, Tags: tags}, &made)
}

func (c Client) sendRequest(ctx context.Context, method, what string, query url.Values, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Address+own+what+"?"+query.Encode(), &body)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("request to the simulated account: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		message, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return errors.Join(errors.New(strings.TrimSpace(string(message))), err)
	}
	return json.NewDecoder(resp.Body).Decode(out)
}
