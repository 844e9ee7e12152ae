// Package certificate writes down that a tenant's walls were tried and held, as an in-toto
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

	"croft.dev/croft/internal/verify"
)

// The types of a statement, see https://github.com/in-toto/attestation.
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

// Subject names the tenant, and what stood around it: the digest is of its walls' objects as
// this version of croft makes them. The same declaration has the same digest.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Predicate says what was found.
type Predicate struct {
	Tenant string `json:"tenant"`
	// Verified says that every attack that could be tried was stopped by what should stop it.
	Verified bool `json:"verified"`
	// At is when the attacks had been tried.
	At time.Time `json:"at"`
	// Version is that of the croft that tried.
	Version string  `json:"version"`
	Cluster Cluster `json:"cluster"`
	// MutationScore is the part of all things that the walls are made of whose absence an
	// attack notices, from 0 to 1, as the release's tests measured it; absent if unknown.
	MutationScore *float64 `json:"mutationScore,omitempty"`
	Attacks       Attacks  `json:"attacks"`
}

// Cluster says where.
type Cluster struct {
	// Name is platform.clusterName, UID that of the namespace kube-system, which tells clusters
	// apart that have the same name.
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Kubernetes string `json:"kubernetes"`
}

// Attacks are the results.
type Attacks struct {
	// Tried is the number of requests and connections that were tried.
	Tried int `json:"tried"`
	// Held are the attacks that held, by wall.
	Held map[string][]string `json:"held"`
	// NotTried are those that there was nothing to try on, by wall.
	NotTried map[string][]string `json:"notTried,omitempty"`
	// Failed are those that do not speak for the walls, by wall.
	Failed map[string][]string `json:"failed,omitempty"`
}

// New makes a statement of the results of verify from inside a tenant, whose walls are made of
// objects. Predicate's fields but for Verified and Attacks are given.
func New(p Predicate, objects []client.Object, results []verify.Result) (*Statement, error) {
	p.Attacks = Attacks{Held: map[string][]string{}, NotTried: map[string][]string{}, Failed: map[string][]string{}}
	for _, r := range results {
		p.Attacks.Tried += r.Tried()
		in := p.Attacks.Failed
		switch r.Result {
		case verify.Held:
			in = p.Attacks.Held
		case verify.NotTried:
			in = p.Attacks.NotTried
		default: // neither speaks for the wall
		}
		in[r.Wall] = append(in[r.Wall], r.Name)
	}
	p.Verified = len(p.Attacks.Held) > 0 && len(p.Attacks.Failed) == 0
	digest, err := digestOf(objects)
	if err != nil {
		return nil, err
	}
	return &Statement{
		Type: StatementType, PredicateType: PredicateType, Predicate: p,
		Subject: []Subject{{Name: "croft.dev/tenant/" + p.Tenant, Digest: map[string]string{"sha256": digest}}},
	}, nil
}

// digestOf is the hash of objects in the order of their names.
func digestOf(objects []client.Object) (string, error) {
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
