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
	// NodeRole says that it was signed with the role of a node.
	NodeRole bool
	// Explicit says that a policy forbids it.
	Explicit bool
}

// decoded is what STS makes of an encoded message.
type decoded struct {
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

// Principal is who the caller is: the controller's role, or that of the node which
// the controller runs on if it was never given one.
func (a *Account) Principal(nodeRole bool) string {
	if nodeRole {
		return "arn:aws:sts::" + ID + ":assumed-role/KarpenterNodeRole-" + a.Cluster + "/i-0fa071d72e68e7a33"
	}
	return "arn:aws:sts::" + ID + ":assumed-role/KarpenterControllerRole-" + a.Cluster + "/karpenter"
}

// denial is what EC2 says of a call that is not allowed.
func (a *Account) denial(d Denied) string {
	why := "because no identity-based policy allows the " + d.Action + " action"
	if d.Explicit {
		why = "with an explicit deny in a service control policy"
	}
	return "You are not authorized to perform this operation. User: " + a.Principal(d.NodeRole) +
		" is not authorized to perform: " + d.Action + " on resource: " + d.Resource + " " + why +
		". Encoded authorization failure message: " + a.encode(d)
}

// Denial is what EC2 says of a call that is not allowed.
func (a *Account) Denial(d Denied) string { return a.denial(d) }

// encode hides who may not do what, as AWS does: only STS can read it.
func (a *Account) encode(d Denied) string {
	body, err := json.Marshal(decoded{
		ExplicitDeny:      d.Explicit,
		MatchedStatements: items{[]any{}}, Failures: items{[]any{}},
		Context: decodedContext{
			Principal: principal{ID: "AROACROFTSIMULATED:session", ARN: a.Principal(d.NodeRole)},
			Action:    d.Action, Resource: d.Resource, Conditions: items{[]any{}},
		},
	})
	if err != nil {
		return "" // of strings alone
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return "" // the level is a constant
	}
	if _, err := w.Write(body); err != nil || w.Close() != nil {
		return "" // to memory
	}
	return base64.RawURLEncoding.EncodeToString(packed.Bytes())
}

// DecodeDenial is what STS makes of an encoded message.
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
		return "", errors.New("it was not encoded here")
	}
	return string(body), nil
}
