// Package account is the state of a simulated AWS account: a network, images, roles and
// instance profiles, launch templates, instances, network interfaces, and a queue. It decides
// when the state of an instance changes, and how. It sends and receives no requests.
package account

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"croft.dev/croft/sandbox/internal/home"
)

// Settings are the settings of an account.
type Settings struct {
	// Region is the region of all resources.
	Region string `json:"region"`
	// Zones are the region's zones, each with a subnet.
	Zones []string `json:"zones"`
	// Cluster is the name of the EKS cluster.
	Cluster string `json:"cluster"`
	// Speed divides all times that an instance takes: with 1 they are the times of real ones.
	Speed float64 `json:"speed"`
}

// ID is the number of the account.
const ID = "111122223333"

// state is the saved state of an account.
type state struct {
	Subnets        []*Subnet                   `json:"subnets"`
	SecurityGroups []*SecurityGroup            `json:"securityGroups"`
	Roles          map[string]*Role            `json:"roles"`
	Profiles       map[string]*InstanceProfile `json:"profiles"`
	Templates      map[string]*LaunchTemplate  `json:"templates"`
	Instances      map[string]*Instance        `json:"instances"`
	Reservations   []*CapacityReservation      `json:"reservations"`
	Interfaces     map[string]*Interface       `json:"interfaces"`
	// Tokens are the client tokens of calls that created interfaces.
	Tokens           map[string]token   `json:"tokens"`
	CIDRReservations []*CIDRReservation `json:"cidrReservations"`
	Images           []Image            `json:"images"`
	Faults           []*Fault           `json:"faults"`
	Messages         []*Message         `json:"messages"`
	Faulted          int                `json:"faulted"`
	// Used is the use of instances that have ended.
	Used       []Usage     `json:"used,omitempty"`
	SpotPrices []spotPrice `json:"spotPrices,omitempty"`
}

// Account is safe for concurrent use.
type Account struct {
	Settings

	file string
	now  func() time.Time

	mu      sync.Mutex
	s       state
	changed chan struct{}
	buckets map[string]*bucket
}

// Open reads an account from a file, or creates one that is saved there. now is the
// clock.
func Open(file string, settings Settings, now func() time.Time) (*Account, error) {
	a := &Account{Settings: settings, file: file, now: now, changed: make(chan struct{}), buckets: map[string]*bucket{}}
	content, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		a.s = a.buildState()
		return a, a.saveState()
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(content, &a.s); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if a.s.Interfaces == nil { // an earlier version, without interfaces, saved the file
		a.s.Interfaces, a.s.Tokens = map[string]*Interface{}, map[string]token{}
	}
	return a, nil
}

// buildState returns the state of an account as after the creation of the cluster by eksctl: subnets
// and a security group with the tag by which Karpenter finds them, and the nodes' role of
// Karpenter's documentation.
func (a *Account) buildState() state {
	discovery := Tags{"karpenter.sh/discovery": a.Cluster}
	role := "KarpenterNodeRole-" + a.Cluster
	s := state{
		SecurityGroups: []*SecurityGroup{{
			ID: newID("sg"), Name: "eks-cluster-sg-" + a.Cluster, Description: "nodes of " + a.Cluster, VPC: vpc, Tags: discovery,
		}},
		Roles:     map[string]*Role{role: newRole(role)},
		Profiles:  map[string]*InstanceProfile{},
		Templates: map[string]*LaunchTemplate{},
		Instances: map[string]*Instance{}, Interfaces: map[string]*Interface{}, Tokens: map[string]token{},
	}
	for i, zone := range a.Zones {
		s.Subnets = append(s.Subnets, &Subnet{
			ID: newID("subnet"), Zone: zone, ZoneID: a.formatZoneID(zone), VPC: vpc,
			CIDR: fmt.Sprintf("10.0.%d.0/20", 16*i), Free: 4000, Tags: discovery,
		})
	}
	return s
}

// Time returns the time of the account's clock.
func (a *Account) Time() time.Time { return a.now() }

// WatchChange returns a channel that is closed at the next change of the state.
func (a *Account) WatchChange() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

// readState calls look with the state, under the lock.
func readState[T any](a *Account, look func(*state) T) T {
	a.mu.Lock()
	defer a.mu.Unlock()
	return look(&a.s)
}

// changeState changes and saves the state. If change returns an error, it must not have changed the
// state: it checks everything first.
func (a *Account) changeState(change func(*state) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := change(&a.s); err != nil {
		return err
	}
	close(a.changed)
	a.changed = make(chan struct{})
	return a.saveState()
}

func (a *Account) saveState() error {
	content, err := json.Marshal(a.s)
	if err != nil {
		return err
	}
	return home.Write(a.file, content)
}

// scaleDuration divides a real duration by the account's speed.
func (a *Account) scaleDuration(d time.Duration) time.Duration {
	if a.Speed <= 0 {
		return d
	}
	return time.Duration(float64(d) / a.Speed)
}

func newID(kind string) string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails
	return kind + "-" + hex.EncodeToString(b[:])[:17]
}

// Tags are the tags of a resource.
type Tags map[string]string

// ARN returns the ARN of a resource of the account.
func (a *Account) ARN(service, resource string) string {
	region := a.Region
	if service == "iam" {
		region = ""
	}
	return "arn:aws:" + service + ":" + region + ":" + ID + ":" + resource
}
