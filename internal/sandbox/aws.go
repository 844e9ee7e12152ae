package sandbox

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// AWS is a simulated AWS account, with Karpenter's own AWS provider on it.
const AWS = "aws"

// AWSCall is a call that was made to AWS.
type AWSCall struct {
	Service string `json:"service"`
	Action  string `json:"action"`
	// KeyID is the access key of the caller: AKIASANDBOX is Karpenter's, AKIACROFT the operator's.
	KeyID  string            `json:"keyID"`
	Params map[string]string `json:"params"`
	Body   json.RawMessage   `json:"body"`
	// Authorizations are what IAM had to allow for it.
	Authorizations []AWSAuthorization `json:"authorizations"`
	// Error is the code of the answer, if it was one.
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
	// RegistersAt is when it becomes a node, if nothing keeps it from that.
	RegistersAt time.Time `json:"registersAt"`
	// Data are the settings of its launch template.
	Data struct {
		UserData        string            `json:"userData"`
		MetadataOptions map[string]string `json:"metadataOptions"`
		// Given is all of it, by EC2's names.
		Given map[string]string `json:"given"`
	} `json:"data"`
}

// AWSCalls are the calls of a kind, such as ec2:CreateFleet, the oldest first; all
// if it is empty.
func (c *Cluster) AWSCalls(ctx context.Context, action string) (calls []AWSCall, err error) {
	return calls, c.json(ctx, &calls, "aws", "calls", "--action", action, "-o", "json")
}

// AWSInstances are the account's instances, also those that have ended.
func (c *Cluster) AWSInstances(ctx context.Context) (instances []AWSInstance, err error) {
	return instances, c.json(ctx, &instances, "aws", "instances", "-o", "json")
}

// AWSFault has something go wrong in the account until AWSClear: a kind and flags of
// `croft-sandbox aws fault`.
func (c *Cluster) AWSFault(ctx context.Context, kind string, flags ...string) error {
	_, err := c.run(ctx, append([]string{"aws", "fault", kind}, flags...)...)
	return err
}

// AWSClear takes all faults back.
func (c *Cluster) AWSClear(ctx context.Context) error {
	_, err := c.run(ctx, "aws", "clear")
	return err
}

// AWSInterrupt has a spot instance taken away, with the notice that AWS gives.
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

// AWSInterfaces are the account's network interfaces, also those that instances were
// started with.
func (c *Cluster) AWSInterfaces(ctx context.Context) (interfaces []AWSInterface, err error) {
	return interfaces, c.json(ctx, &interfaces, "aws", "interfaces", "-o", "json")
}

// AWSSubnet makes a subnet in a zone, which no node class finds, and returns its id.
func (c *Cluster) AWSSubnet(ctx context.Context, zone, cidr string) (string, error) {
	id, err := c.run(ctx, "aws", "subnet", "--zone", zone, "--cidr", cidr)
	return strings.TrimSpace(id), err
}

// AWSLeft are the resources that the cluster created in the account and did not remove.
func (c *Cluster) AWSLeft(ctx context.Context) ([]string, error) {
	out, err := c.run(ctx, "aws", "left")
	left := strings.Fields(out)
	if len(left) > 0 {
		err = nil // it ends with 1 if there is something
	}
	return left, err
}

func (c *Cluster) json(ctx context.Context, into any, args ...string) error {
	out, err := c.run(ctx, args...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}
