package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// UnauthorizedID is the ID of the row for messages that AWS encodes.
const UnauthorizedID = "unauthorized-operation"

// Decode decodes AWS's encoded authorization message into JSON.
type Decode func(ctx context.Context, encoded string) (string, error)

// encoded matches AWS's encoding, which is base64 in the URL alphabet.
var encoded = regexp.MustCompile(`Encoded authorization failure message: ([A-Za-z0-9_-]+)(\.\.\.)?`)

// FindEncoded returns the encoded message in a text, and whether it is complete: Karpenter
// truncates messages in conditions and events.
func FindEncoded(text string) (message string, complete bool) {
	m := encoded.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return m[1], m[2] == ""
}

// DecodeCommand returns the command that decodes a message.
func DecodeCommand(message string) string {
	return "aws sts decode-authorization-message --encoded-message " + message
}

// LogCommand is the command that explains Karpenter's log.
const LogCommand = "kubectl logs -n NAMESPACE deployment/karpenter | croft why -f -"

// Denial is a decoded message.
type Denial struct {
	Action, Resource, Principal string
	ExplicitDeny                bool
}

// ParseDenial reads a decoded message.
func ParseDenial(decoded string) (Denial, error) {
	var message struct {
		ExplicitDeny bool
		Context      struct {
			Principal struct{ ARN string }
			Action    string
			Resource  string
		}
	}
	if err := json.Unmarshal([]byte(decoded), &message); err != nil {
		return Denial{}, fmt.Errorf("the decoded message is not JSON: %w", err)
	}
	d := Denial{message.Context.Action, message.Context.Resource, message.Context.Principal.ARN, message.ExplicitDeny}
	if d.Action == "" || d.Principal == "" {
		return d, fmt.Errorf("the decoded message names no action or no principal")
	}
	return d, nil
}

// instance matches the end of an ARN of an instance's own credentials.
var instance = regexp.MustCompile(`:assumed-role/([^/]+)/(i-[0-9a-f]+)$`)

// Explain returns the cause of the denial, and its fix.
func (d Denial) Explain() (cause, fix string) {
	request := fmt.Sprintf("%s requested %s on %s", d.Principal, d.Action, d.Resource)
	switch node := instance.FindStringSubmatch(d.Principal); {
	case node != nil:
		return request + fmt.Sprintf(": that is the role %s of the node %s, not Karpenter's own", node[1], node[2]),
			"bind the controller's service account to its IAM role: IRSA (the annotation eks.amazonaws.com/role-arn, and the role's trust in the cluster's OIDC provider) or a Pod Identity association; then restart the controller"
	case d.ExplicitDeny:
		return request + ", and a policy denies it explicitly: a service control policy, a permissions boundary, or a rule on tags",
			"find the Deny in the organization's and the role's policies; if it is about tags, set them as `tags` of the Pool"
	default:
		return request + ", and no policy allows it",
			fmt.Sprintf("add %s on %s to the policy of %s", d.Action, d.Resource, parseRole(d.Principal))
	}
}

func parseRole(principal string) string {
	if _, after, ok := strings.Cut(principal, ":assumed-role/"); ok {
		role, _, _ := strings.Cut(after, "/")
		return "the role " + role
	}
	return principal
}

// DecodeFinding returns the finding with its encoded message decoded. If it cannot be decoded here,
// Run is set to a command that decodes it.
func DecodeFinding(ctx context.Context, f Finding, decode Decode) Finding {
	message, complete := FindEncoded(f.Symptom)
	switch {
	case message == "":
		return f
	case !complete:
		f.Fix += ". The message is truncated here, and complete in Karpenter's log"
		f.Run = LogCommand
		return f
	}
	denial, err := decodeDenial(ctx, message, decode)
	if err != nil {
		f.Fix += ". It could not be decoded here: " + joinLines(err.Error())
		f.Run = DecodeCommand(message)
		return f
	}
	cause, fix := denial.Explain()
	f.Cause, f.Fix = f.Cause+": "+cause, fix
	return f
}

func decodeDenial(ctx context.Context, message string, decode Decode) (Denial, error) {
	if decode == nil {
		return Denial{}, errors.New("no AWS credentials were used")
	}
	text, err := decode(ctx, message)
	if err != nil {
		return Denial{}, err
	}
	return ParseDenial(text)
}

func joinLines(text string) string { return strings.Join(strings.Fields(text), " ") }
