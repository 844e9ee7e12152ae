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

// AWSRegion is the only region of the simulated account.
const AWSRegion = "us-west-2"

// NameAWSQueue returns the name of the interruption queue: the cluster's name, as in
// Karpenter's documentation.
func NameAWSQueue(cluster string) string { return cluster }

// buildCloudSpec runs the simulated AWS account.
func (s *Sandbox) buildCloudSpec() (supervisor.Spec, error) {
	address := s.makeAddressFunc("http", Cloud)
	probe := newProber(nil)
	return supervisor.Spec{
		Address: address,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(Cloud); err != nil {
				return nil, err
			}
			return s.buildCommand(Cloud, []string{
				"--dir=" + s.home.Dir,
				"--address=" + s.ports.Address(Cloud),
				"--cluster=" + s.config.AWS.Cluster,
				"--region=" + AWSRegion,
				"--zones=" + strings.Join(s.config.Zones, ","),
				"--speed=" + strconv.FormatFloat(s.config.AWS.Speed, 'g', -1, 64),
				"--queue=" + NameAWSQueue(s.config.AWS.Cluster),
				"--cluster-endpoint=https://" + s.ports.Address(APIServer),
				"--cluster-ca=" + base64.StdEncoding.EncodeToString(s.cluster.EncodePEM()),
				"--service-range=" + serviceRange,
			}), nil
		},
		Ready: probe.checkPath(address, "/sandbox/healthz"),
	}, nil
}

// buildKarpenterAWSSpec runs Karpenter with its AWS provider, in a program of its own:
// the provider changes Karpenter's set of known labels.
func (s *Sandbox) buildKarpenterAWSSpec() (supervisor.Spec, error) {
	address := s.makeAddressFunc("http", karpenterHealth)
	return supervisor.Spec{
		Address: address,
		// Karpenter takes seconds to end its loops, and has no work to finish.
		Grace: 500 * time.Millisecond,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(karpenterHealth, karpenterMetrics); err != nil {
				return nil, err
			}
			cmd := exec.Command(s.config.AWS.Karpenter, s.buildKarpenterArgs()...)
			cmd.Dir = s.home.Dir
			cmd.Env = slices.Concat(filterEnv(), karpenterEnv, s.buildAWSEnv("AKIASANDBOX"), []string{
				"CLUSTER_NAME=" + s.config.AWS.Cluster,
				"INTERRUPTION_QUEUE=" + NameAWSQueue(s.config.AWS.Cluster),
			})
			return cmd, nil
		},
		Ready: newProber(nil).checkReadyz(address),
	}, nil
}

// buildAWSEnv returns the environment with which a program uses the simulated account, and never the
// user's own account. The access key identifies the program.
func (s *Sandbox) buildAWSEnv(key string) []string {
	return []string{
		"AWS_REGION=" + AWSRegion,
		"AWS_ENDPOINT_URL=http://" + s.ports.Address(Cloud),
		"AWS_ACCESS_KEY_ID=" + key,
		"AWS_SECRET_ACCESS_KEY=sandbox",
		// Neither the user's own configuration nor instance metadata is used.
		"AWS_CONFIG_FILE=" + s.home.Etc("no-aws-config"),
		"AWS_SHARED_CREDENTIALS_FILE=" + s.home.Etc("no-aws-credentials"),
		"AWS_EC2_METADATA_DISABLED=true",
	}
}

// readAWSObjects returns the AWS provider's CRDs, which its program prints.
func (s *Sandbox) readAWSObjects() ([]*unstructured.Unstructured, error) {
	if s.config.AWS == nil {
		return nil, nil
	}
	content, err := exec.Command(s.config.AWS.Karpenter, "crds").Output()
	if err != nil {
		return nil, err
	}
	return bootstrap.Decode(content)
}
