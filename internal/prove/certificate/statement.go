// Package certificate builds an attestation of verify's results for a tenant, as an in-toto
// statement that may be signed. It reads nothing.
package certificate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/walls/wall/network"
)

// These are the types of a statement; see https://github.com/in-toto/attestation.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "https://croft.dev/attestation/tenant-isolation/v1"
)

// Statement is an in-toto statement about one tenant.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// Subject names the tenant and the digest of its walls' objects as this version of croft builds
// them. The same declaration has the same digest.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Predicate has the results of the attacks.
type Predicate struct {
	Tenant string `json:"tenant"`
	// Verified reports whether every attack that could be tried was refused by the expected
	// rule, and no connection has expired.
	Verified bool `json:"verified"`
	// At is the time at which the attacks were finished.
	At time.Time `json:"at"`
	// Version is the version of croft that ran the attacks.
	Version string  `json:"version"`
	Cluster Cluster `json:"cluster"`
	// MutationScore is the fraction of the walls' parts, from 0 to 1, whose removal an attack
	// detects, as measured by the release's tests. It is absent if unknown.
	MutationScore *float64 `json:"mutationScore,omitempty"`
	Attacks       Attacks  `json:"attacks"`
	// Connections are the open connections between the tenant and other tenants.
	Connections []Connection `json:"connections,omitempty"`
}

// Connection is a connection between two tenants that croft's network policies allow, because both
// agreed to it. The caller's pods connect to the callee's.
type Connection struct {
	Caller string `json:"caller"`
	Callee string `json:"callee"`
	// Until is the end of the consent, if it has one.
	Until *time.Time `json:"until,omitempty"`
	// Expired reports that the consent has ended, and that the connection is still open.
	Expired bool `json:"expired,omitempty"`
}

// Cluster identifies the cluster.
type Cluster struct {
	// Name is platform.clusterName. UID is the UID of the namespace kube-system, which
	// distinguishes clusters of the same name.
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Kubernetes string `json:"kubernetes"`
}

// Attacks are the results by outcome.
type Attacks struct {
	// Tried is the number of requests and connections that were tried.
	Tried int `json:"tried"`
	// Held are the attacks with the outcome held, by wall.
	Held map[string][]string `json:"held"`
	// NotTried are the attacks for which the cluster has no object to attack, by wall.
	NotTried map[string][]string `json:"notTried,omitempty"`
	// Failed are the attacks whose results count against the walls, by wall.
	Failed map[string][]string `json:"failed,omitempty"`
}

// New returns a statement of verify's results for attacks from inside a tenant. objects are the
// objects of its walls. The caller sets all fields of Predicate except for Verified and
// Attacks.
func New(p Predicate, objects []client.Object, results []verify.Result) (*Statement, error) {
	p.Attacks = Attacks{Held: map[string][]string{}, NotTried: map[string][]string{}, Failed: map[string][]string{}}
	for _, r := range results {
		p.Attacks.Tried += r.CountRequests()
		failed := p.Attacks.Failed
		switch r.Result {
		case verify.Held:
			failed = p.Attacks.Held
		case verify.NotTried:
			failed = p.Attacks.NotTried
		default: // the others count against the wall
		}
		failed[r.Wall] = append(failed[r.Wall], r.Name)
	}
	p.Verified = len(p.Attacks.Held) > 0 && len(p.Attacks.Failed) == 0 && len(p.ListExpired()) == 0
	digest, err := hashObjects(objects)
	if err != nil {
		return nil, err
	}
	return &Statement{
		Type: StatementType, PredicateType: PredicateType, Predicate: p,
		Subject: []Subject{{Name: "croft.dev/tenant/" + p.Tenant, Digest: map[string]string{"sha256": digest}}},
	}, nil
}

// ListConnections returns the connections of a Predicate at a time.
func ListConnections(open []network.OpenConnection, at time.Time) []Connection {
	var all []Connection
	for _, c := range open {
		connection := Connection{Caller: c.Caller, Callee: c.Callee, Expired: c.HasExpired(at)}
		if !c.End.IsZero() {
			connection.Until = &c.End
		}
		all = append(all, connection)
	}
	return all
}

// ListExpired returns the connections that should be closed.
func (p *Predicate) ListExpired() []Connection {
	return slices.DeleteFunc(slices.Clone(p.Connections), func(c Connection) bool { return !c.Expired })
}

// hashObjects returns the hash of the objects in the order of their names.
func hashObjects(objects []client.Object) (string, error) {
	var texts []string
	for _, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
		}
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	hash := sha256.New()
	for _, text := range texts {
		hash.Write(fmt.Appendf(nil, "%d %s\n", len(text), text))
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
