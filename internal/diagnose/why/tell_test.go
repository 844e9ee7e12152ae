package why_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/why"
)

const key = v1alpha1.DefaultNodePoolKey

// newWaitingStep returns a pod of tenant-a that waits for its node on AWS, with all objects behind
// it that an administrator may read. Nothing is wrong yet.
func newWaitingStep() *why.Snapshot {
	ref := &karpenterv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "pool-a"}
	s := &why.Snapshot{
		Target: why.Target{Kind: "pod", Namespace: "tenant-a", Name: "web"}, Key: key,
		Pods: []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-a", Name: "web"},
			Spec: corev1.PodSpec{
				NodeSelector: map[string]string{key: "pool-a"},
				Tolerations:  []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpEqual, Value: "pool-a"}},
			},
			Status: corev1.PodStatus{Phase: corev1.PodPending},
		}},
		Pools:   []karpenterv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Name: "pool-a"}}},
		Claims:  []karpenterv1.NodeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "pool-a-x2x9p", Labels: map[string]string{karpenterv1.NodePoolLabelKey: "pool-a"}}}},
		Classes: map[string]*unstructured.Unstructured{"pool-a": {Object: map[string]any{}}},
	}
	s.Pools[0].Spec.Template.Spec.NodeClassRef = ref
	writeConditions(&s.Pools[0].Status, metav1.Condition{Type: "NodeClassReady", Status: metav1.ConditionTrue})
	s.Claims[0].CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	s.Events = []corev1.Event{newEvent("Pod", "web", "Nominated", "karpenter", "Pod should schedule on: nodeclaim/pool-a-x2x9p")}
	return s
}

func newEvent(kind, name, reason, by, message string) corev1.Event {
	return corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Type: corev1.EventTypeWarning,
		Reason: reason, Message: message, Source: corev1.EventSource{Component: by}, LastTimestamp: metav1.Now(),
	}
}

// condition matches the catalogue's format of a condition.
var condition = regexp.MustCompile(`(?s)^(\w+)=(\w+) (\w+)(?:: (.*))?$`)

// addCatalogText adds a text of the catalogue to the object that it belongs to. It returns false if
// the text belongs to a log, or to an object that only a real cluster has.
func addCatalogText(s *why.Snapshot, text string) bool {
	if m := condition.FindStringSubmatch(text); m != nil {
		c := metav1.Condition{Type: m[1], Status: metav1.ConditionStatus(m[2]), Reason: m[3], Message: m[4]}
		switch {
		case slices.Contains([]string{"Launched", "Registered", "Initialized"}, c.Type):
			var all []metav1.Condition
			for _, before := range []string{"Launched", "Registered", "Initialized"} {
				if before == c.Type {
					break
				}
				all = append(all, metav1.Condition{Type: before, Status: metav1.ConditionTrue})
			}
			writeConditions(&s.Claims[0].Status, append(all, c)...)
		case c.Type == "ValidationSucceeded" && c.Reason == "NodePoolValidationFailed", c.Type == "NodeClassReady", c.Type == "NodeRegistrationHealthy":
			writeConditions(&s.Pools[0].Status, c)
		case slices.Contains([]string{"Ready", "Failed", "Progressing"}, c.Type):
			return false
		default:
			entry := map[string]any{"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message}
			// The other conditions are as the provider sets them in this case.
			_ = unstructured.SetNestedSlice(s.Classes["pool-a"].Object, []any{
				map[string]any{"type": "Ready", "status": "False", "reason": "UnhealthyDependents", "message": c.Type + "=False"}, entry,
			}, "status", "conditions")
			writeConditions(&s.Pools[0].Status, metav1.Condition{Type: "NodeClassReady", Status: metav1.ConditionFalse, Reason: "UnhealthyDependents", Message: c.Type + "=False"})
		}
		return true
	}
	switch {
	case strings.HasPrefix(text, "NodeClaim pool-"):
		s.Events = append(s.Events, newEvent("NodeClaim", "pool-a-gone1", "InsufficientCapacityError", "karpenter", text))
		s.Claims = nil // Karpenter deletes it at once
	case strings.HasPrefix(text, "Failed to schedule pod, "):
		s.Events = []corev1.Event{newEvent("Pod", "web", "FailedScheduling", "karpenter", strings.ReplaceAll(text, "=pool-b:", "=pool-a:"))}
	case strings.Contains(text, "nodes are available"):
		s.Pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: text}}
	default:
		return false
	}
	return true
}

// writeConditions writes conditions into a status. Karpenter's conditions have their own Go type.
func writeConditions(into any, conditions ...metav1.Condition) {
	text, err := json.Marshal(map[string]any{"conditions": conditions})
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		panic(err)
	}
}

// TestExplainEachRow adds every text of the catalogue to its object, and expects `croft why`
// to name its row first. Texts of logs are explained by -f.
func TestExplainEachRow(t *testing.T) {
	walked := map[string]bool{}
	for _, row := range catalog.Rows() {
		for _, text := range row.Texts {
			if found := why.Explain("all is well\n" + text + "\nall is well\n"); len(found) != 1 || found[0].ID != row.ID {
				t.Errorf("%s: %q is explained by %+v", row.ID, text, found)
			}
			s := newWaitingStep()
			// An untolerated taint of another pool is no cause if the pod was placed.
			if row.ID == "taint-not-tolerated" || !addCatalogText(s, text) {
				continue
			}
			walked[row.ID] = true
			story := why.ExplainSnapshot(s)
			if story.Verdict != why.Bad || story.First == nil || story.First.ID != row.ID {
				t.Errorf("%s: the story for %q is %+v", row.ID, text, story)
			}
		}
	}
	for _, id := range []string{
		catalog.UnauthorizedID, "explicit-deny", "instance-profile-name", "spot-service-linked-role", "insufficient-capacity", "account-quota", "subnet-full",
		"network-mismatch", "launch-failed", "subnets-not-found", "security-groups-not-found", "amis-not-found", "dry-run-denied", "not-registered", "startup-taint",
	} {
		if !walked[id] {
			t.Errorf("%s was not walked to", id)
		}
	}
}

func TestExplainPendingNode(t *testing.T) {
	if story := why.ExplainSnapshot(newWaitingStep()); story.Verdict != why.Waiting || story.First != nil {
		t.Errorf("a node is being launched, but the story is %+v", story)
	}
}

// TestExplainIgnoresOtherPools uses Karpenter's whole message, which is about all pools at
// once.
func TestExplainIgnoresOtherPools(t *testing.T) {
	const others = "did not tolerate taint (taint=" + key + "=pool-b:NoSchedule); did not tolerate taint (taint=" + key + "=pool-b:NoExecute); " +
		"did not tolerate taint (taint=CriticalAddonsOnly:NoSchedule); " +
		`incompatible requirements, label "` + key + `" does not have known values; ` +
		"all available instance types exceed limits for nodepool (NodePool=pool-c)"
	for name, c := range map[string]struct{ message, first string }{
		"its own is not considered": {others, "no-pool"},
		"its own is at its limits":  {others + "; all available instance types exceed limits for nodepool (NodePool=pool-a)", "limits-exceeded"},
		"its own has no such label": {`incompatible requirements, label "gpu" does not have known values; ` + others, "label-unknown"},
		"its own has no such type":  {others + "; incompatible requirements, key node.kubernetes.io/instance-type, node.kubernetes.io/instance-type In [m9.huge] not in node.kubernetes.io/instance-type In [m5.large]", "requirement-unmet"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWaitingStep()
			s.Claims = nil
			s.Hidden = []string{"platform", "nodepool", "nodeclaim", "node"}
			s.Pools = nil
			s.Events = []corev1.Event{newEvent("Pod", "web", "FailedScheduling", "karpenter", "Failed to schedule pod, "+c.message)}
			story := why.ExplainSnapshot(s)
			if story.First == nil || story.First.ID != c.first {
				t.Errorf("want %s first: %+v", c.first, story)
			}
			for _, step := range story.Steps {
				if strings.Contains(step.Observation, "pool-b") || strings.Contains(step.Observation, "pool-c") || strings.Contains(step.Observation, "CriticalAddonsOnly") {
					t.Errorf("a tenant's story names others: %+v", step)
				}
			}
			if last := story.Steps[len(story.Steps)-1]; last.Verdict != why.Hidden || !strings.Contains(last.Observation, "ask a platform admin") {
				t.Errorf("a tenant's story does not name whom to ask: %+v", story.Steps)
			}
		})
	}
}

// TestExplainAntiAffinity expects the report to name the pod that keeps a pod away if the
// caller may read it, and otherwise to refer to an admin.
func TestExplainAntiAffinity(t *testing.T) {
	const existing = "0/7 nodes are available: 7 node(s) didn't satisfy existing pods anti-affinity rules."
	const topology = "Failed to schedule pod, unsatisfiable topology constraint for pod anti-affinity, key=kubernetes.io/hostname (counts = map[node-of-b:1], podDomains = kubernetes.io/hostname Exists, nodeDomains = kubernetes.io/hostname In [x]"
	everybody := &metav1.LabelSelector{}
	own := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: everybody}}}}
	other := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-b", Name: "shunner"}}
	hidden := []string{"nodepool", "pods of other namespaces"}
	for name, c := range map[string]struct {
		scheduler, karpenter   string
		affinity               *corev1.Affinity
		hidden                 []string
		repellents             []corev1.Pod
		first, wantText, never string
	}{
		"to an admin, by the scheduler":           {existing, "", nil, nil, []corev1.Pod{other}, "anti-affinity-of-others", "pod tenant-b/shunner keeps it away: 0/7 nodes", "ask a platform admin"},
		"to an admin, by Karpenter":               {"", topology, nil, nil, []corev1.Pod{other}, "anti-affinity-of-others", "pod tenant-b/shunner keeps it away", "ask a platform admin"},
		"to a tenant, by the scheduler":           {existing, "", nil, hidden, nil, "anti-affinity-of-others", "of a pod outside of its tenant", "0/7"},
		"to a tenant, by Karpenter":               {"", topology, nil, hidden, nil, "anti-affinity-of-others", "of a pod outside of its tenant", "node-of-b"},
		"to a tenant, by both":                    {existing, topology, nil, hidden, nil, "anti-affinity-of-others", "ask a platform admin", "node-of-b"},
		"by a pod of one's own":                   {existing, "", nil, hidden, []corev1.Pod{other}, "anti-affinity-of-others", "pod tenant-b/shunner keeps it away", "ask a platform admin"},
		"to a tenant, by its own, as it may be":   {"", topology, own, hidden, nil, "affinity-unmet", "unsatisfiable topology constraint", "node-of-b"},
		"to an admin, by its own, without others": {"", topology, own, nil, nil, "affinity-unmet", "node-of-b", "ask a platform admin"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWaitingStep()
			s.Claims, s.Events, s.Hidden, s.Repellents = nil, nil, c.hidden, c.repellents
			s.Pods[0].Spec.Affinity = c.affinity
			if c.scheduler != "" {
				addCatalogText(s, c.scheduler)
			}
			if c.karpenter != "" {
				addCatalogText(s, c.karpenter)
			}
			story := why.ExplainSnapshot(s)
			var text strings.Builder
			for _, step := range story.Steps {
				text.WriteString(step.Observation + "\n")
			}
			if story.First == nil || story.First.ID != c.first || !strings.Contains(text.String(), c.wantText) {
				t.Errorf("want %s and %q: %+v", c.first, c.wantText, story)
			}
			if c.hidden == nil && strings.Contains(text.String(), c.never) || c.hidden != nil && c.never != "ask a platform admin" && strings.Contains(text.String(), c.never) {
				t.Errorf("the story contains %q: %s", c.never, text.String())
			}
		})
	}
}

// TestHiddenEvents expects a note that the caller may not read Karpenter's events, and not
// a report that there are none.
func TestHiddenEvents(t *testing.T) {
	s := newWaitingStep()
	s.Events, s.Hidden = nil, []string{"event"}
	if steps := why.ExplainSnapshot(s).Steps; !slices.ContainsFunc(steps, func(step why.Step) bool { return step.Link == why.LinkKarpenter && step.Verdict == why.Hidden }) {
		t.Errorf("the steps are %+v", steps)
	}
	s = &why.Snapshot{Target: why.Target{Kind: "statefulset", Namespace: "tenant-a", Name: "web"}, Object: &appsv1.StatefulSet{}, Hidden: []string{"event"}}
	if steps := why.ExplainSnapshot(s).Steps; len(steps) != 1 || steps[0].Verdict != why.Hidden {
		t.Errorf("the steps are %+v", steps)
	}
}

// TestExplainQuota expects the report to distinguish between a tenant's quota that is
// used up and a namespace's share that is.
func TestExplainQuota(t *testing.T) {
	quota := func(hard, used string) corev1.ResourceQuota {
		list := func(amount string) corev1.ResourceList {
			return corev1.ResourceList{"requests.cpu": resource.MustParse(amount)}
		}
		return corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{Hard: list(hard), Used: list(used)}}
	}
	for name, c := range map[string]struct {
		here, there     corev1.ResourceQuota
		minimum         string
		hidden          []string
		ago             time.Duration
		first, wantText string
	}{
		"all is used": {quota("10", "5"), quota("10", "4"), "0", nil, 0, "quota-exceeded",
			"the tenant's quota is used up: requests.cpu: 12 requested; 5 left of this namespace's share, and 6 of the shares of dev (9 of 20 are used)"},
		"the share is": {quota("10", "0"), quota("10", "0"), "0", nil, time.Hour, "quota-share",
			"only this namespace's share is used up, not the tenant's quota: requests.cpu: 12 requested; 10 left of this namespace's share, and 10 of the shares of dev"},
		"the share has grown": {quota("12", "0"), quota("8", "0"), "0", nil, 0, "quota-share", "has grown since"},
		"the rest is reserved": {quota("10", "0"), quota("10", "0"), "9", nil, 0, "quota-reserved",
			"of which quotaMinimums reserve 9"},
		"a tenant may not read minimums, and waits":      {quota("10", "0"), quota("10", "0"), "0", []string{"tenant"}, 0, "quota-share", "not the tenant's quota"},
		"a tenant may not read minimums, and has waited": {quota("10", "0"), quota("10", "0"), "0", []string{"tenant"}, time.Hour, "quota-reserved", "croft does not move it here"},
		"the quotas may not be read":                     {quota("10", "0"), quota("10", "0"), "0", []string{"resourcequota"}, 0, "quota-exceeded", "or the namespace's share"},
	} {
		t.Run(name, func(t *testing.T) {
			refused := newEvent("ReplicaSet", "web", "FailedCreate", "replicaset-controller",
				`Error creating: pods "web-x2x9p" is forbidden: exceeded quota: croft, requested: requests.cpu=12, used: requests.cpu=0, limited: requests.cpu=10`)
			refused.LastTimestamp = metav1.NewTime(time.Now().Add(-c.ago))
			story := why.ExplainSnapshot(&why.Snapshot{
				Target: why.Target{Kind: "statefulset", Namespace: "prod", Name: "web"}, Object: &appsv1.StatefulSet{}, Events: []corev1.Event{refused},
				Makers: []why.Maker{{Kind: "ReplicaSet", Name: "web"}}, Hidden: c.hidden,
				Quotas:   map[string]corev1.ResourceQuota{"prod": c.here, "dev": c.there},
				Minimums: map[string]corev1.ResourceList{"dev": {"requests.cpu": resource.MustParse(c.minimum)}},
			})
			if story.First == nil || story.First.ID != c.first || !strings.Contains(story.First.Cause, c.wantText) {
				t.Errorf("the first finding is %+v", story.First)
			}
		})
	}
}

func TestParseTarget(t *testing.T) {
	for args, want := range map[string]string{
		"pod/web": "pod/web", "pod web": "pod/web", "po/web": "pod/web", "Pods/web": "pod/web", "deploy/web": "deployment/web",
		"no/a": "node/a", "pool/a": "pool/a", "pools/a": "pool/a", "nodepool/a": "nodepool/a", "pv/a": "persistentvolume/a", "rc/web": "replicationcontroller/web", "nodeclaims a": "nodeclaim/a", "ns/a": "namespace/a", "tenants/a": "tenant/a",
		"": "", "pod": "", "pod/": "", "/web": "", "pod/a/b": "", "gateway/web": "", "a b c": "",
	} {
		target, err := why.ParseTarget(strings.Fields(args), "ns")
		if want == "" {
			if err == nil {
				t.Errorf("%q is taken for %s", args, target)
			}
			continue
		}
		if err != nil || target.String() != want || (target.Namespace == "ns") != slices.Contains([]string{"pod", "deployment", "replicationcontroller"}, target.Kind) {
			t.Errorf("%q: %+v, %v", args, target, err)
		}
	}
}
