package launches

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newClaim returns a NodeClaim that was created some time ago, and whose launch has failed.
func newClaim(name, reason string, age time.Duration, changes ...func(*karpenterv1.NodeClaim)) karpenterv1.NodeClaim {
	claim := karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))},
		Status: karpenterv1.NodeClaimStatus{Conditions: []status.Condition{
			{Type: "Launched", Status: metav1.ConditionUnknown, Reason: reason, Message: "because"},
		}},
	}
	for _, change := range changes {
		change(&claim)
	}
	return claim
}

func setLaunched(c *karpenterv1.NodeClaim) {
	c.Status.ProviderID, c.Status.Conditions[0].Status = "aws:///us-west-2a/i-1", metav1.ConditionTrue
}

func setDeleted(c *karpenterv1.NodeClaim) { c.DeletionTimestamp = &metav1.Time{Time: now} }

// newRefusal returns the record of some attempts, of which the last was refused some time ago.
func newRefusal(attempts int, hold, ago time.Duration) *Refusal {
	return &Refusal{Reason: "Unauthorized", Message: "earlier", Attempts: attempts, At: now.Add(-ago), Until: now.Add(hold - ago), Version: "1"}
}

func TestDecide(t *testing.T) {
	const profile = "InstanceProfileNameInvalid"
	none := []karpenterv1.NodeClaim(nil)
	for _, test := range []struct {
		name    string
		claims  []karpenterv1.NodeClaim
		refusal *Refusal
		held    bool
		// The desired decision: the number of attempts, and the times from now.
		attempts    int
		until, next time.Duration
		isHeld      bool
		deleted     []string
	}{
		{"nothing was refused", []karpenterv1.NodeClaim{newClaim("a", "Launched", time.Hour, setLaunched)}, nil, false, 0, 0, 0, false, nil},
		{"the launch has not begun", []karpenterv1.NodeClaim{newClaim("a", "AwaitingReconciliation", time.Hour)}, nil, false, 0, 0, 0, false, nil},
		{"a missing profile", []karpenterv1.NodeClaim{newClaim("a", profile, time.Second), newClaim("b", "Launched", time.Hour, setLaunched)}, nil, false, 1, time.Minute, time.Minute, true, []string{"a"}},
		{"several NodeClaims", []karpenterv1.NodeClaim{newClaim("a", profile, 0), newClaim("b", profile, 0)}, nil, false, 1, time.Minute, time.Minute, true, []string{"a", "b"}},
		{"Karpenter deletes it itself", []karpenterv1.NodeClaim{newClaim("a", profile, 0, setDeleted)}, nil, false, 0, 0, 0, false, nil},
		{"a throttled request may succeed soon", []karpenterv1.NodeClaim{newClaim("a", "RequestLimitExceeded", 5*time.Second)}, nil, false, 0, 0, 10 * time.Second, false, nil},
		{"requests stay throttled", []karpenterv1.NodeClaim{newClaim("a", "RequestLimitExceeded", grace)}, nil, false, 1, time.Minute, time.Minute, true, []string{"a"}},
		{"held", none, newRefusal(1, time.Minute, 20*time.Second), true, 1, 40 * time.Second, 40 * time.Second, true, nil},
		{"Karpenter has not read the limit yet", []karpenterv1.NodeClaim{newClaim("a", profile, 0)}, newRefusal(1, time.Minute, 20*time.Second), true, 1, 40 * time.Second, 40 * time.Second, true, []string{"a"}},
		{"the hold ends", none, newRefusal(1, time.Minute, time.Minute), true, 1, 0, longest, false, nil},
		{"an admin has removed the limit", none, newRefusal(2, 2*time.Minute, time.Second), false, 2, 119 * time.Second, 119*time.Second + longest, false, nil},
		{"an admin has removed the record", none, nil, true, 0, 0, 0, false, nil},
		{"the second attempt", []karpenterv1.NodeClaim{newClaim("a", profile, 0)}, newRefusal(1, time.Minute, time.Minute), false, 2, 2 * time.Minute, 2 * time.Minute, true, []string{"a"}},
		{"the third attempt", []karpenterv1.NodeClaim{newClaim("a", profile, 0)}, newRefusal(2, 2*time.Minute, 3*time.Minute), false, 3, 4 * time.Minute, 4 * time.Minute, true, []string{"a"}},
		{"the ninth attempt", []karpenterv1.NodeClaim{newClaim("a", profile, 0)}, newRefusal(8, longest, longest), false, 9, longest, longest, true, []string{"a"}},
		{"an attempt succeeds", []karpenterv1.NodeClaim{newClaim("a", "Launched", 10*time.Second, setLaunched)}, newRefusal(2, 2*time.Minute, 3*time.Minute), false, 0, 0, 0, false, nil},
		{"nodes from before prove nothing", []karpenterv1.NodeClaim{newClaim("a", "Launched", time.Hour, setLaunched)}, newRefusal(2, 2*time.Minute, 3*time.Minute), false, 2, -time.Minute, longest - time.Minute, false, nil},
		{"no pod needs the pool any more", none, newRefusal(2, 2*time.Minute, 2*time.Minute+longest), false, 0, 0, 0, false, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Decide(&State{Claims: test.claims, Version: "1", Refusal: test.refusal, Held: test.held}, now)
			if got.Held != test.isHeld || (got.Refusal != nil) != (test.attempts > 0) {
				t.Fatalf("held %t, with the record %+v", got.Held, got.Refusal)
			}
			if r := got.Refusal; r != nil && (r.Attempts != test.attempts || !r.Until.Equal(now.Add(test.until)) || r.Version != "1") {
				t.Errorf("recorded %+v", r)
			}
			if test.next == 0 && !got.Next.IsZero() || test.next != 0 && !got.Next.Equal(now.Add(test.next)) {
				t.Errorf("next at %v", got.Next)
			}
			var deleted []string
			for _, claim := range got.Refused {
				deleted = append(deleted, claim.Name)
			}
			if !slices.Equal(deleted, test.deleted) {
				t.Errorf("deleted %v", deleted)
			}
		})
	}
}

// TestDecideAfterChange fails if a change of the Pool or its node class does not end a hold at once, or
// if the next refusal does not start again with the shortest hold.
func TestDecideAfterChange(t *testing.T) {
	s := &State{Version: "2", Refusal: newRefusal(8, longest, time.Second), Held: true}
	if got := Decide(s, now); got.Held || got.Refusal != nil {
		t.Errorf("after the change: %+v", got)
	}
	s.Claims = []karpenterv1.NodeClaim{newClaim("a", "Unauthorized", 0)}
	if got := Decide(s, now); !got.Held || got.Refusal.Attempts != 1 || !got.Refusal.Until.Equal(now.Add(shortest)) {
		t.Errorf("after the next refusal: %+v", got.Refusal)
	}
}

// TestRecord fails if a record in a NodePool is not read as it was written, and would so be written
// for ever.
func TestRecord(t *testing.T) {
	written := Decide(&State{Claims: []karpenterv1.NodeClaim{newClaim("a", "Unauthorized", 0)}, Version: "x/1"}, now.Add(time.Millisecond)).Refusal
	text, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.RefusedLaunchesAnnotation: string(text)}}}
	read := ReadRefusal(pool)
	if again, err := json.Marshal(read); err != nil || string(again) != string(text) {
		t.Errorf("%s (%v) was %s", again, err, text)
	}
	if explained := read.Explain(); !strings.Contains(explained, "Unauthorized: because") || !strings.Contains(explained, "2026-03-01T12:01:00Z") {
		t.Errorf("explained as %s", explained)
	}
	if IsHeld(pool) {
		t.Error("a record alone is a hold")
	}
	pool.Spec.Limits = karpenterv1.Limits{corev1.ResourceName(v1alpha1.HoldLimit): resource.MustParse("-1")}
	if !IsHeld(pool) {
		t.Error("a limit is no hold")
	}
	pool.Annotations[v1alpha1.RefusedLaunchesAnnotation] = "forged"
	if ReadRefusal(pool) != nil || ReadRefusal(&karpenterv1.NodePool{}) != nil {
		t.Error("an invalid record was read")
	}
}
