package account

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
)

// Denied is a call that IAM does not allow.
type Denied struct {
	Action, Resource string
	// NodeRole reports that the caller had the role of a node.
	NodeRole bool
	// Explicit reports that a policy denies the call explicitly.
	Explicit bool
}

// decodedDenial is the content of an encoded message.
type decodedDenial struct {
	Allowed           bool           `json:"allowed"`
	ExplicitDeny      bool           `json:"explicitDeny"`
	MatchedStatements items          `json:"matchedStatements"`
	Failures          items          `json:"failures"`
	Context           decodedContext `json:"context"`
}

type items struct {
	Items []any `json:"items"`
}

type decodedContext struct {
	Principal  principal `json:"principal"`
	Action     string    `json:"action"`
	Resource   string    `json:"resource"`
	Conditions items     `json:"conditions"`
}

type principal struct {
	ID  string `json:"id"`
	ARN string `json:"arn"`
}

// Principal returns the ARN of the caller: the controller's role, or, for a controller without a
// role of its own, the role of its node.
func (a *Account) Principal(nodeRole bool) string {
	if nodeRole {
		return "arn:aws:sts::" + ID + ":assumed-role/KarpenterNodeRole-" + a.Cluster + "/i-0fa071d72e68e7a33"
	}
	return "arn:aws:sts::" + ID + ":assumed-role/KarpenterControllerRole-" + a.Cluster + "/karpenter"
}

// describeDenial returns EC2's message for a denied call.
func (a *Account) describeDenial(d Denied) string {
	why := "because no identity-based policy allows the " + d.Action + " action"
	if d.Explicit {
		why = "with an explicit deny in a service control policy"
	}
	return "You are not authorized to perform this operation. User: " + a.Principal(d.NodeRole) +
		" is not authorized to perform: " + d.Action + " on resource: " + d.Resource + " " + why +
		". Encoded authorization failure message: " + a.encodeDenial(d)
}

// DescribeDenial returns EC2's message for a denied call.
func (a *Account) DescribeDenial(d Denied) string { return a.describeDenial(d) }

// encodeDenial encodes the details of a denial, as AWS does. STS decodes them.
func (a *Account) encodeDenial(d Denied) string {
	body, err := json.Marshal(decodedDenial{
		ExplicitDeny:      d.Explicit,
		MatchedStatements: items{[]any{}}, Failures: items{[]any{}},
		Context: decodedContext{
			Principal: principal{ID: "AROACROFTSIMULATED:session", ARN: a.Principal(d.NodeRole)},
			Action:    d.Action, Resource: d.Resource, Conditions: items{[]any{}},
		},
	})
	if err != nil {
		return "" // cannot happen: it has only strings and booleans
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return "" // cannot happen: the level is a constant
	}
	if _, err := w.Write(body); err != nil || w.Close() != nil {
		return "" // cannot happen: it writes to memory
	}
	return base64.RawURLEncoding.EncodeToString(packed.Bytes())
}

// DecodeDenial decodes a message as STS does.
func DecodeDenial(encoded string) (string, error) {
	packed, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), 1<<16))
	if err != nil {
		return "", err
	}
	if !json.Valid(body) {
		return "", errors.New("the simulated account did not encode this message")
	}
	return string(body), nil
}
