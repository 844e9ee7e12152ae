package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/test/sandbox"
)

// byHand creates the first two published set-ups: two namespaces, each with a pool of its own
// and Gatekeeper Assigns that place the pods there, and the workloads.
func (c *cluster) byHand(t *testing.T) {
	t.Helper()
	c.kubectl(t, "", "create", "-f", "internal/test/e2e/testdata/adopt/nodepools.yaml").exits(t, 0)
	set := filepath.Join(documents, "000")
	for _, letter := range []string{"a", "b"} {
		namespace := "tenant-" + letter
		c.kubectl(t, "", "create", "ns", namespace).exits(t, 0)
		// The file names another namespace than the document's command line.
		denyAll := strings.Replace(read(t, filepath.Join(set, "deny-all.yaml")), "  namespace: default\n", "", 1)
		c.kubectl(t, denyAll, "create", "-n", namespace, "-f", "-").exits(t, 0)
		c.kubectl(t, "", "create", "-n", namespace, "-f", filepath.Join(set, "allow-dns-access.yaml")).exits(t, 0)
		for _, assign := range []string{"selector", "toleration"} {
			c.kubectl(t, "", "create", "-f", filepath.Join(set, "nodepool-"+assign+"-pool-"+letter+".yaml")).exits(t, 0)
		}
	}
	for _, letter := range []string{"a", "b"} {
		c.placesPods(t, "tenant-"+letter, "node-pool", "pool-"+letter)
		c.kubectl(t, "", "create", "deployment", "nginx", "--image=nginx", "--replicas", "3", "-n", "tenant-"+letter).exits(t, 0)
		c.kubectl(t, "", "expose", "deployment", "nginx", "--port=8080", "--target-port=80", "-n", "tenant-"+letter).exits(t, 0)
	}
	c.kubectl(t, "", "create", "-f", filepath.Join(documents, "001", "06-pod-arm64-spot-test.yaml")).exits(t, 0)
	c.running(t, "tenant-a", 4)
	c.running(t, "tenant-b", 3)
}

// TestLiveMigration adopts a cluster that was set up by hand, tenant by tenant, while its
// workloads run, and undoes one adoption. It fails if a pod restarts or a node is deleted, if a
// replaced object remains, or if undoing does not restore the previous state.
func TestLiveMigration(t *testing.T) {
	t.Parallel() // it mostly waits
	sandbox.Thorough(t)
	for _, engine := range []v1alpha1.PlacementEngine{v1alpha1.PlacementNative, v1alpha1.PlacementGatekeeper} {
		t.Run(string(engine), func(t *testing.T) { testLiveMigration(t, engine) })
	}
}

func testLiveMigration(t *testing.T, engine v1alpha1.PlacementEngine) {
	c := startWithGatekeeper(t)
	c.byHand(t)
	steady := c.steady(t)
	before := c.left(t)

	out := filepath.Join(t.TempDir(), "migrated")
	c.croft(t, "migrate", "--live", "--cluster-name", "sandbox", "-o", out).exits(t, 0)
	file := filepath.Join(out, "croft.yaml")
	content := strings.Replace(readFile(t, file), "  clusterName: sandbox\n", "  clusterName: sandbox\n  placement: "+string(engine)+"\n", 1)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}

	said := c.croft(t, "adopt", "tenant", "tenant-a", "-f", file, "--dry-run").exits(t, 0)
	for _, line := range []string{
		"Deployment/nginx", "Pod/arm64-spot-test", "stays on pool-a", "deleted with --remove-old", "Assign nodepool-selector-pool-a",
		"its budget prevents the replacement of running nodes",
	} {
		if !strings.Contains(said.stdout, line) {
			t.Errorf("the plan does not say %q: %s", line, said)
		}
	}
	areSame(t, "a dry run changed something", before, c.left(t))

	c.croft(t, "adopt", "tenant", "tenant-a", "-f", file, "--yes", "--remove-old").exits(t, 0)
	// --remove-old deletes the old objects of tenant-a. The objects of tenant-b are still
	// unchanged.
	if marks := marksOf(c.namespace(t, "tenant-b")); len(marks) > 0 {
		t.Errorf("tenant-b was touched before its turn: %v", marks)
	}
	now := c.left(t)
	c.croft(t, "adopt", "tenant", "tenant-b", "-f", file, "--dry-run").exits(t, 0)
	areSame(t, "a dry run that tries the rules left something", now, c.left(t))
	c.croft(t, "adopt", "tenant", "tenant-b", "-f", file, "--yes").exits(t, 0)
	c.placesPods(t, "tenant-b", "node-pool", "pool-b")
	if said := c.croft(t, "adopt", "tenant", "tenant-b", "-f", file, "--yes", "--remove-old").exits(t, 0); !strings.Contains(said.stdout, "already belongs to the tenant") {
		t.Errorf("the second go does not know of the first: %s", said)
	}

	c.gone(t, "tenant-a", "tenant-b")
	for _, letter := range []string{"a", "b"} {
		pod := nginx("tenant-"+letter, "new")
		create(t, c.admin, pod)
		isPlaced(t, c.runs(t, pod), "node-pool", "pool-"+letter)
	}
	eventually(t, patience, "every wall to hold", func(context.Context) error {
		if said := c.croft(t, "verify"); said.status != 0 {
			return errors.New(said.String())
		}
		return nil
	})

	c.croft(t, "adopt", "tenant", "tenant-a", "--undo", "--yes").exits(t, 0)
	areSame(t, "tenant-a after --undo", about(before, "tenant-a", "pool-a"), about(c.left(t), "tenant-a", "pool-a"))
	if marks := marksOf(c.namespace(t, "tenant-a")); len(marks) > 0 {
		t.Errorf("tenant-a was given back with %v", marks)
	}
	if left := c.everything(t, ours).in("tenant-a"); len(left) > 0 {
		t.Errorf("tenant-a was given back with %s", left)
	}
	c.placesPods(t, "tenant-a", "node-pool", "pool-a")
	pod := nginx("tenant-a", "newer")
	create(t, c.admin, pod)
	isPlaced(t, c.runs(t, pod), "node-pool", "pool-a")
	steady.end(t)
}

// left returns the content of all objects that users or croft write: a dry run must not change
// them. Objects that components write constantly are left out.
func (c *cluster) left(t *testing.T) map[apply.Ref]string {
	t.Helper()
	state := map[apply.Ref]string{}
	for ref, o := range c.everything(t) {
		switch ref.Kind {
		case "Event", "Lease", "Node", "NodeClaim", "CSINode", "PodMetrics", "NodeMetrics", "Endpoints", "EndpointSlice", "NodePool", "Pod", "ReplicaSet",
			"MutatorPodStatus", "ConstraintPodStatus", "ConstraintTemplatePodStatus", "ConfigPodStatus", "APIService", "ControllerRevision":
			continue
		}
		state[ref] = fmt.Sprintf("generation %d, labels %v, annotations %v", o.Generation, o.Labels, o.Annotations)
		if ref.Kind == "Namespace" || ref.Kind == "ConfigMap" {
			state[ref] += ", version " + o.ResourceVersion
		}
	}
	return state
}

// about returns the objects of a namespace and the Assigns of its pool, without the resource
// versions, which a write and its undoing change.
func about(all map[apply.Ref]string, namespace, pool string) map[apply.Ref]string {
	some := maps.Clone(all)
	for ref, state := range some {
		if ref.Namespace != namespace && (ref.Name != namespace || ref.Kind != "Namespace") && (ref.Kind != "Assign" || !strings.HasSuffix(ref.Name, pool)) ||
			strings.HasPrefix(ref.Kind, "PodTemplate") {
			delete(some, ref)
			continue
		}
		some[ref], _, _ = strings.Cut(state, ", version")
	}
	return some
}

func (c *cluster) namespace(t *testing.T, name string) *corev1.Namespace {
	t.Helper()
	var live corev1.Namespace
	c.get(t, "", name, &live)
	return &live
}

// gone fails the test if an object that the walls replace still exists.
func (c *cluster) gone(t *testing.T, namespaces ...string) {
	t.Helper()
	for ref, o := range c.everything(t) {
		old := ref.Kind == "Assign" || ref.Kind == "NetworkPolicy" && slices.Contains(namespaces, ref.Namespace)
		if old && o.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy {
			t.Errorf("%s is still there", ref)
		}
	}
}

// steadiness watches the pods and nodes that existed at its start.
type steadiness struct {
	mu sync.Mutex
	// there maps the UID of each pod to its node, and the UID of each node to "".
	there map[types.UID]string
	lost  []string
	stops []func()
}

// steady starts to watch all pods and nodes. None may be deleted, restart or move.
func (c *cluster) steady(t *testing.T) *steadiness {
	t.Helper()
	s := &steadiness{there: map[types.UID]string{}}
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.NodeList{}} {
		s.stops = append(s.stops, sandbox.Watch(t, c.Config, list, s.see))
	}
	return s
}

func (s *steadiness) see(event watch.EventType, o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, isPod := o.(*corev1.Pod)
	if event == "" {
		switch {
		case !isPod:
			s.there[o.GetUID()] = ""
		case pod.Namespace != "gatekeeper-system":
			s.there[o.GetUID()] = pod.Spec.NodeName
		}
		return
	}
	node, known := s.there[o.GetUID()]
	if !known {
		return
	}
	if event == watch.Deleted || o.GetDeletionTimestamp() != nil {
		s.lost = append(s.lost, fmt.Sprintf("%T %s went", o, o.GetName()))
	}
	if !isPod {
		return
	}
	if pod.Spec.NodeName != node || pod.Status.Phase != corev1.PodRunning {
		s.lost = append(s.lost, fmt.Sprintf("pod %s is %s on %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName))
	}
	for _, container := range pod.Status.ContainerStatuses {
		if container.RestartCount > 0 {
			s.lost = append(s.lost, fmt.Sprintf("pod %s was restarted", pod.Name))
		}
	}
}

// end stops the watches and fails the test if a pod or node has changed.
func (s *steadiness) end(t *testing.T) {
	t.Helper()
	for _, stop := range s.stops {
		stop()
	}
	if len(s.there) == 0 {
		t.Error("nothing was watched")
	}
	for _, lost := range s.lost {
		t.Error(lost)
	}
	t.Logf("%d pods and nodes were watched all the while", len(s.there))
}

// shop is a team's namespace on shared nodes, with objects in it that croft's rules refuse.
const shop = `
platform: {clusterName: demo, nodeClass: {kwok: {}}, nodePoolKey: node-pool}
pools:
  pool-b: {instances: {capacityTypes: [on-demand]}}
tenants:
  shop: {pool: pool-b, quota: {pods: "1", services: "0"}, access: [{group: shoppers, role: operator}]}
`

// TestAdopt adopts a namespace with pods that croft would refuse or place on other nodes when
// they are created again. It fails if the plan does not list each of them with the message of
// the rule, or if the command, killed after any step, leaves a state that the next run neither
// undoes nor completes.
func TestAdopt(t *testing.T) {
	sandbox.EndToEnd(t)
	t.Parallel() // it mostly waits
	c := start(t, sandbox.Options{Croft: croftBinary(t)})
	c.kubectl(t, "", "create", "-f", "internal/test/e2e/testdata/adopt/nodepools.yaml").exits(t, 0)
	c.kubectl(t, "", "create", "-f", "internal/test/e2e/testdata/adopt/shop.yaml").exits(t, 0)
	c.running(t, "shop", 4)
	steady := c.steady(t)
	before := about(c.left(t), "shop", "")
	file := write(t, shop)
	adopt := func(more ...string) []string {
		return append([]string{"adopt", "tenant", "shop", "-f", file, "--yes", "--remove-old"}, more...)
	}

	t.Run("what nobody could know is said before anything is done", func(t *testing.T) {
		said := c.croft(t, adopt()...).exits(t, 1)
		if !strings.Contains(said.stderr, "the tenant's namespaces are unchanged") {
			t.Errorf("it does not stop: %s", said)
		}
		areSame(t, "shop", before, about(c.left(t), "shop", ""))
	})
	t.Run("plan", func(t *testing.T) {
		now := c.left(t)
		said := c.croft(t, "adopt", "tenant", "shop", "-f", file, "--dry-run").exits(t, 0)
		areSame(t, "a dry run left something", now, c.left(t))
		for _, line := range []string{
			"MOVES to pool-b",
			"IS REFUSED: [priority-class] spec.priorityClassName: system-cluster-critical is not among",
			`IS REFUSED: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`,
			"Service shop/door", "[service-type]",
			"RoleBinding shop/strangers", "gives visitors the role ",
			"RoleBinding shop/shoppers", "deleted with --remove-old",
			"WAITS: no new node of pool-b meets its requirements: ", "kubernetes.io/arch In [arm64]",
			"REPLACES ITS NODES", "pods       4", "services   1", "ENDS",
		} {
			if !strings.Contains(said.stdout, line) {
				t.Errorf("the plan does not say %q: %s", line, said)
			}
		}
	})
	for step := 3; step <= 7; step++ {
		t.Run(fmt.Sprintf("killed after step %d and undone", step), func(t *testing.T) {
			if step != 3 && step != 6 {
				sandbox.Thorough(t) // two steps, and the tests that kill and complete adoptions, are in `make test`
			}
			c.killedAfter(t, step, adopt()...)
			c.croft(t, "adopt", "tenant", "shop", "--undo", "--yes").exits(t, 0)
			areSame(t, "shop after --undo", before, about(c.left(t), "shop", ""))
		})
	}
	t.Run("killed and completed", func(t *testing.T) {
		c.killedAfter(t, 4, adopt()...)
		c.killedAfter(t, 6, adopt()...)
		said := c.croft(t, adopt()...).exits(t, 0)
		for _, line := range []string{"shop/Deployment/urgent would be refused, as the plan shows: [priority-class]", "croft's rules would refuse new pods of 2 workloads"} {
			if !strings.Contains(said.stderr, line) {
				t.Errorf("it does not say %q: %s", line, said)
			}
		}
		c.gone(t)
		if labels := c.namespace(t, "shop").Labels; labels["pod-security.kubernetes.io/enforce"] != "baseline" {
			t.Errorf("the namespace has the labels %v", labels)
		}
		var policies networkingv1.NetworkPolicyList
		if err := c.admin.List(t.Context(), &policies, client.InNamespace("shop"), ours); err != nil || len(policies.Items) == 0 {
			t.Errorf("there are no walls: %v", err)
		}
	})
	steady.end(t)
	t.Run("what the cluster adds to pods", c.adoptTolerant)
}

// adoptTolerant plans the adoption of a namespace whose pods get a toleration from the API
// server's plugin PodTolerationRestriction. croft refuses all of these pods.
func (c *cluster) adoptTolerant(t *testing.T) {
	c.kubectl(t, "", "create", "-f", "internal/test/e2e/testdata/adopt/tolerant.yaml").exits(t, 0)
	file := write(t, "tenants: {tolerant: {pool: pool-b}}\n")
	eventually(t, patience, "the plan to say that its pods are refused", func(context.Context) error {
		said := c.croft(t, "adopt", "tenant", "tolerant", "-f", file, "--dry-run")
		for _, line := range []string{
			"IS REFUSED: [tolerations]", "every new pod in namespace tolerant would be refused because of fields that the cluster adds to it",
			"Namespace tolerant, annotation scheduler.alpha.kubernetes.io/defaultTolerations", "adds node-pool=pool-b,disk=ssd to pods; croft places them only by node-pool",
		} {
			if said.status != 1 || !strings.Contains(said.stdout, line) {
				return fmt.Errorf("the plan does not say %q: %s", line, said)
			}
		}
		return nil
	})
}

// killedAfter runs croft and kills it when it reports the given step.
func (c *cluster) killedAfter(t *testing.T, step int, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), croftBinary(t), args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for scanner := bufio.NewScanner(stderr); scanner.Scan(); {
		lines = append(lines, scanner.Text())
		if strings.HasPrefix(scanner.Text(), fmt.Sprintf("%d/8 ", step)) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return
		}
	}
	t.Fatalf("it ended before step %d: %v: %s", step, cmd.Wait(), strings.Join(lines, "\n"))
}
