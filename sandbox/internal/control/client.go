package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/supervisor"
)

// Client is a client of a sandbox's supervisor.
type Client struct {
	http http.Client
}

// ErrDown is returned when no supervisor runs on the directory.
var ErrDown = errors.New("the sandbox is not up")

// Dial returns a client of the supervisor of a sandbox, or ErrDown.
func Dial(h home.Home) (*Client, error) {
	pid, err := h.FindSupervisor()
	if err != nil {
		return nil, err
	}
	if pid == 0 {
		return nil, ErrDown
	}
	socket, err := h.ReadSocket()
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	return &Client{http: http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
	}}}, nil
}

// GetStatuses returns the status of every component.
func (c *Client) GetStatuses(ctx context.Context) ([]supervisor.Status, error) {
	resp, err := c.sendRequest(ctx, http.MethodGet, "/status")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out []supervisor.Status
	return out, json.NewDecoder(resp.Body).Decode(&out)
}

// Watch calls handle with the statuses now and after every change, until handle returns done
// or an error, or ctx or the supervisor ends.
func (c *Client) Watch(ctx context.Context, handle func([]supervisor.Status) (done bool, err error)) error {
	resp, err := c.sendRequest(ctx, http.MethodGet, "/watch")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	decoder := json.NewDecoder(resp.Body)
	for {
		var statuses []supervisor.Status
		if err := decoder.Decode(&statuses); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("the supervisor has ended: %w", err)
		}
		if done, err := handle(statuses); done || err != nil {
			return err
		}
	}
}

// Start starts a component that was stopped. It does not wait for readiness.
func (c *Client) Start(ctx context.Context, component string) error {
	return c.sendPost(ctx, "/components/"+url.PathEscape(component)+"/start")
}

// Stop stops a component, and returns when its process has ended.
func (c *Client) Stop(ctx context.Context, component string) error {
	return c.sendPost(ctx, "/components/"+url.PathEscape(component)+"/stop")
}

// StopSandbox stops the sandbox, and returns when every component has ended.
func (c *Client) StopSandbox(ctx context.Context) error {
	return c.sendPost(ctx, "/down")
}

func (c *Client) sendPost(ctx context.Context, path string) error {
	resp, err := c.sendRequest(ctx, http.MethodPost, path)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (c *Client) sendRequest(ctx context.Context, method, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("request to the supervisor: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		message, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		if err != nil {
			return nil, err
		}
		return nil, errors.New(strings.TrimSpace(string(message)))
	}
	return resp, nil
}
