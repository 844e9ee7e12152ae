package sandbox

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// AWS is a simulated AWS account, with Karpenter's own AWS provider.
const AWS = "aws"

// AWSCall is a call to the simulated AWS.
type AWSCall struct {
	Service string `json:"service"`
	Action  string `json:"action"`
	// KeyID is the access key of the caller: AKIASANDBOX is Karpenter's, AKIACROFT the operator's.
	KeyID  string            `json:"keyID"`
	Params map[string]string `json:"params"`
	Body   json.RawMessage   `json:"body"`
	// Authorizations are the permissions that IAM had to grant for it.
	Authorizations []AWSAuthorization `json:"authorizations"`
	// Error is the error code of the response, or "" if it succeeded.
	Error string `json:"error"`
}

// AWSAuthorization is an action on resources, with its condition keys.
type AWSAuthorization struct {
	Action    string              `json:"action"`
	Resources []string            `json:"resources"`
	Context   map[string][]string `json:"context"`
}

// AWSInstance is an instance of the account.
type AWSInstance struct {
	ID       string            `json:"id"`
	Type     string            `json:"type"`
	Zone     string            `json:"zone"`
	Capacity string            `json:"capacity"`
	State    string            `json:"state"`
	Tags     map[string]string `json:"tags"`
	// RegistersAt is the time at which it becomes a node, unless a fault prevents it.
	RegistersAt time.Time `json:"registersAt"`
	// Data are the settings of its launch template.
	Data struct {
		UserData        string            `json:"userData"`
		MetadataOptions map[string]string `json:"metadataOptions"`
		// Given has all settings, by EC2's names.
		Given map[string]string `json:"given"`
	} `json:"data"`
}

// AWSCalls returns the calls of an action, such as ec2:CreateFleet, the oldest first, or all
// calls if it is empty.
func (c *Cluster) AWSCalls(ctx context.Context, action string) (calls []AWSCall, err error) {
	return calls, c.runJSON(ctx, &calls, "aws", "calls", "--action", action, "-o", "json")
}

// AWSInstances returns the account's instances, including terminated ones.
func (c *Cluster) AWSInstances(ctx context.Context) (instances []AWSInstance, err error) {
	return instances, c.runJSON(ctx, &instances, "aws", "instances", "-o", "json")
}

// AWSFault injects a fault into the account until AWSClear: a kind and flags of `croft-sandbox
// aws fault`.
func (c *Cluster) AWSFault(ctx context.Context, kind string, flags ...string) error {
	_, err := c.run(ctx, append([]string{"aws", "fault", kind}, flags...)...)
	return err
}

// AWSClear removes all faults.
func (c *Cluster) AWSClear(ctx context.Context) error {
	_, err := c.run(ctx, "aws", "clear")
	return err
}

// AWSInterrupt interrupts a spot instance, with the notice that AWS sends.
func (c *Cluster) AWSInterrupt(ctx context.Context, instance string) error {
	_, err := c.run(ctx, "aws", "interrupt", instance)
	return err
}

// AWSInterface is a network interface of the account.
type AWSInterface struct {
	ID              string            `json:"id"`
	Subnet          string            `json:"subnet"`
	Tags            map[string]string `json:"tags"`
	SourceDestCheck bool              `json:"sourceDestCheck"`
	// Attachment is nil while the interface is available.
	Attachment *struct {
		Instance            string    `json:"instance"`
		DeviceIndex         int       `json:"deviceIndex"`
		DeleteOnTermination bool      `json:"deleteOnTermination"`
		AttachedAt          time.Time `json:"attachedAt"`
	} `json:"attachment"`
}

// AWSInterfaces returns the account's network interfaces, including the primary ones of
// instances.
func (c *Cluster) AWSInterfaces(ctx context.Context) (interfaces []AWSInterface, err error) {
	return interfaces, c.runJSON(ctx, &interfaces, "aws", "interfaces", "-o", "json")
}

// AWSSubnet creates a subnet in a zone, which no node class selects, and returns its id.
func (c *Cluster) AWSSubnet(ctx context.Context, zone, cidr string) (string, error) {
	id, err := c.run(ctx, "aws", "subnet", "--zone", zone, "--cidr", cidr)
	return strings.TrimSpace(id), err
}

// AWSLeft returns the resources that the cluster created in the account and did not delete.
func (c *Cluster) AWSLeft(ctx context.Context) ([]string, error) {
	out, err := c.run(ctx, "aws", "left")
	left := strings.Fields(out)
	if len(left) > 0 {
		err = nil // it exits with 1 if there are any
	}
	return left, err
}

func (c *Cluster) runJSON(ctx context.Context, into any, args ...string) error {
	out, err := c.run(ctx, args...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}
