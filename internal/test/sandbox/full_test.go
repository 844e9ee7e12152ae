package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// workload is a pool, and a tenant's pods that may and must run there.
const workload = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: apps}
spec:
  template:
    metadata: {labels: {croft.node-restriction.kubernetes.io/pool: apps}}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      taints: [{key: croft.node-restriction.kubernetes.io/pool, value: apps, effect: NoSchedule}]
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [t3a.large]}
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [t]}
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {croft.node-restriction.kubernetes.io/pool: apps}
      tolerations: [{key: croft.node-restriction.kubernetes.io/pool, operator: Exists}]
      containers: [{name: web, image: nginx, resources: {requests: {cpu: 100m}}}]
`

func TestFull(t *testing.T) {
	EndToEnd(t)
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	c := Start(t, Options{Components: Full})
	manifest := filepath.Join(t.TempDir(), "workload.yaml")
	if err := os.WriteFile(manifest, []byte(workload), 0o600); err != nil {
		t.Fatal(err)
	}
	runKubectl(t, c, "apply", "-f", manifest)
	runKubectl(t, c, "wait", "--for=condition=Available", "deployment/web", "--timeout=60s")

	node := `{.metadata.labels.node\.kubernetes\.io/instance-type} {.metadata.labels.karpenter\.sh/nodepool} {.status.conditions[?(@.type=="Ready")].status}`
	if got := runKubectl(t, c, "get", "nodes", "-o", "jsonpath={range .items[*]}"+node+"{end}"); got != "t3a.large apps True" {
		t.Errorf("the pods run on %q, want one ready t3a.large of the pool apps", got)
	}

	t.Run("files are readable by the owner only", func(t *testing.T) { checkModes(t, c.Dir) })
	t.Run("a killed supervisor stops its processes", func(t *testing.T) {
		before := listProcesses(t, c.Dir)
		if len(before) != 7 {
			t.Fatalf("%d processes, want a supervisor and six components: %v", len(before), before)
		}
		for pid, args := range before {
			if strings.HasSuffix(args, " supervise") {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
		}
		awaitEnd(t, c.Dir)
	})
	t.Run("objects exist after a restart", func(t *testing.T) {
		again := Start(t, Options{Dir: c.Dir})
		if again.Config.Host != c.Config.Host {
			t.Errorf("the address changed from %s to %s", c.Config.Host, again.Config.Host)
		}
		runKubectl(t, c, "get", "nodepool/apps", "deployment/web")
	})
}

func runKubectl(t *testing.T, c *Cluster, args ...string) string {
	t.Helper()
	out, err := c.Kubectl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// awaitEnd waits until no process has the directory among its arguments. A process releases its
// lock, after which `croft-sandbox down` returns, a moment before the kernel removes it.
func awaitEnd(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); len(listProcesses(t, dir)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still there: %v", listProcesses(t, dir))
		}
	}
}

// listProcesses returns the running processes whose arguments contain the directory.
func listProcesses(t *testing.T, dir string) map[int]string {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-ww", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		t.Skipf("ps: %v", err)
	}
	found := map[int]string{}
	for line := range strings.Lines(string(out)) {
		pid, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		stat, args, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if !strings.Contains(args, dir) || strings.HasPrefix(stat, "Z") {
			continue
		}
		id, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		found[id] = strings.TrimSpace(args)
	}
	return found
}

func checkModes(t *testing.T, dir string) {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			return fmt.Errorf("others may use %s: %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
