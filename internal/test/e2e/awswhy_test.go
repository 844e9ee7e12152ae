package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/test/sandbox"
)

// awsPlatform is the platform of clusters on the simulated account.
const awsPlatform = `
platform:
  clusterName: demo
  tenantDomain: tenants.example.org
  nodeClass: {aws: {role: KarpenterNodeRole-demo}}
`

// onAccount is a sandbox on a simulated account in which AWS calls fail. Karpenter remembers
// for minutes which instance types were unavailable and which node class was refused, so each
// case has a pool with instance types of its own.
type onAccount struct{ *whyer }

// TestWhyOnAWS fails if `croft why` does not name the cause when AWS refuses a call of
// Karpenter's AWS provider.
func TestWhyOnAWS(t *testing.T) {
	sandbox.Thorough(t)
	t.Parallel() // it mostly waits
	box := start(t, sandbox.Options{Croft: croftBinary(t), With: []string{sandbox.AWS}, AWSSpeed: awsSpeed})
	c := &onAccount{&whyer{&twoTenants{cluster: box}}}
	c.findsAccount(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *onAccount)
	}{
		{"launch", awsLaunch},
		{"node", awsNode},
		{"class", awsClass},
		{"authorization", awsAuthorization},
		{"instance-profile", awsInstanceProfile},
		{"subnet-full", awsSubnetFull},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// findsAccount configures croft's AWS client for the account, so that it can decode AWS's
// messages.
func (c *cluster) findsAccount(t *testing.T) {
	account, err := c.Component(sandbox.AWS)
	if err != nil {
		t.Fatal(err)
	}
	c.env = append(c.env,
		"AWS_ENDPOINT_URL="+account.Address, "AWS_REGION=us-west-2", "AWS_ACCESS_KEY_ID=AKIATEST", "AWS_SECRET_ACCESS_KEY=secret")
}

// pool declares a pool, and a tenant of the same name on it.
func (c *onAccount) pool(t testing.TB, name, spec string) {
	t.Helper()
	c.croftReading(t, poolFile(name, spec), "apply", "-f", "-", "--wait=false").exits(t, 0)
	c.account(t, name)
}

// poolFile declares a pool, and a tenant of the same name on it.
func poolFile(name, spec string) string {
	return fmt.Sprintf("%spools:\n  %s: %s\ntenants:\n  %s: {pool: %s, access: [{group: team-%s, role: operator}]}\n",
		awsPlatform, name, spec, name, name, name)
}

// wants creates a Deployment of one pod in a pool's tenant.
func (c *onAccount) wants(t testing.TB, pool string) *appsv1.Deployment {
	t.Helper()
	deployment, _ := nginxes(pool, 1)
	eventually(t, moments, "a team to be let in", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(c.member(t, "team-"+pool).Create(ctx, deployment.DeepCopy()))
	})
	return deployment
}

// fault injects a fault into the account until the test ends.
func (c *onAccount) fault(t testing.TB, kind string, flags ...string) {
	t.Helper()
	if err := c.AWSFault(t.Context(), kind, flags...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.AWSClear(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// logged waits until croft finds a cause in Karpenter's log, and returns it.
func (c *onAccount) logged(t testing.TB, id string) catalog.Finding {
	t.Helper()
	var found catalog.Finding
	eventually(t, patience, "croft why -f to find "+id+" in Karpenter's log", func(context.Context) error {
		out := c.croft(t, "why", "-o", "json", "-f", filepath.Join(c.Dir, "logs", "karpenter.log"))
		var said struct{ Findings []catalog.Finding }
		if err := json.Unmarshal([]byte(out.stdout), &said); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		i := slices.IndexFunc(said.Findings, func(f catalog.Finding) bool { return f.ID == id })
		if i < 0 {
			return fmt.Errorf("it says %s", out)
		}
		found = said.Findings[i]
		return nil
	})
	return found
}

// awsLaunch tests unavailable instances. Each shows only in an event of a NodeClaim that is
// deleted already.
func awsLaunch(t *testing.T, c *onAccount) {
	for _, test := range []struct {
		id, pool, capacity, kind string
		more                     []string
	}{
		{"insufficient-capacity", "scarce", "on-demand", "no-capacity", nil},
		{"account-quota", "counted", "on-demand", "vcpu-quota", []string{"--limit", "1"}},
		{"account-quota", "outbid", "spot", "spot-quota", nil},
		{"spot-service-linked-role", "unlinked", "spot", "spot-role-missing", nil},
	} {
		t.Run(test.pool, func(t *testing.T) {
			kind := map[string]string{"scarce": "m5.large", "counted": "m5.xlarge", "outbid": "m5.2xlarge", "unlinked": "m5.4xlarge"}[test.pool]
			c.fault(t, test.kind, append(test.more, "--type", kind)...)
			c.pool(t, test.pool, fmt.Sprintf("{instances: {capacityTypes: [%s], instanceTypes: [%s]}}", test.capacity, kind))
			c.wants(t, test.pool)
			c.tells(t, test.id, "", "deployment/nginx", "-n", test.pool)
		})
	}
}

// awsNode tests instances that do not become nodes.
func awsNode(t *testing.T, c *onAccount) {
	for _, test := range []struct {
		pool, kind string
		shows      func(testing.TB)
	}{
		// A delay of minutes is normal; `why` names the cause if it lasts longer.
		{"lost", "never-registers", func(t testing.TB) {
			c.pastBoot(t, "lost")
			c.waits(t, "not-registered", "deployment/nginx", "-n", "lost")
		}},
		{"mute", "never-ready", func(t testing.TB) { c.tells(t, "cni-not-initialized", "", "deployment/nginx", "-n", "mute") }},
		{"rash", "taint-lost", func(t testing.TB) { c.tells(t, "unregistered-taint-missing", "", "nodeclaim/"+c.claimOf(t, "rash")) }},
	} {
		t.Run(test.pool, func(t *testing.T) {
			kind := map[string]string{"lost": "r5.large", "mute": "r5.xlarge", "rash": "r5.2xlarge"}[test.pool]
			c.fault(t, test.kind, "--type", kind)
			c.pool(t, test.pool, "{instances: {instanceTypes: ["+kind+"]}}")
			c.wants(t, test.pool)
			test.shows(t)
		})
	}
}

// pastBoot waits until an instance of a pool has had enough time to register as a node.
func (c *onAccount) pastBoot(t testing.TB, pool string) {
	t.Helper()
	eventually(t, patience, "an instance of "+pool+" to have had its time", func(ctx context.Context) error {
		instances, err := c.AWSInstances(ctx)
		if err != nil {
			return err
		}
		for _, i := range instances {
			if i.Tags[karpenterv1.NodePoolLabelKey] == pool && time.Since(i.RegistersAt) > 2*time.Second {
				return nil
			}
		}
		return errors.New("there is none yet")
	})
}

// claimOf waits for a NodeClaim of a pool.
func (c *onAccount) claimOf(t testing.TB, pool string) string {
	t.Helper()
	var claims karpenterv1.NodeClaimList
	eventually(t, patience, "a NodeClaim of "+pool, func(ctx context.Context) error {
		err := c.admin.List(ctx, &claims, client.MatchingLabels{karpenterv1.NodePoolLabelKey: pool})
		if err == nil && len(claims.Items) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	return claims.Items[0].Name
}

// awsClass tests node classes that select missing resources.
func awsClass(t *testing.T, c *onAccount) {
	c.pool(t, "nowhere", `{nodeClass: {aws: {discovery: {karpenter.sh/discovery: another}}}}`)
	story := c.tells(t, "subnets-not-found", "", "nodepool/nowhere")
	ids := []string{}
	for _, step := range story.Steps {
		if step.Finding != nil {
			ids = append(ids, step.Finding.ID)
		}
	}
	if !slices.Contains(ids, "security-groups-not-found") {
		t.Errorf("it says nothing of security groups: %v", ids)
	}
	c.pool(t, "blank", `{nodeClass: {aws: {amiFamily: AL2023, amiSelectorTerms: [{tags: {of: nobody}}]}}}`)
	c.tells(t, "amis-not-found", "", "nodepool/blank")
	c.pool(t, "roleless", `{nodeClass: {aws: {role: NoSuchRole}}}`)
	c.logged(t, "role-not-found")
	// The members of a tenant do not get the details, but are referred to a platform admin.
	c.wants(t, "nowhere")
	_, out := c.asks(t, "team-nowhere", "deployment/nginx", "-n", "nowhere")
	if strings.Contains(out.stdout, "discovery") || !strings.Contains(out.stdout, "ask a platform admin") {
		t.Errorf("a team is told %s", out)
	}
}

// awsAuthorization tests calls that IAM does not allow. The first case is from document 004:
// the controller was never given its role, and calls with the role of the node that it runs on.
func awsAuthorization(t *testing.T, c *onAccount) {
	t.Run("unwired", func(t *testing.T) {
		c.fault(t, "unauthorized", "--action", "ec2:CreateLaunchTemplate", "--as-node")
		c.pool(t, "unwired", "{}")
		c.tells(t, "dry-run-denied", "", "nodepool/unwired")
		found := c.logged(t, catalog.UnauthorizedID)
		for text, part := range map[string]string{found.Cause: "the role KarpenterNodeRole-demo of the node i-0fa071d72e68e7a33", found.Fix: "service account"} {
			if !strings.Contains(text, part) {
				t.Errorf("it does not say %q: %+v", part, found)
			}
		}
	})
	t.Run("denied", func(t *testing.T) {
		c.fault(t, "unauthorized", "--action", "ec2:RunInstances", "--explicit-deny")
		c.pool(t, "denied", "{}")
		c.tells(t, "explicit-deny", "", "nodepool/denied")
	})
	t.Run("pass-role", func(t *testing.T) {
		c.fault(t, "pass-role-denied")
		c.pool(t, "unpassed", "{}")
		c.logged(t, "pass-role")
	})
}

// awsInstanceProfile tests missing instance profiles: the case of document 004, in which the
// profile has the name of a role, and a deleted profile.
func awsInstanceProfile(t *testing.T, c *onAccount) {
	t.Run("named-as-the-role", func(t *testing.T) {
		c.pool(t, "misnamed", "{nodeClass: {aws: {instanceProfile: eks-node-role-dev}}}")
		// Karpenter itself does not report it, not even in its log.
		story := c.tells(t, "instance-profile-name", "", "nodepool/misnamed")
		if !strings.Contains(story.First.Fix, "create-instance-profile") {
			t.Errorf("it says %+v", story.First)
		}
	})
	t.Run("removed", func(t *testing.T) {
		c.iam(t, "CreateInstanceProfile", url.Values{"InstanceProfileName": {"ours"}})
		c.iam(t, "AddRoleToInstanceProfile", url.Values{"InstanceProfileName": {"ours"}, "RoleName": {"KarpenterNodeRole-demo"}})
		c.pool(t, "bereft", "{instances: {instanceTypes: [c5.2xlarge]}, nodeClass: {aws: {instanceProfile: ours}}}")
		c.isReady(t, "bereft")
		c.pool(t, "patient", "{instances: {instanceTypes: [c5.4xlarge]}}")
		c.isReady(t, "patient")
		// Without the operator, nothing holds the launches of the pool (TestRefusedLaunches).
		if err := c.Stop("croft"); err != nil {
			t.Fatal(err)
		}
		c.iam(t, "RemoveRoleFromInstanceProfile", url.Values{"InstanceProfileName": {"ours"}, "RoleName": {"KarpenterNodeRole-demo"}})
		c.iam(t, "DeleteInstanceProfile", url.Values{"InstanceProfileName": {"ours"}})
		c.wants(t, "bereft")
		c.tells(t, "instance-profile-name", "", "deployment/nginx", "-n", "bereft")
		// Karpenter retries this for minutes, and creates no nodes for other pods meanwhile.
		c.wants(t, "patient")
		story := c.tells(t, "provisioning-held", "", "deployment/nginx", "-n", "patient")
		if !strings.Contains(story.First.Symptom, "of pool bereft") {
			t.Errorf("it does not say whose: %+v", story.First)
		}
		if err := c.Start("croft"); err != nil {
			t.Fatal(err)
		}
		c.running(t, "patient", 1)
	})
}

// isReady waits until the NodePool of a pool is ready.
func (c *onAccount) isReady(t testing.TB, pool string) {
	t.Helper()
	eventually(t, patience, "NodePool "+pool+" to be ready", func(ctx context.Context) error {
		var live karpenterv1.NodePool
		if err := c.admin.Get(ctx, client.ObjectKey{Name: pool}, &live); err != nil {
			return err
		}
		for _, condition := range live.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == metav1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("it is %+v", live.Status.Conditions)
	})
}

// iam calls the IAM API. The simulated account does not check the signature.
func (c *onAccount) iam(t testing.TB, action string, form url.Values) {
	t.Helper()
	account, err := c.Component(sandbox.AWS)
	if err != nil {
		t.Fatal(err)
	}
	form.Set("Action", action)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, account.Address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIATEST/20260101/us-east-1/iam/aws4_request")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", action, resp.Status)
	}
}

// awsSubnetFull runs last: Karpenter avoids subnets that were full for minutes.
func awsSubnetFull(t *testing.T, c *onAccount) {
	c.fault(t, "subnet-full", "--type", "c5.large")
	c.pool(t, "crowded", "{instances: {instanceTypes: [c5.large]}}")
	c.wants(t, "crowded")
	c.tells(t, "subnet-full", "", "deployment/nginx", "-n", "crowded")
}
