// Package machine simulates the parts of a booted instance that its node shows: its journal on
// a disk of its own, its interfaces, and croft's agent, the only program that runs in its pods.
// The agent is croft's own code, with the rights of its pod; the machine simulates the kernel
// and the disk.
package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"croft.dev/croft/internal/network/agent"
	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/home"
)

// jumbo is the MTU of an instance's interfaces, and firstIndex the kernel's index of the first
// interface: 1 is the loopback.
const (
	jumbo      = 9001
	firstIndex = 2
	// strict is the value of rp_filter on Amazon Linux.
	strict = 1
)

// hardware simulates the kernel of a machine: the interfaces that the account attached to the
// instance, and their settings. It implements agent.Machine.
type hardware struct {
	account  *account.Account
	instance string
	// root is the directory that simulates the machine's disk.
	root string

	mu sync.Mutex
	// links are the interfaces at the last call of Links, by their hardware addresses.
	links map[string]*agent.Link
}

// Links implements agent.Machine.
func (h *hardware) Links() ([]agent.Link, error) {
	attached, _ := h.listAttached()
	h.mu.Lock()
	defer h.mu.Unlock()
	plugged := map[string]*agent.Link{}
	all := make([]agent.Link, 0, len(attached))
	for _, n := range attached {
		index := n.Attachment.DeviceIndex
		link := h.links[n.MAC]
		if link == nil { // the first interface is up, since the machine booted with it
			link = &agent.Link{
				Index: firstIndex + index, Name: fmt.Sprintf("ens%d", 5+index), MAC: n.MAC, MTU: jumbo, Up: index == 0, RPFilter: strict,
			}
		}
		plugged[n.MAC] = link
		shown := *link
		shown.AltNames = slices.Clone(link.AltNames)
		all = append(all, shown)
	}
	h.links = plugged // an interface that is attached again has default settings
	return all, nil
}

// listAttached returns the instance's interfaces in the order of their device index, and the time at
// which the next attachment is complete; zero if there is none.
func (h *hardware) listAttached() (now []account.Interface, next time.Time) {
	at := h.account.Time()
	for _, n := range h.account.ListAllInterfaces() {
		switch {
		case n.Attachment == nil || n.Attachment.Instance != h.instance:
		case !at.Before(n.Attachment.AttachedAt):
			now = append(now, n)
		case next.IsZero() || n.Attachment.AttachedAt.Before(next):
			next = n.Attachment.AttachedAt
		}
	}
	slices.SortFunc(now, func(a, b account.Interface) int { return a.Attachment.DeviceIndex - b.Attachment.DeviceIndex })
	return now, next
}

// Watch implements agent.Machine.
func (h *hardware) Watch(ctx context.Context, changed func()) error {
	observed := "none yet"
	for ctx.Err() == nil {
		change := h.account.WatchChange()
		attached, next := h.listAttached()
		is := ""
		for _, n := range attached {
			is += n.MAC + " "
		}
		if is != observed {
			observed = is
			changed()
		}
		wait := time.Hour
		if !next.IsZero() {
			wait = time.Until(next)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-change:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// Do implements agent.Machine.
func (h *hardware) Do(s agent.Step) error {
	if s.Action == agent.WriteFile {
		return h.replaceFile(s.Value, []byte(s.Content))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, link := range h.links {
		if link.Index == s.Index {
			return changeLink(link, s)
		}
	}
	return fmt.Errorf("there is no interface %d", s.Index)
}

// changeLink changes one interface.
func changeLink(link *agent.Link, s agent.Step) (err error) {
	switch s.Action {
	case agent.AddName:
		link.AltNames = append(link.AltNames, s.Value)
	case agent.RemoveName:
		link.AltNames = slices.DeleteFunc(link.AltNames, func(name string) bool { return name == s.Value })
	case agent.SetMTU:
		link.MTU, err = strconv.Atoi(s.Value)
	case agent.SetFilter:
		link.RPFilter, err = strconv.Atoi(s.Value)
	case agent.SetUp:
		link.Up = true
	default:
		err = fmt.Errorf("the machine cannot %s", s)
	}
	return err
}

// realPath returns the real path of a path of the machine.
func (h *hardware) realPath(path string) string { return filepath.Join(h.root, path) }

// Files implements agent.Machine.
func (h *hardware) Files(paths []string) (map[string]string, error) {
	all := map[string]string{}
	for _, path := range paths {
		content, err := os.ReadFile(h.realPath(path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil {
			all[path] = string(content)
		}
	}
	return all, nil
}

// replaceFile replaces a file atomically.
func (h *hardware) replaceFile(path string, content []byte) error {
	path = h.realPath(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return home.Write(path, content)
}
