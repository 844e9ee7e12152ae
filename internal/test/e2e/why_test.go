package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokv1alpha1 "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/test/sandbox"
)

// whyEstate has pools with faults: one whose limits are too small for all of its instance
// types, one without its node class, one whose class no controller handles, and one whose nodes
// do not register. Each has a tenant.
const whyEstate = `
pools:
  tiny: {instances: {instanceTypes: [m5.large]}, limits: {cpu: "1"}}
  classless: {nodeClass: {ref: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: nobody}}}
  zoned: {instances: {requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [us-west-2a]}]}}
  slow: {instances: {instanceTypes: [m5.large]}, nodeClass: {ref: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: slow}}}
tenants:
  tiny: {pool: tiny, access: [{group: team-tiny, role: viewer}]}
  classless: {pool: classless, access: [{group: team-classless, role: operator}]}
  slow: {pool: slow}
  zoned: {pool: zoned}
  older: {pool: pool-a, namespaces: [older]}
  frugal: {pool: pool-a, quota: {pods: "1"}, access: [{group: team-frugal, role: operator}]}
  thrifty:
    {pool: pool-a, namespaces: [thrifty, thrifty-prod], quota: {pods: "4"}, quotaMinimums: {thrifty-prod: {pods: "3"}},
     access: [{group: team-thrifty, role: operator}]}
`

// whyer is a sandbox with faults.
type whyer struct{ *twoTenants }

// TestWhy fails if `croft why` does not name the cause of a message of the real scheduler,
// Karpenter or API server, if it names another cause first, or if it reveals others' objects to
// a tenant.
func TestWhy(t *testing.T) {
	sandbox.EndToEnd(t)
	t.Parallel() // it mostly waits
	c := &whyer{&twoTenants{cluster: startWithCroft(t), file: example("two-tenants.yaml")}}
	c.estate = estateOf(t, c.file, read(t, c.file))
	c.apply(t, c.file)
	// This namespace and its pod are older than their tenant.
	create(t, c.admin,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "older", Annotations: map[string]string{v1alpha1.AdoptAnnotation: "older"}}},
		&kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "slow"}, Spec: kwokv1alpha1.KWOKNodeClassSpec{
			NodeRegistrationDelay: metav1.Duration{Duration: patience * 10},
		}})
	c.account(t, "older")
	create(t, c.admin, nginx("older", "older"))
	c.croftReading(t, whyEstate, "apply", "-f", "-", "--wait=false").exits(t, 0)

	for _, test := range []struct {
		name string
		run  func(*testing.T, *whyer)
	}{
		{"healthy", whyHealthy},
		{"quota", whyQuota},
		{"quota-reserved", whyQuotaReserved},
		{"policy", whyPolicy},
		{"admission", whyAdmission},
		{"rollout", whyRollout},
		{"job", whyJob},
		{"placement", whyPlacement},
		{"asked-too-much", whyAskedTooMuch},
		{"limits", whyLimits},
		{"node-class", whyNodeClass},
		{"not-registered", whyNotRegistered},
		{"startup-taint", whyStartupTaint},
		{"unregistered-taint-missing", whyUnregisteredTaint},
		{"volume-zone", whyVolumeZone},
		{"anti-affinity", whyAntiAffinity},
		{"held", whyHeld},
		{"budgets-overlap", whyBudgetsOverlap},
		{"budget-uncounted", whyBudgetUncounted},
		{"deletion", whyDeletion},
		{"rights", whyRights},
		{"node-class-unknown", whyNodeClassUnknown},
		{"node-class-terminating", whyNodeClassTerminating},
		{"without-kubelet", whyWithoutKubelet},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// account waits for the service account without which no pod is admitted.
func (c *cluster) account(t testing.TB, namespace string) {
	t.Helper()
	eventually(t, patience, "the service account of "+namespace, func(ctx context.Context) error {
		return c.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
	})
}

// asks runs `croft why` as a member of a team, or as the administrator if team is empty.
func (c *whyer) asks(t testing.TB, team string, args ...string) (why.Story, outcome) {
	t.Helper()
	args = append([]string{"why", "-o", "json"}, args...)
	if team != "" {
		args = append(args, "--as", "jane", "--as-group", team)
	}
	out := c.croft(t, args...)
	var story why.Story
	// Without output, the object does not exist yet.
	if err := json.Unmarshal([]byte(out.stdout), &story); err != nil && out.stdout != "" {
		t.Fatalf("%v: %s", err, out)
	}
	return story, out
}

// tells waits until croft why names a cause first, and returns the story.
func (c *whyer) tells(t testing.TB, id, team string, args ...string) why.Story {
	t.Helper()
	var story why.Story
	eventually(t, patience, "croft why "+strings.Join(args, " ")+" to say "+id, func(context.Context) error {
		var out outcome
		story, out = c.asks(t, team, args...)
		if story.First == nil || story.First.ID != id || out.status != 1 {
			return fmt.Errorf("it says %s", out)
		}
		return nil
	})
	return story
}

// waits expects a cause in the story, for conditions that resolve themselves with time.
func (c *whyer) waits(t testing.TB, id string, args ...string) {
	t.Helper()
	eventually(t, patience, "croft why "+strings.Join(args, " ")+" to wait for "+id, func(context.Context) error {
		story, out := c.asks(t, "", args...)
		if !slices.ContainsFunc(story.Steps, func(s why.Step) bool { return s.Finding != nil && s.Finding.ID == id }) {
			return fmt.Errorf("it says %s", out)
		}
		return nil
	})
}

func whyHealthy(t *testing.T, c *whyer) {
	deployment, _ := nginxes("tenant-a", 1)
	create(t, c.member(t, "team-a"), deployment)
	t.Cleanup(func() { c.remove(t, deployment) })
	var pod corev1.Pod
	// The pod may change: kube-controller-manager evicts a pod from a new node while its cache
	// still has the taint with which Karpenter registers nodes.
	eventually(t, patience, "croft why to find nothing", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.admin.List(ctx, &pods, client.InNamespace("tenant-a")); err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("there are %d pods, or one that does not run", len(pods.Items))
		}
		pod = pods.Items[0]
		for _, args := range [][]string{
			{"pod/" + pod.Name, "-n", "tenant-a"}, {"deployment", "nginx", "-n", "tenant-a"}, {"node/" + pod.Spec.NodeName}, {"nodepool/pool-a"},
		} {
			out := c.croft(t, append([]string{"why"}, args...)...)
			first, rest, _ := strings.Cut(out.stdout, "\n")
			// For a node, croft why also prints the duration of the start.
			alone := rest == "" || strings.HasPrefix(args[0], "node/") && strings.HasPrefix(rest, "\nit took ") && strings.Count(rest, "\n") == 2
			if out.status != 0 || !strings.Contains(first, "nothing is wrong") || !alone {
				return fmt.Errorf("want one line: %s", out)
			}
		}
		return nil
	})
	if out := c.croft(t, "why", "pod/"+pod.Name, "-n", "tenant-a"); !strings.Contains(out.stdout, pod.Spec.NodeName) {
		t.Errorf("it does not say where it runs: %s", out)
	}
	c.croft(t, "why", "pod/nobody", "-n", "tenant-a").exits(t, 1)
	c.croft(t, "why", "gateway/nobody").exits(t, 2)
}

func whyQuota(t *testing.T, c *whyer) {
	deployment, _ := nginxes("frugal", 2)
	create(t, c.member(t, "team-frugal"), deployment)
	t.Cleanup(func() { c.remove(t, deployment) })
	c.tells(t, "quota-exceeded", "team-frugal", "deployment/nginx", "-n", "frugal")
}

// whyQuotaReserved tests a quota that is not used up, but reserved for another namespace.
func whyQuotaReserved(t *testing.T, c *whyer) {
	deployment, _ := nginxes("thrifty", 2)
	member := c.member(t, "team-thrifty")
	eventually(t, patience, "team-thrifty to be let in", func(ctx context.Context) error { return member.Create(ctx, deployment) })
	t.Cleanup(func() { c.remove(t, deployment) })
	story := c.tells(t, "quota-reserved", "", "deployment/nginx", "-n", "thrifty")
	if !strings.Contains(story.First.Cause, "3 of the shares of thrifty-prod") {
		t.Errorf("it does not say what is left where: %s", story.First.Cause)
	}
}

func whyPolicy(t *testing.T, c *whyer) {
	deployment, _ := nginxes("tenant-b", 1)
	deployment.Name = "stowaway"
	tolerateEverything(&deployment.Spec.Template.Spec)
	create(t, c.member(t, "team-b"), deployment)
	t.Cleanup(func() { c.remove(t, deployment) })
	story := c.tells(t, "policy-refused", "team-b", "deployment/stowaway", "-n", "tenant-b")
	if !strings.Contains(story.First.Symptom, "[tolerations]") {
		t.Errorf("it does not say which rule: %s", story.First.Symptom)
	}
}

// whyAdmission makes the API server refuse pods by rules that are not croft's, each in its own
// namespace.
func whyAdmission(t *testing.T, c *whyer) {
	nobody := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "nobody"},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: "nobody.example.org", FailurePolicy: ptr.To(admissionv1.Fail), SideEffects: ptr.To(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"}, ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "webhook-fails"}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
	gib := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	for id, by := range map[string]struct {
		labels map[string]string
		object client.Object
		edit   func(*corev1.PodSpec)
	}{
		"quota-unstated": {nil, &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourceLimitsMemory: gib[corev1.ResourceMemory]},
		}}, nil},
		"limit-range": {nil, &corev1.LimitRange{Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: gib}},
		}}, func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}
		}},
		"pod-security":  {map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}, nil, func(s *corev1.PodSpec) { s.HostNetwork = true }},
		"webhook-fails": {nil, nobody, nil},
	} {
		t.Run(id, func(t *testing.T) {
			create(t, c.admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: id, Labels: by.labels}})
			c.account(t, id)
			if by.object != nil {
				if by.object.GetName() == "" {
					by.object.SetNamespace(id)
					by.object.SetName(id)
				}
				create(t, c.admin, by.object)
				t.Cleanup(func() { c.remove(t, by.object) })
			}
			deployment, _ := nginxes(id, 1)
			if by.edit != nil {
				by.edit(&deployment.Spec.Template.Spec)
			}
			create(t, c.admin, deployment)
			t.Cleanup(func() { c.remove(t, deployment) })
			c.tells(t, id, "", "deployment/nginx", "-n", id)
		})
	}
}

// whyRollout changes the template of Deployments whose earlier pods keep running.
func whyRollout(t *testing.T, c *whyer) {
	roll := func(deployment *appsv1.Deployment, patch string) {
		t.Helper()
		patched := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}}
		if err := c.admin.Patch(t.Context(), patched, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	refused, _ := nginxes("frugal", 1)
	create(t, c.admin, refused)
	t.Cleanup(func() { c.remove(t, refused) })
	c.running(t, "frugal", 1)
	roll(refused, `{"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}`)
	eventually(t, patience, "croft why to tell the earlier pod apart", func(context.Context) error {
		story, out := c.asks(t, "", "deployment/nginx", "-n", "frugal")
		if !strings.Contains(story.Summary, "1 of 1 pods are ready, and the rollout has not finished: 0 of 1 pods have the current template, and 1 an earlier one") {
			return fmt.Errorf("it says %s", out)
		}
		return nil
	})
	c.tells(t, "quota-exceeded", "team-frugal", "deployment/nginx", "-n", "frugal")

	unplaced, _ := nginxes("tenant-b", 1)
	unplaced.Name = "rolling"
	unplaced.Spec.ProgressDeadlineSeconds = ptr.To[int32](1)
	create(t, c.member(t, "team-b"), unplaced)
	t.Cleanup(func() { c.remove(t, unplaced) })
	c.running(t, "tenant-b", 1)
	roll(unplaced, `{"spec": {"template": {"spec": {"nodeSelector": {"node.kubernetes.io/instance-type": "p4d.24xlarge"}}}}}`)
	c.tells(t, "requirement-unmet", "team-b", "deployment/rolling", "-n", "tenant-b")
	c.waits(t, "rollout-stuck", "deployment/rolling", "-n", "tenant-b")
	if story, _ := c.asks(t, "", "deployment/rolling", "-n", "tenant-b"); !strings.Contains(story.Summary, "1 of 1 pods have the current template, and 1 an earlier one") {
		t.Errorf("the earlier pod is not told apart: %s", story.Summary)
	}
}

// whyJob tests a Job that exceeds its deadline without a node, and a Job that fails. The test
// writes the failed pod's status as the kubelet does.
func whyJob(t *testing.T, c *whyer) {
	job := func(name string, edit func(*batchv1.JobSpec)) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-b", Name: name}}
		j.Spec.Template.Spec = nginx("tenant-b", name, wantInstanceType("p4d.24xlarge")).Spec
		j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		edit(&j.Spec)
		create(t, c.member(t, "team-b"), j)
		t.Cleanup(func() {
			if err := c.admin.Delete(context.WithoutCancel(t.Context()), j, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				t.Error(err)
			}
		})
		return j
	}
	job("late", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](1) })
	story := c.tells(t, "job-deadline", "team-b", "job/late", "-n", "tenant-b")
	if story.Summary != "has failed" {
		t.Errorf("it is told as %q", story.Summary)
	}
	broken := job("broken", func(s *batchv1.JobSpec) { s.BackoffLimit = ptr.To[int32](0) })
	c.tells(t, "requirement-unmet", "team-b", "job/broken", "-n", "tenant-b")
	var pods corev1.PodList
	if err := c.admin.List(t.Context(), &pods, client.InNamespace("tenant-b"), client.MatchingLabels{batchv1.JobNameLabel: broken.Name}); err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	pods.Items[0].Status.Phase = corev1.PodFailed
	pods.Items[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "nginx", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "no database"},
	}}}
	if err := c.admin.Status().Update(t.Context(), &pods.Items[0]); err != nil {
		t.Fatal(err)
	}
	c.waits(t, "job-failed", "job/broken", "-n", "tenant-b")
	story = c.tells(t, "crash-loop", "team-b", "job/broken", "-n", "tenant-b")
	if !strings.Contains(story.First.Symptom, "ended with exit code 1: no database") {
		t.Errorf("the pod's end is not told: %s", story.First.Symptom)
	}
}

func whyPlacement(t *testing.T, c *whyer) {
	c.tells(t, "placement-missing", "", "pod/older", "-n", "older")
	outside := nginx(metav1.NamespaceDefault, "outside")
	create(t, c.admin, outside)
	t.Cleanup(func() { c.remove(t, outside) })
	story := c.tells(t, "placement-missing", "", "pod/outside", "-n", metav1.NamespaceDefault)
	if !slices.ContainsFunc(story.Steps, func(s why.Step) bool { return s.Finding != nil && s.Finding.ID == "taint-not-tolerated" }) {
		t.Errorf("Karpenter's own word is not in it: %+v", story.Steps)
	}
}

// whyAskedTooMuch requests nodes that the pool of tenant-a does not create.
func whyAskedTooMuch(t *testing.T, c *whyer) {
	for id, edit := range map[string]func(*corev1.PodSpec){
		"label-unknown":     func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"example.org/gpu": "yes"} },
		"requirement-unmet": wantInstanceType("p4d.24xlarge"),
		"no-instance-type": func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500")}
		},
		"affinity-unmet": func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nobody"}},
			}}}}
		},
		"claim-unbound": func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
			}}}
		},
	} {
		t.Run(id, func(t *testing.T) {
			pod := nginx("tenant-a", id, edit)
			create(t, c.member(t, "team-a"), pod)
			t.Cleanup(func() { c.remove(t, pod) })
			c.tells(t, id, "", "pod/"+id, "-n", "tenant-a")
			c.isDiscreet(t, c.tells(t, id, "team-a", "pod/"+id, "-n", "tenant-a"))
		})
	}
}

// isDiscreet fails the test if a story reveals others' objects to a member of tenant-a.
func (c *whyer) isDiscreet(t testing.TB, story why.Story) {
	t.Helper()
	told, err := json.Marshal(story)
	if err != nil {
		t.Fatal(err)
	}
	var nodes corev1.NodeList
	var claims karpenterv1.NodeClaimList
	for _, list := range []client.ObjectList{&nodes, &claims} {
		if err := c.admin.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	secrets := []string{"pool-b", "tenant-b", "tiny", "classless", "frugal"}
	for _, n := range nodes.Items {
		secrets = append(secrets, n.Name)
	}
	for _, n := range claims.Items {
		secrets = append(secrets, n.Name)
	}
	for _, secret := range secrets {
		if strings.Contains(string(told), secret) {
			t.Errorf("a member of tenant-a is told of %s: %s", secret, told)
		}
	}
}

func whyLimits(t *testing.T, c *whyer) {
	pod := nginx("tiny", "pod")
	create(t, c.admin, pod)
	t.Cleanup(func() { c.remove(t, pod) })
	c.tells(t, "limits-exceeded", "", "pod/pod", "-n", "tiny")
	// As a viewer: the readable objects of the namespace are enough to find the cause.
	c.tells(t, "limits-exceeded", "team-tiny", "pod/pod", "-n", "tiny")
	out := c.croft(t, "why", "pod/pod", "-n", "tiny", "--as", "jane", "--as-group", "team-tiny").exits(t, 1)
	for _, want := range []string{"pod/pod in tiny: waits for a node\n\n  cause: the pool has reached its limits", "\n  who:   a platform admin\n", "\n✗ karpenter", "\n? pool"} {
		if !strings.Contains(out.stdout, want) {
			t.Errorf("want %q: %s", want, out)
		}
	}
}

func whyNodeClass(t *testing.T, c *whyer) {
	pod := nginx("classless", "pod")
	create(t, c.member(t, "team-classless"), pod)
	t.Cleanup(func() { c.remove(t, pod) })
	c.tells(t, "node-class-not-found", "", "pod/pod", "-n", "classless")
	c.tells(t, "node-class-not-found", "", "nodepool/classless")
	story := c.tells(t, "no-pool", "team-classless", "pod/pod", "-n", "classless")
	if !slices.ContainsFunc(story.Steps, func(s why.Step) bool {
		return s.Verdict == why.Hidden && strings.Contains(s.Observation, "ask a platform admin")
	}) {
		t.Errorf("a tenant is not told whom to ask: %+v", story)
	}
}

func whyNotRegistered(t *testing.T, c *whyer) {
	pod := nginx("slow", "pod")
	create(t, c.admin, pod)
	t.Cleanup(func() { c.remove(t, pod) })
	c.waits(t, "not-registered", "pod/pod", "-n", "slow")
}

// agent is the key of a label and a startup taint of the platform's own NodePools. No agent
// removes the taint.
const agent = "example.org/agent"

func whyStartupTaint(t *testing.T, c *whyer) {
	nodePool := ownPool()
	nodePool.Spec.Template.Spec.StartupTaints = []corev1.Taint{{Key: agent, Effect: corev1.TaintEffectNoSchedule}}
	pod := nginx(metav1.NamespaceDefault, "platform", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{agent: "own"} })
	create(t, c.admin, nodePool, pod)
	t.Cleanup(func() { c.remove(t, pod, nodePool) })
	c.waits(t, "startup-taint", "pod/platform", "-n", metav1.NamespaceDefault)
}

// whyUnregisteredTaint removes the taint with which nodes register, as a node image without
// support for Karpenter does.
func whyUnregisteredTaint(t *testing.T, c *whyer) {
	nodePool := ownPool()
	nodePool.Name = "bare"
	nodePool.Spec.Template.Labels = map[string]string{agent: "bare"}
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "bare"},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{agent: "bare"}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
				}}},
			},
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{
				Expression: `[JSONPatch{op: "remove", path: "/spec/taints"}]`,
			}}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "bare"},
	}
	create(t, c.admin, policy, binding)
	t.Cleanup(func() { c.remove(t, binding, policy) })
	eventually(t, moments, "the policy to hold", func(ctx context.Context) error {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "dry", Labels: map[string]string{agent: "bare"}},
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: agent, Effect: corev1.TaintEffectNoSchedule}}},
		}
		if err := c.admin.Create(ctx, node, client.DryRunAll); err != nil {
			return err
		}
		if hasTaint(node, corev1.Taint{Key: agent, Effect: corev1.TaintEffectNoSchedule}) {
			return errors.New("a node keeps its taints")
		}
		return nil
	})
	// The pod is created after the removal: a pod that waits already could get a node at once.
	create(t, c.admin, nodePool)
	t.Cleanup(func() { c.remove(t, nodePool) })
	pod := nginx(metav1.NamespaceDefault, "bare", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{agent: "bare"} })
	create(t, c.admin, pod)
	t.Cleanup(func() { c.remove(t, pod) })
	claim := c.claimOf(t, c.runs(t, pod).Spec.NodeName)
	c.tells(t, "unregistered-taint-missing", "", "nodeclaim/"+claim.Name)
}

// whyVolumeZone requests a volume in a zone in which the pool creates no nodes.
func whyVolumeZone(t *testing.T, c *whyer) {
	gib := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "far"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: gib, AccessModes: modes, StorageClassName: "static", ClaimRef: &corev1.ObjectReference{Namespace: "zoned", Name: "far"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-far"}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"far-away"}}},
			}}}},
		},
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "zoned", Name: "far"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, VolumeName: "far", StorageClassName: ptr.To("static"), Resources: corev1.VolumeResourceRequirements{Requests: gib},
		},
	}
	create(t, c.admin, volume, claim)
	t.Cleanup(func() { c.remove(t, claim, volume) })
	pod := nginx("zoned", "far", func(s *corev1.PodSpec) {
		s.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "far"},
		}}}
	})
	create(t, c.admin, pod)
	t.Cleanup(func() { c.remove(t, pod) })
	c.tells(t, "volume-zone", "", "pod/far", "-n", "zoned")
}

func whyNodeClassTerminating(t *testing.T, c *whyer) {
	slow := &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}
	keep := func(finalizers string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": `+finalizers+`}}`))
		if err := c.admin.Patch(t.Context(), slow, patch); err != nil {
			t.Fatal(err)
		}
	}
	keep(`["example.org/kept"]`)
	c.remove(t, slow)
	c.tells(t, "node-class-terminating", "", "nodepool/slow")
	keep(`null`)
}

// budgetOf returns a PodDisruptionBudget of tenant-b for pods with the label app=NAME.
func budgetOf(app, name string, edits ...func(*policyv1.PodDisruptionBudgetSpec)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-b", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}
	for _, edit := range edits {
		edit(&b.Spec)
	}
	return b
}

// holds deletes the node of a pod, and expects `croft why` to name the budgets that block the
// deletion. The node is deleted once the budgets are.
func (c *whyer) holds(t *testing.T, id, text string, pod *corev1.Pod, budgets ...client.Object) {
	t.Helper()
	pod.Labels = map[string]string{"app": pod.Name}
	create(t, c.member(t, "team-b"), append(budgets, pod)...)
	t.Cleanup(func() { c.remove(t, append(budgets, pod)...) })
	pod = c.runs(t, pod)
	claim := c.claimOf(t, pod.Spec.NodeName)
	c.remove(t, claim)
	story := c.tells(t, id, "", "node/"+pod.Spec.NodeName)
	if !strings.Contains(story.First.Symptom, text) {
		t.Errorf("it does not say what holds it: %s", story.First.Symptom)
	}
	c.tells(t, id, "", "nodeclaim/"+claim.Name)
	c.remove(t, budgets...)
	c.isGone(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}})
}

func whyHeld(t *testing.T, c *whyer) {
	c.holds(t, "budget-never-allows", "PodDisruptionBudget held requires 1 ready pods of 1", nginx("tenant-b", "held"), budgetOf("held", "held"))
}

// whyBudgetsOverlap tests two budgets that both allow an eviction.
func whyBudgetsOverlap(t *testing.T, c *whyer) {
	none := func(s *policyv1.PodDisruptionBudgetSpec) { s.MinAvailable = ptr.To(intstr.FromInt32(0)) }
	c.holds(t, "budgets-overlap", "PodDisruptionBudgets one and two select the same pod", nginx("tenant-b", "twice"), budgetOf("twice", "one", none), budgetOf("twice", "two", none))
}

// whyBudgetUncounted tests a budget with a percentage for a pod without a controller.
func whyBudgetUncounted(t *testing.T, c *whyer) {
	half := func(s *policyv1.PodDisruptionBudgetSpec) {
		s.MinAvailable, s.MaxUnavailable = nil, ptr.To(intstr.FromString("50%"))
	}
	c.holds(t, "budget-uncounted", "PodDisruptionBudget alone allows no eviction", nginx("tenant-b", "alone"), budgetOf("alone", "alone", half))
}

// whyDeletion blocks the deletion of a namespace with a finalizer and with an APIService
// without a server.
func whyDeletion(t *testing.T, c *whyer) {
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.nobody.example.org"},
		"spec": map[string]any{
			"group": "nobody.example.org", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "kube-system", "name": "nobody"},
		},
	}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leaving"}}
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "leaving", Name: "held", Finalizers: []string{"example.org/x"}}}
	create(t, c.admin, namespace, held, service)
	t.Cleanup(func() { c.remove(t, service) })
	c.remove(t, namespace)
	c.waits(t, "api-unavailable", "namespace/leaving")
	if story, _ := c.asks(t, "", "namespace/leaving"); !strings.Contains(fmt.Sprint(story.Steps), "apiservice/v1.nobody.example.org") {
		t.Errorf("the APIService is not named: %+v", story.Steps)
	}
	c.remove(t, service)
	c.waits(t, "finalizer-held", "namespace/leaving")
	eventually(t, patience, "croft why to name the object", func(context.Context) error {
		story, out := c.asks(t, "", "namespace/leaving")
		if !strings.Contains(fmt.Sprint(story.Steps), "configmaps/held in leaving") {
			return fmt.Errorf("it says %s", out)
		}
		return nil
	})
	c.waits(t, "deletion-waits", "namespace/leaving")
	c.waits(t, "finalizer-held", "configmap/held", "-n", "leaving")
	if err := c.admin.Patch(t.Context(), held, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))); err != nil {
		t.Fatal(err)
	}
	c.isGone(t, namespace)
}

// claimOf returns the NodeClaim of a node.
func (c *cluster) claimOf(t testing.TB, node string) *karpenterv1.NodeClaim {
	t.Helper()
	var found *karpenterv1.NodeClaim
	eventually(t, moments, "the NodeClaim of "+node, func(ctx context.Context) error {
		var claims karpenterv1.NodeClaimList
		if err := c.admin.List(ctx, &claims); err != nil {
			return err
		}
		for i := range claims.Items {
			if claims.Items[i].Status.NodeName == node {
				found = &claims.Items[i]
				return nil
			}
		}
		return fmt.Errorf("none of %d is", len(claims.Items))
	})
	return found
}

// whyRights expects one line that names the missing right and refers to a platform admin.
func whyRights(t *testing.T, c *whyer) {
	for _, args := range [][]string{{"node/any"}, {"nodepool/pool-b"}, {"pod/any", "-n", "tenant-b"}} {
		out := c.croft(t, append([]string{"why", "--as", "jane", "--as-group", "team-a"}, args...)...).exits(t, 1)
		if !strings.Contains(out.stderr, "you may not read") || !strings.Contains(out.stderr, "ask a platform admin") || strings.Count(out.stderr, "\n") != 1 {
			t.Errorf("want one line that says whom to ask: %s", out)
		}
	}
}

func whyNodeClassUnknown(t *testing.T, c *whyer) {
	slow := &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}
	unknown := fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "AwaitingReconciliation", "message": "", "lastTransitionTime": %q}]}}`,
		metav1.Now().UTC().Format("2006-01-02T15:04:05Z"))
	if err := c.admin.Status().Patch(t.Context(), slow, client.RawPatch(types.MergePatchType, []byte(unknown))); err != nil {
		t.Fatal(err)
	}
	c.tells(t, "node-class-unknown", "", "nodepool/slow")
}

// whyWithoutKubelet stops the simulated nodes, and writes the kubelets' status itself.
func whyWithoutKubelet(t *testing.T, c *whyer) {
	deployment, _ := nginxes("tenant-a", 1)
	create(t, c.member(t, "team-a"), deployment)
	t.Cleanup(func() { c.remove(t, deployment) })
	node := c.running(t, "tenant-a", 1)[0].Spec.NodeName
	if err := c.Stop("kwok"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Start("kwok"); err != nil {
			t.Error(err)
		}
	})
	scale := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"replicas": 2}}`))
	if err := c.admin.Patch(t.Context(), &appsv1.Deployment{ObjectMeta: deployment.ObjectMeta}, scale); err != nil {
		t.Fatal(err)
	}
	var pod *corev1.Pod
	eventually(t, patience, "a pod to be placed", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.admin.List(ctx, &pods, client.InNamespace("tenant-a")); err != nil {
			return err
		}
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName == node && pods.Items[i].Status.Phase == corev1.PodPending {
				pod = &pods.Items[i]
				return nil
			}
		}
		return fmt.Errorf("none of %d is", len(pods.Items))
	})
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "nginx", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: `Back-off pulling image "nginx:alpine"`},
	}}}
	if err := c.admin.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	c.tells(t, "image-pull", "team-a", "pod/"+pod.Name, "-n", "tenant-a")
	c.tells(t, "image-pull", "team-a", "deployment/nginx", "-n", "tenant-a")

	var live corev1.Node
	c.get(t, "", node, &live)
	for i := range live.Status.Conditions {
		if live.Status.Conditions[i].Type == corev1.NodeReady {
			live.Status.Conditions[i].Status, live.Status.Conditions[i].Reason = corev1.ConditionFalse, "KubeletNotReady"
			live.Status.Conditions[i].Message = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
		}
	}
	if err := c.admin.Status().Update(t.Context(), &live); err != nil {
		t.Fatal(err)
	}
	c.tells(t, "cni-not-initialized", "", "node/"+node)
}

// whyAntiAffinity creates a pod of the platform that keeps a tenant's pod away, which no rule
// forbids. The platform's admin gets the pod's name, and the tenant is referred to the admin.
func whyAntiAffinity(t *testing.T, c *whyer) {
	everybody := metav1.LabelSelector{MatchLabels: map[string]string{"app": "shy"}}
	nodePool := ownPool()
	nodePool.Name = "shunned"
	nodePool.Spec.Template.Labels = map[string]string{agent: "shunned"}
	shunner := nginx(metav1.NamespaceDefault, "shunner", func(s *corev1.PodSpec) {
		s.NodeSelector = map[string]string{agent: "shunned"}
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelOSStable, NamespaceSelector: &metav1.LabelSelector{}, LabelSelector: &everybody,
		}}}}
	})
	create(t, c.admin, nodePool, shunner)
	t.Cleanup(func() { c.remove(t, shunner, nodePool) })
	c.runs(t, shunner)
	shy := nginx("tenant-a", "shy")
	shy.Labels = everybody.MatchLabels
	create(t, c.member(t, "team-a"), shy)
	t.Cleanup(func() { c.remove(t, shy) })

	story := c.tells(t, "anti-affinity-of-others", "", "pod/shy", "-n", "tenant-a")
	if !strings.Contains(story.First.Symptom, "default/shunner") {
		t.Errorf("a platform admin is not told who is in the way: %s", story.First.Symptom)
	}
	story = c.tells(t, "anti-affinity-of-others", "team-a", "pod/shy", "-n", "tenant-a")
	c.isDiscreet(t, story)
	told := fmt.Sprint(story)
	if strings.Contains(told, "shunner") {
		t.Errorf("a tenant is told the name of another's pod: %s", told)
	}
	if !slices.ContainsFunc(story.Steps, func(s why.Step) bool {
		return s.Verdict == why.Hidden && strings.Contains(s.Observation, "croft why pod/shy -n tenant-a")
	}) {
		t.Errorf("a tenant is not told whom to ask: %s", told)
	}
}
