package boot

import (
	"encoding/base64"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/journal"
)

// The user data that Karpenter writes, from the launch templates of a sandbox.
const (
	al2023 = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo hello
--//
Content-Type: application/node.eks.aws

# Karpenter Generated NodeConfig
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: demo
  kubelet:
    config:
      clusterDNS:
      - 10.100.0.10
      maxPods: 29
      registerWithTaints:
      - effect: NoSchedule
        key: pool
        value: a
      - effect: NoExecute
        key: karpenter.sh/unregistered
    flags:
    - --node-labels="karpenter.sh/nodepool=a,cost=team-a"

--//--
`
	al2 = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash -xe
/etc/eks/bootstrap.sh 'demo' --apiserver-endpoint 'https://x' --kubelet-extra-args '--node-labels="karpenter.sh/nodepool=a,cost=team-a" --register-with-taints="pool=a:NoSchedule,karpenter.sh/unregistered:NoExecute"'
--//--
`
	bottlerocket = `[settings]
[settings.kubernetes]
cluster-name = 'demo'
max-pods = 29
[settings.kubernetes.node-labels]
'karpenter.sh/nodepool' = 'a'
cost = 'team-a'
[settings.kubernetes.node-taints]
pool = ['a:NoSchedule']
'karpenter.sh/unregistered' = [':NoExecute']
`
)

func TestReadUserData(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		pods int64
	}{string(journal.AmazonLinux2023): {al2023, 29}, string(journal.AmazonLinux2): {al2, 0}, string(journal.Bottlerocket): {bottlerocket, 29}} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadUserData(base64.StdEncoding.EncodeToString([]byte(test.text)))
			if err != nil {
				t.Fatal(err)
			}
			if want := map[string]string{"karpenter.sh/nodepool": "a", "cost": "team-a"}; !maps.Equal(got.Labels, want) {
				t.Errorf("labels %v", got.Labels)
			}
			for _, want := range []corev1.Taint{
				{Key: "pool", Value: "a", Effect: corev1.TaintEffectNoSchedule}, {Key: unregistered, Effect: corev1.TaintEffectNoExecute},
			} {
				if !slices.Contains(got.Taints, want) {
					t.Errorf("taints %v, without %v", got.Taints, want)
				}
			}
			if string(got.System) != name {
				t.Errorf("it is taken for %s", got.System)
			}
			if got.MaxPods != test.pods {
				t.Errorf("%d pods", got.MaxPods)
			}
		})
	}
}

func TestReadUserDataRefuses(t *testing.T) {
	for name, encoded := range map[string]string{
		"not base64":           "%",
		"a taint, no effect":   base64.StdEncoding.EncodeToString([]byte("--register-with-taints=pool=a")),
		"no boundary":          base64.StdEncoding.EncodeToString([]byte("MIME-Version: 1.0\n\nx")),
		"a NodeConfig, broken": base64.StdEncoding.EncodeToString([]byte("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\nContent-Type: application/node.eks.aws\n\n\tx: [\n--b--\n")),
		"TOML, broken":         base64.StdEncoding.EncodeToString([]byte("[settings\n")),
	} {
		t.Run(name, func(t *testing.T) {
			if k, err := ReadUserData(encoded); err == nil {
				t.Errorf("it was read as %+v", k)
			}
		})
	}
}

func FuzzReadUserData(f *testing.F) {
	for _, text := range []string{al2023, al2, bottlerocket, ""} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = ReadUserData(base64.StdEncoding.EncodeToString([]byte(text))) // it must not panic
	})
}

func TestBuildNode(t *testing.T) {
	i := &account.Instance{
		ID: "i-1", Type: "m5.large", Arch: "x86_64", Zone: "us-west-2a", IP: "10.0.0.4", ReadyAt: time.Unix(1000, 0),
		Data: account.TemplateData{UserData: base64.StdEncoding.EncodeToString([]byte(al2023))},
	}
	node, system, err := BuildNode(i, "us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	if node.Name != "ip-10-0-0-4.us-west-2.compute.internal" || node.Spec.ProviderID != "aws:///us-west-2a/i-1" || len(node.Spec.Taints) != 2 || system != journal.AmazonLinux2023 ||
		node.Labels[corev1.LabelInstanceTypeStable] != "m5.large" || node.Status.Capacity.Pods().Value() != 29 ||
		node.Annotations["sandbox.croft.dev/ready-at"] != "1970-01-01T00:16:40Z" {
		t.Errorf("%+v", node)
	}
	i.Untainted, i.Unready = true, true
	node, _, err = BuildNode(i, "us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	if len(node.Spec.Taints) != 1 || node.Annotations["sandbox.croft.dev/ready-at"] < "1979" {
		t.Errorf("%+v", node)
	}
}
