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

// accountCluster is a sandbox on a simulated account in which AWS calls fail. Karpenter remembers
// for minutes which instance types were unavailable and which node class was refused, so each
// case has a pool with instance types of its own.
type accountCluster struct{ *faultyCluster }

// TestWhyOnAWS fails if `croft why` does not name the cause when AWS refuses a call of
// Karpenter's AWS provider.
func TestWhyOnAWS(t *testing.T) {
	sandbox.Thorough(t)
	t.Parallel() // it mostly waits
	box := startSandbox(t, sandbox.Options{Croft: findCroftBinary(t), With: []string{sandbox.AWS}, AWSSpeed: awsSpeed})
	c := &accountCluster{&faultyCluster{&twoTenants{cluster: box}}}
	c.configureAWSClient(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *accountCluster)
	}{
		{"launch", testAWSLaunch},
		{"node", testAWSNode},
		{"class", testAWSClass},
		{"authorization", testAWSAuthorization},
		{"instance-profile", testAWSInstanceProfile},
		{"subnet-full", testAWSSubnetFull},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// configureAWSClient configures croft's AWS client for the account, so that it can decode AWS's
// messages.
func (c *cluster) configureAWSClient(t *testing.T) {
	account, err := c.Component(sandbox.AWS)
	if err != nil {
		t.Fatal(err)
	}
	c.env = append(c.env,
		"AWS_ENDPOINT_URL="+account.Address, "AWS_REGION=us-west-2", "AWS_ACCESS_KEY_ID=AKIATEST", "AWS_SECRET_ACCESS_KEY=secret")
}

// declarePool declares a pool, and a tenant of the same name on it.
func (c *accountCluster) declarePool(t testing.TB, name, spec string) {
	t.Helper()
	c.runCroftWithInput(t, poolFile(name, spec), "apply", "-f", "-", "--wait=false").expectExit(t, 0)
	c.awaitServiceAccount(t, name)
}

// poolFile declares a pool, and a tenant of the same name on it.
func poolFile(name, spec string) string {
	return fmt.Sprintf("%spools:\n  %s: %s\ntenants:\n  %s: {pool: %s, access: [{group: team-%s, role: operator}]}\n",
		awsPlatform, name, spec, name, name, name)
}

// createDeployment creates a Deployment of one pod in a pool's tenant.
func (c *accountCluster) createDeployment(t testing.TB, pool string) *appsv1.Deployment {
	t.Helper()
	deployment, _ := newNginxDeployment(pool, 1)
	awaitCondition(t, moments, "a team to be let in", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(c.newMemberClient(t, "team-"+pool).Create(ctx, deployment.DeepCopy()))
	})
	return deployment
}

// injectFault injects a fault into the account until the test ends.
func (c *accountCluster) injectFault(t testing.TB, kind string, flags ...string) {
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

// awaitLoggedCause waits until croft finds a cause in Karpenter's log, and returns it.
func (c *accountCluster) awaitLoggedCause(t testing.TB, id string) catalog.Finding {
	t.Helper()
	var found catalog.Finding
	awaitCondition(t, patience, "croft why -f to find "+id+" in Karpenter's log", func(context.Context) error {
		out := c.runCroft(t, "why", "-o", "json", "-f", filepath.Join(c.Dir, "logs", "karpenter.log"))
		var report struct{ Findings []catalog.Finding }
		if err := json.Unmarshal([]byte(out.stdout), &report); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		i := slices.IndexFunc(report.Findings, func(f catalog.Finding) bool { return f.ID == id })
		if i < 0 {
			return fmt.Errorf("it prints %s", out)
		}
		found = report.Findings[i]
		return nil
	})
	return found
}

// testAWSLaunch tests unavailable instances. Each shows only in an event of a NodeClaim that is
// deleted already.
func testAWSLaunch(t *testing.T, c *accountCluster) {
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
			c.injectFault(t, test.kind, append(test.more, "--type", kind)...)
			c.declarePool(t, test.pool, fmt.Sprintf("{instances: {capacityTypes: [%s], instanceTypes: [%s]}}", test.capacity, kind))
			c.createDeployment(t, test.pool)
			c.awaitCause(t, test.id, "", "deployment/nginx", "-n", test.pool)
		})
	}
}

// testAWSNode tests instances that do not become nodes.
func testAWSNode(t *testing.T, c *accountCluster) {
	for _, test := range []struct {
		pool, kind string
		shows      func(testing.TB)
	}{
		// A delay of minutes is normal; `why` names the cause if it lasts longer.
		{"lost", "never-registers", func(t testing.TB) {
			c.awaitBootTime(t, "lost")
			c.awaitStep(t, "not-registered", "deployment/nginx", "-n", "lost")
		}},
		{"mute", "never-ready", func(t testing.TB) { c.awaitCause(t, "cni-not-initialized", "", "deployment/nginx", "-n", "mute") }},
		{"rash", "taint-lost", func(t testing.TB) {
			c.awaitCause(t, "unregistered-taint-missing", "", "nodeclaim/"+c.awaitNodeClaim(t, "rash"))
		}},
	} {
		t.Run(test.pool, func(t *testing.T) {
			kind := map[string]string{"lost": "r5.large", "mute": "r5.xlarge", "rash": "r5.2xlarge"}[test.pool]
			c.injectFault(t, test.kind, "--type", kind)
			c.declarePool(t, test.pool, "{instances: {instanceTypes: ["+kind+"]}}")
			c.createDeployment(t, test.pool)
			test.shows(t)
		})
	}
}

// awaitBootTime waits until an instance of a pool has had enough time to register as a node.
func (c *accountCluster) awaitBootTime(t testing.TB, pool string) {
	t.Helper()
	awaitCondition(t, patience, "an instance of "+pool+" to have had its time", func(ctx context.Context) error {
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

// awaitNodeClaim waits for a NodeClaim of a pool.
func (c *accountCluster) awaitNodeClaim(t testing.TB, pool string) string {
	t.Helper()
	var claims karpenterv1.NodeClaimList
	awaitCondition(t, patience, "a NodeClaim of "+pool, func(ctx context.Context) error {
		err := c.admin.List(ctx, &claims, client.MatchingLabels{karpenterv1.NodePoolLabelKey: pool})
		if err == nil && len(claims.Items) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	return claims.Items[0].Name
}

// testAWSClass tests node classes that select missing resources.
func testAWSClass(t *testing.T, c *accountCluster) {
	c.declarePool(t, "nowhere", `{nodeClass: {aws: {discovery: {karpenter.sh/discovery: another}}}}`)
	story := c.awaitCause(t, "subnets-not-found", "", "nodepool/nowhere")
	ids := []string{}
	for _, step := range story.Steps {
		if step.Finding != nil {
			ids = append(ids, step.Finding.ID)
		}
	}
	if !slices.Contains(ids, "security-groups-not-found") {
		t.Errorf("no step is about security groups: %v", ids)
	}
	c.declarePool(t, "blank", `{nodeClass: {aws: {amiFamily: AL2023, amiSelectorTerms: [{tags: {of: nobody}}]}}}`)
	c.awaitCause(t, "amis-not-found", "", "nodepool/blank")
	c.declarePool(t, "roleless", `{nodeClass: {aws: {role: NoSuchRole}}}`)
	c.awaitLoggedCause(t, "role-not-found")
	// The members of a tenant do not get the details, but are referred to a platform admin.
	c.createDeployment(t, "nowhere")
	_, out := c.explainAs(t, "team-nowhere", "deployment/nginx", "-n", "nowhere")
	if strings.Contains(out.stdout, "discovery") || !strings.Contains(out.stdout, "ask a platform admin") {
		t.Errorf("a team gets %s", out)
	}
}

// testAWSAuthorization tests calls that IAM does not allow. The first case is from document 004:
// the controller was never given its role, and calls with the role of the node that it runs on.
func testAWSAuthorization(t *testing.T, c *accountCluster) {
	t.Run("unwired", func(t *testing.T) {
		c.injectFault(t, "unauthorized", "--action", "ec2:CreateLaunchTemplate", "--as-node")
		c.declarePool(t, "unwired", "{}")
		c.awaitCause(t, "dry-run-denied", "", "nodepool/unwired")
		found := c.awaitLoggedCause(t, catalog.UnauthorizedID)
		for text, part := range map[string]string{found.Cause: "the role KarpenterNodeRole-demo of the node i-0fa071d72e68e7a33", found.Fix: "service account"} {
			if !strings.Contains(text, part) {
				t.Errorf("want %q in %+v", part, found)
			}
		}
	})
	t.Run("denied", func(t *testing.T) {
		c.injectFault(t, "unauthorized", "--action", "ec2:RunInstances", "--explicit-deny")
		c.declarePool(t, "denied", "{}")
		c.awaitCause(t, "explicit-deny", "", "nodepool/denied")
	})
	t.Run("pass-role", func(t *testing.T) {
		c.injectFault(t, "pass-role-denied")
		c.declarePool(t, "unpassed", "{}")
		c.awaitLoggedCause(t, "pass-role")
	})
}

// testAWSInstanceProfile tests missing instance profiles: the case of document 004, in which the
// profile has the name of a role, and a deleted profile.
func testAWSInstanceProfile(t *testing.T, c *accountCluster) {
	t.Run("named-as-the-role", func(t *testing.T) {
		c.declarePool(t, "misnamed", "{nodeClass: {aws: {instanceProfile: eks-node-role-dev}}}")
		// Karpenter itself does not report it, not even in its log.
		story := c.awaitCause(t, "instance-profile-name", "", "nodepool/misnamed")
		if !strings.Contains(story.First.Fix, "create-instance-profile") {
			t.Errorf("the first cause is %+v", story.First)
		}
	})
	t.Run("removed", func(t *testing.T) {
		c.callIAM(t, "CreateInstanceProfile", url.Values{"InstanceProfileName": {"ours"}})
		c.callIAM(t, "AddRoleToInstanceProfile", url.Values{"InstanceProfileName": {"ours"}, "RoleName": {"KarpenterNodeRole-demo"}})
		c.declarePool(t, "bereft", "{instances: {instanceTypes: [c5.2xlarge]}, nodeClass: {aws: {instanceProfile: ours}}}")
		c.awaitNodePoolReady(t, "bereft")
		c.declarePool(t, "patient", "{instances: {instanceTypes: [c5.4xlarge]}}")
		c.awaitNodePoolReady(t, "patient")
		// Without the operator, nothing holds the launches of the pool (TestRefusedLaunches).
		if err := c.Stop("croft"); err != nil {
			t.Fatal(err)
		}
		c.callIAM(t, "RemoveRoleFromInstanceProfile", url.Values{"InstanceProfileName": {"ours"}, "RoleName": {"KarpenterNodeRole-demo"}})
		c.callIAM(t, "DeleteInstanceProfile", url.Values{"InstanceProfileName": {"ours"}})
		c.createDeployment(t, "bereft")
		c.awaitCause(t, "instance-profile-name", "", "deployment/nginx", "-n", "bereft")
		// Karpenter retries this for minutes, and creates no nodes for other pods meanwhile.
		c.createDeployment(t, "patient")
		story := c.awaitCause(t, "provisioning-held", "", "deployment/nginx", "-n", "patient")
		if !strings.Contains(story.First.Symptom, "of pool bereft") {
			t.Errorf("the symptom does not name the pool: %+v", story.First)
		}
		if err := c.Start("croft"); err != nil {
			t.Fatal(err)
		}
		c.awaitRunningPods(t, "patient", 1)
	})
}

// awaitNodePoolReady waits until the NodePool of a pool is ready.
func (c *accountCluster) awaitNodePoolReady(t testing.TB, pool string) {
	t.Helper()
	awaitCondition(t, patience, "NodePool "+pool+" to be ready", func(ctx context.Context) error {
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

// callIAM calls the IAM API. The simulated account does not check the signature.
func (c *accountCluster) callIAM(t testing.TB, action string, form url.Values) {
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

// testAWSSubnetFull runs last: Karpenter avoids subnets that were full for minutes.
func testAWSSubnetFull(t *testing.T, c *accountCluster) {
	c.injectFault(t, "subnet-full", "--type", "c5.large")
	c.declarePool(t, "crowded", "{instances: {instanceTypes: [c5.large]}}")
	c.createDeployment(t, "crowded")
	c.awaitCause(t, "subnet-full", "", "deployment/nginx", "-n", "crowded")
}
