package component

import (
	"encoding/base64"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/sandbox/internal/bootstrap"
	"croft.dev/croft/sandbox/internal/supervisor"
)

// AWSRegion is where the simulated account has everything.
const AWSRegion = "us-west-2"

// AWSQueue is the name of the queue that interruptions are told by, of the
// cluster's name, as Karpenter's documentation has it.
func AWSQueue(cluster string) string { return cluster }

// cloudSpec is the simulated AWS account.
func (s *Sandbox) cloudSpec() (supervisor.Spec, error) {
	address := s.address("http", Cloud)
	probe := newProber(nil)
	return supervisor.Spec{
		Address: address,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(Cloud); err != nil {
				return nil, err
			}
			return s.command(Cloud, []string{
				"--dir=" + s.home.Dir,
				"--address=" + s.ports.Address(Cloud),
				"--cluster=" + s.config.AWS.Cluster,
				"--region=" + AWSRegion,
				"--zones=" + strings.Join(s.config.Zones, ","),
				"--speed=" + strconv.FormatFloat(s.config.AWS.Speed, 'g', -1, 64),
				"--queue=" + AWSQueue(s.config.AWS.Cluster),
				"--cluster-endpoint=https://" + s.ports.Address(APIServer),
				"--cluster-ca=" + base64.StdEncoding.EncodeToString(s.cluster.PEM()),
				"--service-range=" + serviceRange,
			}), nil
		},
		Ready: probe.answers(address, "/sandbox/healthz"),
	}, nil
}

// karpenterAWSSpec is Karpenter with its AWS provider, in a program of its own:
// the provider changes what Karpenter takes for a known label.
func (s *Sandbox) karpenterAWSSpec() (supervisor.Spec, error) {
	address := s.address("http", karpenterHealth)
	return supervisor.Spec{
		Address: address,
		// It takes seconds to end its loops, and has nothing to finish.
		Grace: 500 * time.Millisecond,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(karpenterHealth, karpenterMetrics); err != nil {
				return nil, err
			}
			cmd := exec.Command(s.config.AWS.Karpenter, s.karpenterArgs()...)
			cmd.Dir = s.home.Dir
			cmd.Env = slices.Concat(cleanEnv(), karpenterEnv, s.awsEnv("AKIASANDBOX"), []string{
				"CLUSTER_NAME=" + s.config.AWS.Cluster,
				"INTERRUPTION_QUEUE=" + AWSQueue(s.config.AWS.Cluster),
			})
			return cmd, nil
		},
		Ready: newProber(nil).isReady(address),
	}, nil
}

// awsEnv is how a program finds the simulated account, and nobody's own one. The key
// tells whose calls are whose.
func (s *Sandbox) awsEnv(key string) []string {
	return []string{
		"AWS_REGION=" + AWSRegion,
		"AWS_ENDPOINT_URL=http://" + s.ports.Address(Cloud),
		"AWS_ACCESS_KEY_ID=" + key,
		"AWS_SECRET_ACCESS_KEY=sandbox",
		// Without the user's own configuration, and without instance metadata.
		"AWS_CONFIG_FILE=" + s.home.Etc("no-aws-config"),
		"AWS_SHARED_CREDENTIALS_FILE=" + s.home.Etc("no-aws-credentials"),
		"AWS_EC2_METADATA_DISABLED=true",
	}
}

// awsObjects are the definitions of the AWS provider's kinds, as its program has
// them.
func (s *Sandbox) awsObjects() ([]*unstructured.Unstructured, error) {
	if s.config.AWS == nil {
		return nil, nil
	}
	content, err := exec.Command(s.config.AWS.Karpenter, "crds").Output()
	if err != nil {
		return nil, err
	}
	return bootstrap.Decode(content)
}
